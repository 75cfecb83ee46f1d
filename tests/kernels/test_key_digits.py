"""Digits of one key column: as few bits as its values need, and words that order its rows."""

import decimal

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.kernels.key_digits import Bytes, Integral, Slot, digits_of


def chunked(values: list[object], kind: pa.DataType) -> "pa.ChunkedArray[object]":
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    ("values", "kind", "bits"),
    [
        ([5, 5], pa.int64(), 1),
        ([5, 6], pa.int64(), 1),
        ([-1, 254], pa.int32(), 8),
        ([-1, 255], pa.int32(), 9),
        ([-(2**63), 2**63 - 1], pa.int64(), 64),
        ([True, False], pa.bool_(), 1),
        ([], pa.int8(), 1),
    ],
)
def test_an_integer_takes_the_bits_of_its_range(values: list[object], kind: pa.DataType, bits: int) -> None:
    ((digit,),) = digits_of("k", [chunked(values, kind)])
    assert isinstance(digit, Integral) and digit.bits == bits
    word = digit.read(Slot(0, 0, bits), np.arange(len(values)))
    assert word.tolist() == [int(value) - int(min(values)) for value in values]  # type: ignore[call-overload,type-var]


def test_two_sides_share_one_range() -> None:
    ((left, right),) = digits_of("k", [chunked([10], pa.int16()), chunked([-5, 20], pa.int16())])
    assert isinstance(left, Integral) and isinstance(right, Integral)
    assert (left.low, right.low, left.bits) == (-5, -5, 5)


def test_bytes_that_all_keys_begin_with_are_left_out() -> None:
    ((digit,),) = digits_of("k", [chunked(["order-17", "order-2", "order-9"], pa.string())])
    assert isinstance(digit, Bytes) and digit.bits == 16
    words = digit.read(Slot(0, 0, 16), np.arange(3)).tolist()
    assert words == [int.from_bytes(text, "big") for text in (b"17", b"2\0", b"9\0")]


def test_a_prefix_of_the_ends_that_others_lack_stays() -> None:
    ((digit,),) = digits_of("k", [chunked(["ab", "x", "ac"], pa.string())])
    assert isinstance(digit, Bytes) and digit.bits == 16


def test_zeros_of_a_longer_key_are_distinguished_from_padding() -> None:
    digits = list(digits_of("k", [chunked([b"a", b"a\0"], pa.binary())]))
    assert len(digits) == 2 and isinstance(digits[1][0], Integral)
    assert len(list(digits_of("k", [chunked([b"a", b"ab"], pa.binary())]))) == 1
    assert len(list(digits_of("k", [chunked([b"\0", b"a"], pa.binary())]))) == 1


def test_a_decimal_of_64_bits_is_one_number_and_a_wider_one_two() -> None:
    kind = pa.decimal128(38, 0)
    assert len(list(digits_of("k", [chunked([decimal.Decimal(-(2**63)), decimal.Decimal(2**63 - 1)], kind)]))) == 1
    assert len(list(digits_of("k", [chunked([decimal.Decimal(2**63)], kind)]))) == 2


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([chunked([1], pa.int32()), chunked([1], pa.int64())], "key column 'k': type int64, expected int32"),
        ([chunked([1, None], pa.int32())], "key column 'k': 1 nulls, expected none"),
        ([chunked([[1]], pa.list_(pa.int8()))], "key column 'k': type .*, expected a number, time, string or binary"),
    ],
)
def test_what_cannot_be_a_key_is_named(columns: list["pa.ChunkedArray[object]"], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(digits_of("k", columns))


def test_the_lower_half_of_a_wide_decimal_has_no_sign() -> None:
    values = [decimal.Decimal(2**64 + lower) for lower in (0, 2**63 - 1, 2**63, 2**64 - 1)]
    _, (lower,) = digits_of("k", [chunked([*values], pa.decimal128(38, 0))])
    assert isinstance(lower, Integral)
    assert lower.read(Slot(1, 0, 64), np.arange(4)).tolist() == [0, 2**63 - 1, 2**63, 2**64 - 1]
