"""Single values as bytes: those of Java, of every type, and of a narrower type than the column has now."""

import math
import struct
import uuid
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import conversions as pyiceberg_conversions
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.next_snapshots import NextSnapshot
from tests.formats.iceberg.shown import snapshot_of

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.conversions import decimal_of, from_bytes, to_bytes, unscaled_of

INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-10, Context(prec=80)))
VALUES: tuple[tuple[IcebergType, st.SearchStrategy[Any]], ...] = (
    (BooleanType(), st.booleans()),
    (IntegerType(), INTS),
    (LongType(), LONGS),
    (FloatType(), st.floats(width=32)),
    (DoubleType(), st.floats()),
    (DateType(), INTS),
    (TimeType(), LONGS),
    (TimestampType(), LONGS),
    (TimestamptzType(), LONGS),
    (TimestampNanoType(), LONGS),
    (TimestamptzNanoType(), LONGS),
    (StringType(), TEXTS),
    (BinaryType(), st.binary()),
    (FixedType(3), st.binary(max_size=3)),
    (UUIDType(), st.binary(min_size=16, max_size=16)),
    (DecimalType(38, 10), DECIMALS),
)


@given(st.one_of([st.tuples(st.just(kind), values) for kind, values in VALUES]))
def test_values_survive(case: tuple[IcebergType, Any]) -> None:
    kind, value = case
    found = from_bytes(kind, to_bytes(kind, value), subject="s")
    assert type(found) is type(value)
    assert found == value or (value != value and found != found)
    assert str(found) == str(value) if isinstance(value, float) else True


@given(st.one_of([st.tuples(st.just(kind), values) for kind, values in VALUES]))
def test_bytes_are_those_of_pyiceberg(case: tuple[Any, Any]) -> None:
    kind, value = case
    if isinstance(kind, FixedType):
        return
    assert to_bytes(kind, value) == pyiceberg_conversions.to_bytes(kind, value)


GOLDEN: tuple[tuple[IcebergType, Any, str], ...] = (
    (BooleanType(), True, "01"),
    (BooleanType(), False, "00"),
    (IntegerType(), -2, "feffffff"),
    (LongType(), 2**40, "0000000000010000"),
    (FloatType(), -1.5, "0000c0bf"),
    (DoubleType(), -0.0, "0000000000000080"),
    (DateType(), 19723, "0b4d0000"),
    (StringType(), "na\u00efve", "6e61c3af7665"),
    (BinaryType(), b"\0\xff", "00ff"),
    (UUIDType(), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, "f79c3e09677c4bbda4793f349cb785e7"),
    (DecimalType(9, 2), Decimal("14.20"), "058c"),
    (DecimalType(9, 2), Decimal("-0.01"), "ff"),
    (DecimalType(9, 2), Decimal("1.28"), "0080"),
    (DecimalType(9, 2), Decimal("-1.28"), "80"),
    (DecimalType(9, 2), Decimal(0), "00"),
)


@pytest.mark.parametrize(("kind", "value", "text"), GOLDEN)
def test_bytes_of_the_specification(kind: IcebergType, value: Any, text: str) -> None:
    assert to_bytes(kind, value).hex() == text
    assert from_bytes(kind, bytes.fromhex(text), subject="s") == value


@given(INTS, st.floats(width=32))
def test_bounds_of_a_column_that_grew(number: int, real: float) -> None:
    assert from_bytes(LongType(), struct.pack("<i", number), subject="s") == number
    found = from_bytes(DoubleType(), struct.pack("<f", real), subject="s")
    assert found == real or (isinstance(found, float) and math.isnan(found) and math.isnan(real))
    short = to_bytes(DecimalType(9, 2), Decimal(number % 10**7).scaleb(-2))
    assert from_bytes(DecimalType(18, 2), short, subject="s") == Decimal(number % 10**7).scaleb(-2)


BROKEN: tuple[tuple[IcebergType, bytes], ...] = (
    (BooleanType(), b""),
    (BooleanType(), b"\0\0"),
    (IntegerType(), b""),
    (IntegerType(), bytes(8)),
    (LongType(), bytes(5)),
    (LongType(), bytes(9)),
    (FloatType(), bytes(8)),
    (DoubleType(), bytes(3)),
    (DateType(), bytes(8)),
    (TimestampType(), bytes(4)),
    (StringType(), b"\xff"),
    (StringType(), b"\xed\xa0\x80"),
    (UUIDType(), bytes(15)),
    (UUIDType(), bytes(17)),
    (FixedType(3), bytes(4)),
    (DecimalType(9, 2), b""),
    (DecimalType(9, 2), bytes(18)),
    (UnknownType(), b"x"),
    (StructType(), b""),
    (ListType(1, IntegerType()), b""),
)


@pytest.mark.parametrize(("kind", "data"), BROKEN)
def test_bytes_that_are_no_value(kind: IcebergType, data: bytes) -> None:
    with pytest.raises(CorruptMetadata, match="bound of c: expected a single value of type"):
        from_bytes(kind, data, subject="bound of c")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (IntegerType(), 2**31),
        (IntegerType(), "1"),
        (IntegerType(), None),
        (LongType(), 1.5),
        (StringType(), b"a"),
        (StringType(), "\ud800"),
        (BinaryType(), "a"),
        (UUIDType(), bytes(3)),
        (DecimalType(9, 2), 1),
        (DecimalType(9, 2), Decimal("0.001")),
        (DecimalType(9, 2), Decimal("NaN")),
        (StructType(), 1),
        (FixedType(2), bytes(3)),
        (UnknownType(), 1),
    ],
)
def test_values_that_are_none_of_the_type(kind: IcebergType, value: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        to_bytes(kind, value)


@given(DECIMALS)
def test_decimals_are_exact(value: Decimal) -> None:
    number = unscaled_of(value, 10)
    assert decimal_of(number.to_bytes(17, "big", signed=True), 10) == value
    assert str(decimal_of(number.to_bytes(17, "big", signed=True), 10)) == str(value)


@pytest.mark.parametrize("name", ["types_v2", "types_v3", "evolved_v2", "widened_key_v2"])
def test_bounds_that_java_wrote_are_values_and_come_out_as_they_were(made: Callable[[str], Table], name: str) -> None:
    schema = snapshot_of(made(name)).schema
    seen = 0
    for file in NextSnapshot.of(made(name)).data_files():
        lower, upper = file.raw["lower_bounds"], file.raw["upper_bounds"]
        assert isinstance(lower, dict) and isinstance(upper, dict)
        for field_id, low in lower.items():
            kind = schema.field(field_id).field_type
            values: list[Any] = [from_bytes(kind, each, subject="s") for each in (low, upper[field_id])]
            assert values[0] <= values[1]
            seen += 1
            # A narrower column's bound is written wider than it was.
            if len(low) == len(to_bytes(kind, values[0])):
                assert to_bytes(kind, values[0]) == low
    assert seen
