"""The gate's own transforms: the spec's values, and those of pyiceberg for values at random."""

import random
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.data.transforms import transformed
from nightkeep.formats.iceberg.gate.transform_values import transform_values
from nightkeep.formats.iceberg.metadata.types import arrow_type

HASHES = [
    # Appendix B of the spec; the bucket of 2^31 - 1 is the hash without its sign.
    (pa.array([34], pa.int32()), 2017239379),
    (pa.array([34], pa.int64()), 2017239379),
    (pa.array([Decimal("14.20")], pa.decimal128(9, 2)), -500754589),
    (pa.array([date(2017, 11, 16)]), -653330422),
    (pa.array([time(22, 31, 8)], pa.time64("us")), -662762989),
    (pa.array([datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us")), -2047944441),
    (pa.array(["iceberg"]), 1210000089),
    (pa.array([UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes], pa.binary(16)), 1488055340),
    (pa.array([bytes([0, 1, 2, 3])], pa.binary(4)), -188683207),
    (pa.array([bytes([0, 1, 2, 3])], pa.binary()), -188683207),
]


@pytest.mark.parametrize(("values", "hashed"), HASHES)
def test_hashes_are_those_of_the_spec(values: Any, hashed: int) -> None:
    count = 2**31 - 1
    assert transform_values(values, f"bucket[{count}]").to_pylist() == [(hashed & 0x7FFFFFFF) % count]


def texts(chance: random.Random) -> str:
    return "".join(chance.choice("ab\u00e9\u4e2d\U0001f600\x00") for _ in range(chance.randrange(9)))


MOMENTS = lambda chance: datetime(1600, 1, 1) + timedelta(microseconds=chance.randrange(10**16 * 2))  # noqa: E731
KINDS: dict[str, tuple[IcebergType, Any, tuple[str, ...]]] = {
    "int": (IntegerType(), lambda chance: chance.randrange(-(2**30), 2**30), ("bucket[16]", "truncate[10]")),
    "long": (LongType(), lambda chance: chance.randrange(-(2**62), 2**62), ("bucket[7]", "truncate[1000]")),
    "decimal": (
        DecimalType(38, 3),
        lambda chance: Decimal(chance.randrange(-(10 ** chance.randrange(1, 38)), 10**37)).scaleb(-3),
        ("bucket[16]", "truncate[50]"),
    ),
    "narrow decimal": (
        DecimalType(9, 2),
        lambda chance: Decimal(chance.randrange(-(10**8), 10**8)).scaleb(-2),
        ("bucket[16]", "truncate[7]"),
    ),
    "text": (StringType(), texts, ("bucket[16]", "truncate[1]", "truncate[3]")),
    "bytes": (BinaryType(), lambda chance: chance.randbytes(chance.randrange(14)), ("bucket[16]", "truncate[3]")),
    "fixed": (FixedType(5), lambda chance: chance.randbytes(5), ("bucket[16]",)),
    "uuid": (UUIDType(), lambda chance: chance.randbytes(16), ("bucket[16]",)),
    "date": (
        DateType(),
        lambda chance: date(1600, 1, 1) + timedelta(days=chance.randrange(300_000)),
        ("bucket[16]", "year", "month", "day"),
    ),
    "time": (
        TimeType(),
        lambda chance: (datetime.min + timedelta(seconds=chance.randrange(86_400))).time(),
        ("bucket[16]",),
    ),
    "timestamp": (TimestampType(), MOMENTS, ("bucket[16]", "year", "month", "day", "hour")),
    "timestamptz": (TimestamptzType(), MOMENTS, ("bucket[16]", "year", "month", "day", "hour")),
}


@pytest.mark.parametrize("name", KINDS)
def test_values_are_those_of_pyiceberg(name: str) -> None:
    kind, make, transforms = KINDS[name]
    chance = random.Random(name)
    values = pa.array([None if chance.random() < 0.1 else make(chance) for _ in range(500)], arrow_type(kind))
    for transform in transforms:
        theirs: Any = transformed(values, kind, parse_transform(transform))
        numbers = theirs.cast(pa.int32()) if pa.types.is_date(theirs.type) and transform == "day" else theirs
        assert transform_values(values, transform).to_pylist() == numbers.to_pylist(), transform
        assert transform_values(values.slice(7, 90), transform).to_pylist() == numbers.slice(7, 90).to_pylist()


def test_nulls_stay_and_void_has_no_values() -> None:
    assert transform_values(pa.array([1, None]), "identity").to_pylist() == [1, None]
    assert transform_values(pa.array([1, None]), "void").to_pylist() == [None, None]
    with pytest.raises(CorruptMetadata, match="one of the spec's"):
        transform_values(pa.array([1]), "zigzag")
