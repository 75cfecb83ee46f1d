"""Sums in the arithmetic of Java's types: what is beyond them, and what a zero's sign and a decimal's digits become."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.formats.paimon.rewrite.sums import Sums


def added(kind: pa.DataType, values: list[Any], *, back: list[Any] | None = None) -> Any:
    """The sum of one key."""
    column = pa.chunked_array([pa.array([*values, *(back or [])], kind)])
    sums = Sums("n", column, 1)
    for row in range(len(column)):
        take = sums.add if row < len(values) else sums.subtract
        take(np.zeros(1, np.int64), np.array([row]))
    (found,) = sums.values(np.zeros(1, np.int64)).to_pylist()
    return found


@pytest.mark.parametrize(("kind", "values"), [(pa.int8(), [100, 100]), (pa.int64(), [-(2**63), -1])])
def test_a_whole_number_beyond_its_type_is_an_error_as_in_java(kind: pa.DataType, values: list[int]) -> None:
    with pytest.raises(OverflowError, match=f"column n: a sum is beyond {kind}"):
        added(kind, values)


def test_the_negative_of_the_least_number_is_an_error() -> None:
    with pytest.raises(OverflowError, match="the negative of -128 is beyond int8"):
        added(pa.int8(), [1], back=[-128])


def test_a_decimal_beyond_its_digits_is_null_until_the_next_number() -> None:
    kind = pa.decimal128(3, 2)
    assert added(kind, [Decimal("9.99"), Decimal("0.01")]) is None
    assert added(kind, [Decimal("9.99"), Decimal("0.01"), Decimal("2.00")]) == Decimal("2.00")
    assert added(kind, [Decimal("-1.25")], back=[Decimal("1.00")]) == Decimal("-2.25")


def test_a_long_decimal_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 18 digits"):
        Sums("n", pa.chunked_array([pa.array([Decimal(1)], pa.decimal128(19, 0))]), 1)


def test_floating_numbers_are_added_in_order_and_the_only_zero_keeps_its_sign() -> None:
    assert math.copysign(1, added(pa.float64(), [-0.0])) == -1
    assert added(pa.float64(), [1e16, 1.0, -1e16]) == 0.0
    assert added(pa.float32(), [0.1, 0.2]) == float(np.float32(0.1) + np.float32(0.2))
    assert added(pa.float64(), [1.0], back=[2.5]) == -1.5


def test_a_key_without_numbers_is_null() -> None:
    sums = Sums("n", pa.chunked_array([pa.array([None], pa.int32())]), 2)
    assert sums.values(np.array([0, 1])).to_pylist() == [None, None]
