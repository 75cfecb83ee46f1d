"""Bounds of row groups: every value is within them, as its column's type, whoever wrote the file."""

import io
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nightkeep.encodings.parquet_statistics import group_spans
from nightkeep.kernels.spans import ColumnSpans

OLD = datetime(1960, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [-128, 127, None, 0]),
    "n": (pa.int32(), [None, -5, 0, 7]),
    "big": (pa.int64(), [2**63 - 1, None, -(2**63), 0]),
    "r": (pa.float64(), [1.5, -0.0, math.inf, None]),
    "f": (pa.float32(), [0.1, None, -1.0, 2.0]),
    "p9": (pa.decimal128(9, 2), [Decimal("-1.50"), None, Decimal("9999999.99"), Decimal("0.00")]),
    "p18": (pa.decimal128(18, 3), [Decimal("-999999999999999.999"), Decimal("0.001"), None, Decimal("7.000")]),
    "p38": (pa.decimal128(38, 2), [Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99"), None, Decimal("1.00")]),
    "t": (pa.string(), ["", "a\u4e2d", None, "Z"]),
    "raw": (pa.binary(), [b"", b"\xff\x00", None, b"a"]),
    "flag": (pa.bool_(), [True, False, None, True]),
    "d": (pa.date32(), [date(1, 1, 1), date(2026, 11, 1), None, date(1969, 12, 31)]),
    "at": (pa.timestamp("us", "UTC"), [datetime(2026, 11, 1, 1, 2, 3, 4, UTC), None, OLD, OLD]),
    "ms": (pa.timestamp("ms"), [datetime(2026, 11, 1), None, datetime(1900, 1, 1), datetime(2026, 11, 2)]),
    "clock": (pa.time32("ms"), [time(1, 2, 3), None, time(0), time(23, 59, 59)]),
}
ROWS = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})


def spans_in(rows: pa.Table, name: str, kind: pa.DataType, **options: Any) -> ColumnSpans:
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=2, **options)
    file = pq.ParquetFile(sink)
    leaf = file.schema_arrow.get_field_index(name)
    return group_spans(file.metadata, leaf, file.schema_arrow.field(name).type, kind)


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_are_those_of_the_values(name: str, as_integer: bool) -> None:
    kind, _ = COLUMNS[name]
    found = spans_in(ROWS, name, kind, store_decimal_as_integer=as_integer)
    for group in range(2):
        column = ROWS.column(name).slice(2 * group, 2)
        low, high = pc.min_max(column).values()
        assert (found.lows[group], found.highs[group]) == (low, high)
        assert (found.nulls[group].as_py(), found.rows[group].as_py()) == (column.null_count, 2)


def test_bounds_are_widened_with_their_column() -> None:
    assert spans_in(ROWS, "n", pa.int64()).lows.to_pylist() == [-5, 0]
    assert spans_in(ROWS, "f", pa.float64()).lows.type == pa.float64()
    assert spans_in(ROWS, "ms", pa.timestamp("us")).highs.type == pa.timestamp("us")


def test_what_is_not_there_or_not_read_is_unknown() -> None:
    without = spans_in(ROWS, "n", pa.int32(), write_statistics=False)
    assert without.lows.to_pylist() == without.nulls.to_pylist() == [None, None]
    assert without.rows.to_pylist() == [2, 2]
    nans = pa.table({"r": pa.array([math.nan, math.nan, 1.0, math.nan])})
    found = spans_in(nans, "r", pa.float64())
    assert (found.lows.to_pylist(), found.highs.to_pylist()) == ([None, 1.0], [None, 1.0])
    unsigned = pa.table({"u": pa.array([1, 2**32 - 1, 0, 3], pa.uint32())})
    assert spans_in(unsigned, "u", pa.int64()).lows.to_pylist() == [None, None]
    assert spans_in(ROWS, "t", pa.int32()).lows.to_pylist() == [None, None]
