"""Files of other writers in place of Paimon's own. What Java reads of each, test_foreign_files.py asks it."""

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data.physical_types import refuse_unlike
from nightkeep.formats.paimon.metadata.types import parse_type

LTZ = "TIMESTAMP({}) WITH LOCAL TIME ZONE"
REFUSED = [
    ("TIMESTAMP(6)", pa.timestamp("ms"), "milliseconds"),
    ("TIMESTAMP(6)", pa.timestamp("ns"), "nanoseconds"),
    ("TIMESTAMP(3)", pa.timestamp("us"), "microseconds"),
    (LTZ.format(6), pa.timestamp("ms", "UTC"), "milliseconds"),
    ("TIMESTAMP(9)", pa.int64(), "INT64 without a unit"),
    (LTZ.format(9), pa.int64(), "INT64 without a unit"),
    ("BIGINT", pa.int32(), "INT32"),
    ("INT", pa.int64(), "INT64"),
    ("TIME(3)", pa.time64("us"), "INT64"),
    ("FLOAT", pa.float64(), "DOUBLE"),
    ("DOUBLE", pa.float32(), "FLOAT"),
    ("DOUBLE", pa.int32(), "INT32"),
    ("BOOLEAN", pa.int32(), "INT32"),
    ("STRING", pa.int32(), "INT32"),
    ("DECIMAL(10, 2)", pa.decimal128(10, 1), "DECIMAL of scale 1"),
]
READ = [
    ("TIMESTAMP(0)", pa.timestamp("ms")),
    ("TIMESTAMP(3)", pa.int64()),
    ("TIMESTAMP(6)", pa.int64()),
    ("TIMESTAMP(6)", pa.timestamp("us", "UTC")),
    (LTZ.format(6), pa.timestamp("us")),
    ("TIMESTAMP(9)", pa.timestamp("us")),
    ("TIMESTAMP(9)", pa.timestamp("ns")),
    ("BIGINT", pa.int64()),
    ("INT", pa.int16()),
    ("INT", pa.date32()),
    ("STRING", pa.binary()),
    ("DECIMAL(10, 2)", pa.decimal128(4, 2)),
]


def column(kind: Any) -> pq.ColumnSchema:
    value = Decimal("1.0") if pa.types.is_decimal(kind) else None
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": pa.array([value], kind)}), sink)
    return pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema.column(0)


@pytest.mark.parametrize(("kind", "stored", "named"), REFUSED)
def test_what_engines_read_differently_is_refused_by_name(kind: str, stored: pa.DataType, named: str) -> None:
    with pytest.raises(RefusedTable, match=rf"column v of type .* is stored as {named}"):
        refuse_unlike(column(stored), parse_type(kind), subject="f.parquet")


@pytest.mark.parametrize(("kind", "stored"), READ)
def test_what_engines_read_alike_is_read(kind: str, stored: pa.DataType) -> None:
    refuse_unlike(column(stored), parse_type(kind), subject="f.parquet")
