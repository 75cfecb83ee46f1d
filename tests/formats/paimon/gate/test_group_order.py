"""Which rows of a key count, and in which order a sequence group takes them: small cases by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.formats.paimon.gate.comparable import comparable
from nightkeep.formats.paimon.gate.group_order import NO_BASE, RowRoles, row_roles
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules, SequenceGroup

INSERT, DELETE = 0, 3


def roles(rows: Sequence[tuple[int, int, int | None]], *, removes: bool = False, ignores: bool = False) -> RowRoles:
    """`rows`: key, kind and sequence."""
    keys, kinds, sequence = zip(*rows, strict=True)
    told = MergeRules(
        MergeEngine.PARTIAL_UPDATE,
        {"g": FieldRule(Function.SEQUENCE, group=0)},
        ignores,
        False,
        groups=(SequenceGroup(("g",), removes),),
    )
    table = pa.table({"g": pa.array(sequence, pa.int32())})
    return row_roles(table, np.array(keys, np.int64), np.array(kinds, np.int8), told)


def test_a_row_is_older_than_the_newest_before_it() -> None:
    found = roles([(1, INSERT, 5), (1, INSERT, 3), (1, INSERT, None), (1, INSERT, 5), (2, INSERT, 1)])
    assert found.taken[0].newer.tolist() == [True, False, False, True, True]
    assert found.taken[0].older.tolist() == [False, True, False, False, False]
    assert found.base.tolist() == [NO_BASE] * 5


def test_a_retract_that_begins_a_key_is_its_base_and_taken_back() -> None:
    found = roles([(1, DELETE, 5), (1, INSERT, 3), (2, DELETE, 4)])
    assert found.base.tolist() == [0, 0, 2]
    assert found.taken[0].newer.tolist() == [True, False, True]
    assert found.left.tolist() == [True, True, False]


def test_an_ignored_retract_begins_a_key_and_hides_no_row() -> None:
    found = roles([(1, DELETE, 5), (1, DELETE, 9), (1, INSERT, 5)], ignores=True)
    assert found.taken[0].newer.tolist() == [False, False, True]


def test_rows_start_again_after_each_removal_that_is_not_older() -> None:
    found = roles([(1, INSERT, 5), (1, DELETE, 4), (1, DELETE, 6), (1, INSERT, 5), (1, DELETE, 6)], removes=True)
    assert found.base.tolist() == [4] * 5
    assert found.left.tolist() == [False] * 5
    found = roles([(1, INSERT, 5), (1, DELETE, 6), (1, INSERT, 5), (1, INSERT, 7)], removes=True)
    assert (found.base.tolist(), found.left.tolist()) == ([1] * 4, [True] * 4)
    assert found.taken[0].newer.tolist() == [False, False, False, True]


def test_floats_compare_as_in_java() -> None:
    values = pa.chunked_array([pa.array([float("nan"), 0.0, -0.0, -1.5, None, float("inf")])])
    ordered = comparable(values)
    assert ordered.null_count == 1
    ranks = ordered.to_pylist()
    places = sorted((n for n in range(6) if n != 4), key=lambda n: int(ranks[n] or 0))
    assert places == [3, 2, 1, 5, 0]
    texts = pa.chunked_array([pa.array(["a"])])
    assert comparable(texts) is texts


@pytest.mark.parametrize("removes", [False, True])
def test_no_rows_have_no_roles(removes: bool) -> None:
    table = pa.table({"g": pa.array([], pa.int32())})
    told = MergeRules(MergeEngine.PARTIAL_UPDATE, {}, False, False, groups=(SequenceGroup(("g",), removes),))
    assert row_roles(table, np.zeros(0, np.int64), np.zeros(0, np.int8), told).left.tolist() == []
