"""Rows of keys, merged without a lookup: the twin goes through them key by key, as Java does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.paimon.merge_twin import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, CannotMerge, Row, result

from nightkeep.formats.paimon.data.columns import KIND, SEQUENCE
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules
from nightkeep.formats.paimon.rewrite.sorted_merge import merge_sorted

TYPES: Mapping[str, pa.DataType] = {"i": pa.int32(), "t": pa.string()}
FUNCTIONS = (Function.LAST_VALUE, Function.LAST_NON_NULL_VALUE, Function.FIRST_NON_NULL_VALUE, Function.MAX)
Keys = list[list[Row]]


@st.composite
def rules(draw: st.DrawFn) -> MergeRules:
    engine = draw(st.sampled_from([MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION]))
    updates = engine is MergeEngine.PARTIAL_UPDATE
    removes = draw(st.booleans())
    functions = st.just(Function.LAST_NON_NULL_VALUE) if updates else st.sampled_from(FUNCTIONS)
    fields = {name: FieldRule(draw(functions), not updates and draw(st.booleans())) for name in TYPES}
    return MergeRules(engine, fields, updates and not removes and draw(st.booleans()), removes)


def row() -> st.SearchStrategy[Row]:
    values = st.fixed_dictionaries(
        {"i": st.none() | st.integers(-3, 3), "t": st.none() | st.sampled_from(["", "a", "b"])}
    )
    return st.tuples(st.sampled_from([INSERT, INSERT, UPDATE_AFTER, UPDATE_BEFORE, DELETE]), values)


def table(keys: Keys) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
    rows = [each for some in keys for each in some]
    columns = {name: pa.array([values[name] for _, values in rows], kind) for name, kind in TYPES.items()}
    kinds = pa.array([kind for kind, _ in rows], pa.int8())
    starts = np.cumsum([0, *map(len, keys)], dtype=np.int64)[:-1]
    return pa.table({SEQUENCE: pa.array(range(100, 100 + len(rows)), pa.int64()), KIND: kinds, **columns}), starts


def expected(keys: Keys, told: MergeRules, *, drops_retracts: bool) -> list[dict[str, Any]]:
    found, sequence = list[dict[str, Any]](), 100
    for rows in keys:
        kind, values = rows[0] if len(rows) == 1 else result(rows, told)
        counted = [n for n, (each, _) in enumerate(rows) if not told.ignores_deletes or each in (INSERT, UPDATE_AFTER)]
        last = counted[-1] if counted else len(rows) - 1
        if not (drops_retracts and kind in (UPDATE_BEFORE, DELETE)):
            found.append({SEQUENCE: sequence + last, KIND: kind, **values})
        sequence += len(rows)
    return found


@given(st.lists(st.lists(row(), min_size=1, max_size=5), max_size=6), rules(), st.booleans())
def test_a_merge_is_what_java_makes_of_rows_key_by_key(keys: Keys, told: MergeRules, drops: bool) -> None:
    rows, starts = table(keys)
    try:
        wanted = expected(keys, told, drops_retracts=drops)
    except CannotMerge:
        with pytest.raises(ValueError, match="expected no row of kind -U or -D"):
            merge_sorted(rows, starts, told, drops_retracts=drops)
        return
    found = merge_sorted(rows, starts, told, drops_retracts=drops)
    assert found.to_pylist() == wanted
    assert found.schema == rows.schema


def test_the_only_row_of_a_key_is_not_merged() -> None:
    """A retract that the engine cannot take back is no error until there is something to take it back from."""
    told = MergeRules(MergeEngine.AGGREGATION, {n: FieldRule(Function.MAX) for n in TYPES}, False, False)
    rows, starts = table([[(DELETE, {"i": 1, "t": "a"})], [(UPDATE_AFTER, {"i": 2, "t": None})]])
    assert merge_sorted(rows, starts, told, drops_retracts=False).equals(rows)
    assert merge_sorted(rows, starts, told, drops_retracts=True).column("i").to_pylist() == [2]
