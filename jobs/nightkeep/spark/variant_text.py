"""Variants of Spark -> text to compare, since Spark neither hashes nor groups variants."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def variant_text(value: Column) -> Column:
    """A variant as text: its types, since JSON writes a decimal and a double alike, and its value. However encoded."""
    return F.concat(F.schema_of_variant(value), F.lit(" "), F.to_json(value))
