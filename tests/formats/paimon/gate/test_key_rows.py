"""Expressions over sorted rows, against loops over the rows."""

from collections import Counter
from itertools import pairwise

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.formats.paimon.gate.key_rows import ascend, is_alone, is_newest, is_single, key_numbers

KEYS = ["k", "j"]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 3)), max_size=8)


def framed(rows: list[tuple[int, str, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"k": pl.Int64, "j": pl.String, "_VALUE_KIND": pl.Int8}, orient="row")


@settings(max_examples=examples(100))
@given(ROWS)
def test_rows_of_a_key_are_recognised_by_their_neighbours(rows: list[tuple[int, str, int]]) -> None:
    ordered = sorted(rows, key=lambda row: row[:2])
    counts, keys = Counter(row[:2] for row in ordered), sorted({row[:2] for row in ordered})
    found = framed(ordered).select(
        is_newest(KEYS).alias("newest"),
        is_single(KEYS).alias("single"),
        is_alone(KEYS).alias("alone"),
        key_numbers(KEYS),
    )
    assert found["newest"].to_list() == [a[:2] != b[:2] for a, b in pairwise(ordered)] + [True] * bool(ordered)
    assert found["single"].to_list() == [counts[row[:2]] == 1 for row in ordered]
    assert found["alone"].to_list() == [counts[row[:2]] == 1 and row[2] not in (1, 3) for row in ordered]
    assert [keys[n - 1] for n in found["key"]] == [row[:2] for row in ordered]


@settings(max_examples=examples(200))
@given(ROWS)
def test_keys_ascend_if_each_is_greater_than_the_one_before(rows: list[tuple[int, str, int]]) -> None:
    for some in (rows, sorted(set(rows)), sorted({row[:2]: row for row in rows}.values())):
        assert framed(some).select(ascend(KEYS)).item() == all(a[:2] < b[:2] for a, b in pairwise(some))
