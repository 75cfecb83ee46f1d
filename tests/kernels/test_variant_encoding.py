"""Typed columns as encoded variants: the twin decodes each value, with the type that the column has."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.support.variant_values import Value, decoded

from nightkeep.kernels.variant_encoding import encoded_scalars

NO_NAMES = b"\x01\x00\x00"
NOON = datetime(2026, 1, 1, 12, 0, 0, 1)
NOON_NANOS = 1_767_268_800_000_001_000


@pytest.mark.parametrize(
    ("kind", "value", "expected", "header"),
    [
        (pa.bool_(), True, ("bool", True), 1 << 2),
        (pa.bool_(), False, ("bool", False), 2 << 2),
        (pa.int8(), -1, ("exact", -1, 0), 3 << 2),
        (pa.int16(), 300, ("exact", 300, 0), 4 << 2),
        (pa.int32(), -70_000, ("exact", -70_000, 0), 5 << 2),
        (pa.int64(), 1 << 40, ("exact", 1 << 40, 0), 6 << 2),
        (pa.float64(), 0.5, ("double", bytes(6) + b"\xe0\x3f"), 7 << 2),
        (pa.decimal128(9, 2), Decimal("-1.25"), ("exact", -125, 2), 8 << 2),
        (pa.decimal128(18, 3), Decimal("1.234"), ("exact", 1234, 3), 9 << 2),
        (pa.decimal128(38, 0), Decimal(10**37 + 1), ("exact", 10**37 + 1, 0), 10 << 2),
        (pa.date32(), date(1969, 12, 31), ("date", -1), 11 << 2),
        (pa.timestamp("us", "UTC"), NOON.replace(tzinfo=UTC), ("timestamp", NOON_NANOS), 12 << 2),
        (pa.timestamp("us"), NOON, ("timestamp_ntz", NOON_NANOS), 13 << 2),
        (pa.float32(), 0.5, ("float", b"\x00\x00\x00\x3f"), 14 << 2),
        (pa.binary(), b"\x00\xff", ("binary", b"\x00\xff"), 15 << 2),
        (pa.string(), "x" * 64, ("string", b"x" * 64), 16 << 2),
        (pa.large_string(), "x" * 63, ("string", b"x" * 63), 1 | 63 << 2),
        (pa.time64("us"), time(0, 0, 1), ("time", 1_000_000), 17 << 2),
        (pa.timestamp("ns", "UTC"), 5, ("timestamp", 5), 18 << 2),
        (pa.timestamp("ns"), 5, ("timestamp_ntz", 5), 19 << 2),
        (pa.binary(16), bytes(range(16)), ("uuid", bytes(range(16))), 20 << 2),
    ],
)
def test_each_type_has_its_encoding(kind: pa.DataType, value: Any, expected: Value, header: int) -> None:
    column = pa.array([value, value, value], kind).slice(1, 1)
    (encoded,) = encoded_scalars(column).to_pylist()
    assert encoded[0] == header
    assert decoded(NO_NAMES, encoded) == expected


@pytest.mark.parametrize("kind", [pa.uint8(), pa.date64(), pa.timestamp("ms"), pa.decimal256(50, 2)], ids=str)
def test_a_type_that_no_variant_has_is_named(kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match="a variant shredded into"):
        encoded_scalars(pa.array([1], pa.int64()).cast(kind))
