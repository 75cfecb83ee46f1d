"""Files of variants, plain or shredded, that Iceberg's Java adopts: it writes no shredded ones itself."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Column, Table
from tests.formats.iceberg import runs
from tests.support.variant_values import Typed, Value, in_order, shredded_column

from nightkeep.encodings.parquet_settings import SETTINGS
from nightkeep.encodings.variant_groups import parquet_output

COLUMNS: Sequence[Column] = (("id", "long"), ("day", "string"), ("v", "variant"))
TYPED: Typed = {"a": pa.int32(), "inner": {"name": pa.string()}, "tags": [pa.string()]}
"""Typed columns that have room for most of the values."""


def value(number: int) -> Value | None:
    if number % 5 == 4:
        return None
    inner: Value = ("object", (("name", ("string", b"n%d" % number)),))
    tags: Value = ("array", (("string", b"x"), ("bool", number % 2 == 0)))
    fields: dict[str, Value] = {"a": ("exact", number, 0), "inner": inner, "tags": tags, "rest": ("exact", 5, 1)}
    return ("object", in_order(fields))


def append(java: IcebergJava, table: Table, ids: range, typed: Typed, *, day: str, partition: Sequence[Any]) -> int:
    """A commit of one file of the COLUMNS."""
    held = shredded_column([value(number) for number in ids], typed, Random(ids.start))
    rows = pa.table({"id": pa.array(ids, pa.int64()), "day": [day] * len(ids), "v": held})
    file = runs.folder(table) / "adopted" / f"{ids.start}.parquet"
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as sink, parquet_output(sink, rows.schema, **SETTINGS) as writer:
        writer.write_table(rows)
    return java.commit(table, java.adopt(table, file, partition=partition), kind="append")
