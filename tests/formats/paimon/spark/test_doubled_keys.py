"""Rows that repeat the key of the row before them, against a loop over rows."""

import math
import struct
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.formats.paimon.spark.doubled_keys import repeats

DOUBLES = st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.nan, math.inf, None])
KINDS: Sequence[tuple[pa.DataType, st.SearchStrategy[object]]] = [
    (pa.int64(), st.sampled_from([None, -1, 0, 1, 1 << 62])),
    (pa.float64(), DOUBLES),
    (pa.float32(), DOUBLES),
    (pa.string(), st.sampled_from(["", "a", "aa", None])),
    (pa.binary(), st.sampled_from([b"", b"\0", None])),
    (pa.bool_(), st.sampled_from([True, False, None])),
]


def alike(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or struct.pack("d", left) == struct.pack("d", right)
    return left == right


@given(st.data())
def test_repeats_are_rows_like_the_row_before_them(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    rows = data.draw(st.lists(st.tuples(*(values for _, values in kinds)), max_size=12))
    expected = sum(all(map(alike, left, right)) for left, right in pairwise(rows))
    cut = data.draw(st.integers(0, len(rows)))
    columns = {
        str(place): pa.chunked_array(
            [pa.array([row[place] for row in part], kind) for part in (rows[:cut], rows[cut:])], kind
        )
        for place, (kind, _) in enumerate(kinds)
    }
    assert repeats(pa.table(columns)) == expected


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_rows_repeat_nothing(count: int) -> None:
    assert repeats(pa.table({"key": pa.array([1] * count, pa.int64())})) == 0
