"""Keys of a sort: their ascending order is that of the columns, compared here value by value in Python."""

import math
import random
import struct
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.kernels.sort_keys import SortColumn, distinct_keys, keys_among, sort_keys, sorted_rows

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-(2**31), -1, 0, 1, 7, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "bool": (pa.bool_(), [False, True]),
    "float": (pa.float32(), [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]),
    "double": (pa.float64(), [-math.inf, -1.5, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan]),
    "decimal": (pa.decimal128(38, 2), [Decimal("-9" * 1 + "9" * 35), Decimal("-0.01"), Decimal(0), Decimal("9" * 36)]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
    "time": (pa.timestamp("us"), [datetime(1969, 12, 31, 23), datetime(1970, 1, 1), datetime(2026, 11, 27)]),
    "text": (pa.string(), ["", "\x00", "a", "a\x00", "a\x00b", "ab", "b", "\u00e9", "\U0001f600", "\uffff"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\x00\x00", b"\x00\xff", b"\xff", b"\xff\x00", b"a"]),
    "fixed": (pa.binary(2), [b"\x00\x00", b"\x00\xff", b"\xff\x00", b"ab"]),
}


def ordinal(value: Any) -> Any:
    """A value of Python that compares as the spec orders the type."""
    if isinstance(value, float):
        bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
        return (math.isnan(value), 0 if math.isnan(value) else bits if bits >= 0 else -(2**63) - bits - 1)
    return value.encode() if isinstance(value, str) else value


def comparing(directions: list[tuple[bool, bool]]) -> Callable[[tuple[Any, ...], tuple[Any, ...]], int]:
    def compare(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
        for a, b, (descending, nulls_first) in zip(left, right, directions, strict=True):
            if a is None or b is None:
                if a is not b:
                    return -1 if (a is None) == nulls_first else 1
                continue
            one, other = ordinal(a), ordinal(b)
            if one != other:
                return (-1 if one < other else 1) * (-1 if descending else 1)
        return 0

    return compare


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_in_the_order_of_their_columns(seed: int) -> None:
    chance = random.Random(seed)
    names = [chance.choice(list(VALUES)) for _ in range(chance.randint(1, 3))]
    directions = [(chance.random() < 0.5, chance.random() < 0.5) for _ in names]
    rows = [tuple(chance.choice([*VALUES[name][1], None]) for name in names) for _ in range(60)]
    columns = [
        SortColumn(pa.chunked_array([pa.array([row[n] for row in rows], VALUES[name][0])]), *directions[n])
        for n, name in enumerate(names)
    ]
    keys, compare = sort_keys(columns), comparing(directions)
    order = sorted_rows(keys).tolist()
    assert order == sorted(range(len(rows)), key=cmp_to_key(lambda a, b: compare(rows[a], rows[b]) or a - b))
    bounds = distinct_keys(keys.slice(0, 20), 8)
    among = keys_among(bounds, keys)
    for a, b in pairwise(order):
        assert among[a] <= among[b]
        if among[a] == among[b] and among[a] % 2:
            assert compare(rows[a], rows[b]) == 0


def test_keys_of_no_rows() -> None:
    keys = sort_keys([SortColumn(pa.chunked_array([pa.array([], pa.string())]), descending=True, nulls_first=True)])
    assert len(sorted_rows(keys)) == 0
    assert len(keys_among(distinct_keys(keys, 5), keys)) == 0


def test_a_type_without_an_order_is_refused() -> None:
    column = SortColumn(pa.chunked_array([pa.array([[1]])]), descending=False, nulls_first=True)
    with pytest.raises(ValueError, match="expected one with an order"):
        sort_keys([column])


def test_columns_in_chunks_and_slices() -> None:
    whole = pa.array(["d", "a", None, "c", "b"])
    chunked = pa.chunked_array([whole.slice(1, 2), whole.slice(3)])
    keys = sort_keys([SortColumn(chunked, descending=True, nulls_first=False)])
    assert sorted_rows(keys).tolist() == [2, 3, 0, 1]
    assert np.array_equal(sorted_rows(keys.slice(1)), [1, 2, 0])
