"""The Arrow types of variants, as data files store them: plain, or shredded into typed columns."""

from __future__ import annotations

from enum import Enum
from typing import Final

import pyarrow as pa

from nightkeep.model.arrow_types import has_type

_MARK: Final = {b"nightkeep.variant": b"1"}
"""On the dictionary of names, so that a struct of a user with fields of the same names is no variant."""
METADATA: Final = pa.field("metadata", pa.binary(), nullable=False, metadata=_MARK)

VARIANT: Final = pa.struct([METADATA, pa.field("value", pa.binary(), nullable=False)])
"""The names of a variant and its values, encoded, which no row is chosen or ordered by. Spark reads a variant only
where both are required (Delta's PROTOCOL.md, "Variant data in Parquet"). Fields of other columns are nullable."""


class Shredding(Enum):
    """What becomes of typed columns of variants: they are kept as they are stored, or variants are put together."""

    KEPT = "kept"
    ASSEMBLED = "assembled"


def is_variant(kind: pa.DataType) -> bool:
    """Whether the type is VARIANT, or one of `shredded_type`."""
    return (
        isinstance(kind, pa.StructType) and kind.num_fields > 0 and kind.field(0).equals(METADATA, check_metadata=True)
    )


def shredded_type(value: pa.DataType | None, typed_value: pa.DataType) -> pa.StructType:
    """A variant with parts of its values in typed columns (Parquet, "Variant Shredding"): {metadata, value,
    typed_value}, without `value` where the file has none. Both are nullable.

    Raises ValueError for typed columns of UUIDs: Spark's reader of Parquet takes no such file.
    """
    if has_type(typed_value, lambda kind: bool(kind == pa.uuid())):
        raise ValueError("a variant shredded into UUIDs, which Spark does not read")
    fields = [METADATA] if value is None else [METADATA, pa.field("value", value)]
    return pa.struct([*fields, pa.field("typed_value", typed_value)])
