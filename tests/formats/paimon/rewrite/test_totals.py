"""Sums and products in the arithmetic of Java's types: numbers beyond them, signs of zeros, digits of decimals."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.formats.paimon.rewrite.totals import ColumnTotals


def multiplied(kind: pa.DataType, values: list[Any], *, back: list[Any] | None = None) -> Any:
    """The product of one key."""
    column = pa.chunked_array([pa.array([*values, *(back or [])], kind)])
    totals = ColumnTotals("n", column, 1)
    for row in range(len(column)):
        take = totals.multiply if row < len(values) else totals.divide
        take(np.zeros(1, np.int64), np.array([row]))
    (found,) = totals.values(np.zeros(1, np.int64)).to_pylist()
    return found


@pytest.mark.parametrize(
    ("kind", "values"),
    [(pa.int8(), [64, 2]), (pa.int64(), [2**62, 2]), (pa.int64(), [-(2**63), -1]), (pa.int64(), [-1, -(2**63)])],
)
def test_a_product_beyond_its_type_is_an_error(kind: pa.DataType, values: list[int]) -> None:
    with pytest.raises(OverflowError, match=f"column n: the result is beyond {kind}"):
        multiplied(kind, values)


def test_whole_products_are_exact_to_the_last_number() -> None:
    assert multiplied(pa.int64(), [3037000499, 3037000499]) == 9223372030926249001
    assert multiplied(pa.int64(), [-(2**62), 2]) == -(2**63)
    assert multiplied(pa.int8(), [-64, 2]) == -128


def test_a_whole_product_is_divided_towards_zero_as_java_does() -> None:
    assert multiplied(pa.int32(), [-7], back=[2]) == -3
    assert multiplied(pa.int32(), [7], back=[-2]) == -3
    assert multiplied(pa.float64(), [1.0], back=[0.0]) == math.inf
    with pytest.raises(OverflowError, match="beyond int8"):
        multiplied(pa.int8(), [-128], back=[-1])
    with pytest.raises(ValueError, match="no retract of 0"):
        multiplied(pa.int8(), [1], back=[0])


def test_a_decimal_product_is_rounded_half_up_and_null_beyond_its_digits() -> None:
    kind = pa.decimal128(18, 2)
    assert multiplied(kind, [Decimal("0.05"), Decimal("-0.10")]) == Decimal("-0.01")
    assert multiplied(kind, [Decimal("0.01"), Decimal("0.49")]) == Decimal("0.00")
    assert multiplied(kind, [Decimal(10**10), Decimal(10**6)]) is None
    assert multiplied(kind, [Decimal(10**10), Decimal(10**5)]) == Decimal(10**15)
    with pytest.raises(ValueError, match="no retract in the product of decimals n"):
        multiplied(kind, [Decimal(1)], back=[Decimal(1)])


def test_a_retract_before_any_number_leaves_a_product_empty() -> None:
    assert multiplied(pa.int32(), [], back=[2]) is None


def added(kind: pa.DataType, values: list[Any], *, back: list[Any] | None = None) -> Any:
    """The sum of one key."""
    column = pa.chunked_array([pa.array([*values, *(back or [])], kind)])
    sums = ColumnTotals("n", column, 1)
    for row in range(len(column)):
        take = sums.add if row < len(values) else sums.subtract
        take(np.zeros(1, np.int64), np.array([row]))
    (found,) = sums.values(np.zeros(1, np.int64)).to_pylist()
    return found


@pytest.mark.parametrize(("kind", "values"), [(pa.int8(), [100, 100]), (pa.int64(), [-(2**63), -1])])
def test_a_whole_number_beyond_its_type_is_an_error_as_in_java(kind: pa.DataType, values: list[int]) -> None:
    with pytest.raises(OverflowError, match=f"column n: the result is beyond {kind}"):
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
        ColumnTotals("n", pa.chunked_array([pa.array([Decimal(1)], pa.decimal128(19, 0))]), 1)


def test_floating_numbers_are_added_in_order_and_the_only_zero_keeps_its_sign() -> None:
    assert math.copysign(1, added(pa.float64(), [-0.0])) == -1
    assert added(pa.float64(), [1e16, 1.0, -1e16]) == 0.0
    assert added(pa.float32(), [0.1, 0.2]) == float(np.float32(0.1) + np.float32(0.2))
    assert added(pa.float64(), [1.0], back=[2.5]) == -1.5


def test_a_key_without_numbers_is_null() -> None:
    sums = ColumnTotals("n", pa.chunked_array([pa.array([None], pa.int32())]), 2)
    assert sums.values(np.array([0, 1])).to_pylist() == [None, None]
