"""Rows of keys, folded: the twin goes through them one by one, as Java does; the gate has its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.formats.paimon.merge_twin import DELETE, INSERT, UPDATE_BEFORE, CannotTakeBack, Row, merged

from nightkeep.formats.paimon.data.columns import KIND, SEQUENCE
from nightkeep.formats.paimon.gate.merged import merged_rows
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules
from nightkeep.formats.paimon.rewrite.fold import fold
from nightkeep.kernels.fingerprint import fingerprint

TYPES: Mapping[str, pa.DataType] = {
    "i": pa.int8(), "t": pa.string(), "x": pa.float64(), "d": pa.decimal128(5, 2), "b": pa.bool_(), "k": pa.int32(),
}  # fmt: skip
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3),
    "t": st.sampled_from(["", "a", "b", "\u00e9"]),
    "x": st.sampled_from([0.0, -0.0, 0.25, -1.5, float("nan"), float("inf"), 1e300]),
    "d": st.sampled_from([Decimal("0.01"), Decimal("-600.00"), Decimal("600.00")]),
    "b": st.booleans(),
    "k": st.just(7),
}
FUNCTIONS: Mapping[str, Sequence[Function]] = {
    "i": [f for f in Function if f not in (Function.BOOL_AND, Function.BOOL_OR, Function.KEY)],
    "t": [Function.LAST_VALUE, Function.LAST_NON_NULL_VALUE, Function.FIRST_VALUE, Function.MAX, Function.MIN],
    "x": [Function.SUM, Function.MAX, Function.MIN, Function.FIRST_NON_NULL_VALUE],
    "d": [Function.SUM, Function.MAX, Function.LAST_NON_NULL_VALUE],
    "b": [Function.BOOL_AND, Function.BOOL_OR, Function.FIRST_VALUE],
    "k": [Function.KEY],
}
Keys = list[list[Row]]


@st.composite
def rules(draw: st.DrawFn) -> MergeRules:
    engine = draw(st.sampled_from([MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION]))
    updates = engine is MergeEngine.PARTIAL_UPDATE
    removes = draw(st.booleans())
    return MergeRules(
        engine=engine,
        fields={
            name: FieldRule(Function.LAST_NON_NULL_VALUE)
            if updates
            else FieldRule(draw(st.sampled_from(FUNCTIONS[name])), name != "k" and draw(st.booleans()))
            for name in TYPES
        },
        ignores_deletes=updates and not removes and draw(st.booleans()),
        removes_on_delete=removes,
    )


def row() -> st.SearchStrategy[Row]:
    values = {name: st.none() | value if name != "k" else value for name, value in VALUES.items()}
    return st.tuples(st.sampled_from([INSERT, 2, INSERT, UPDATE_BEFORE, DELETE]), st.fixed_dictionaries(values))


def table(keys: Keys) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
    rows = [each for some in keys for each in some]
    columns = {name: pa.array([values[name] for _, values in rows], kind) for name, kind in TYPES.items()}
    kinds = pa.array([kind for kind, _ in rows], pa.int8())
    sequences = pa.array(range(len(rows)), pa.int64())
    starts = np.cumsum([0, *map(len, keys)], dtype=np.int64)[:-1]
    return pa.table({"_KEY_k": columns["k"], SEQUENCE: sequences, KIND: kinds, **columns}), starts


def expected(keys: Keys, told: MergeRules) -> pa.Table:
    some = [one for rows in keys if (one := merged(rows, told)) is not None]
    return pa.table({name: pa.array([one[name] for one in some], kind) for name, kind in TYPES.items()})


def bits(rows: pa.Table) -> list[tuple[str, ...]]:
    """Floats by their bits, but for NaN."""
    return [tuple(map(repr, one.values())) for one in rows.to_pylist()]


AGGREGATE = MergeRules(MergeEngine.AGGREGATION, {n: FieldRule(FUNCTIONS[n][0]) for n in TYPES}, False, True)


@given(st.lists(st.lists(row(), min_size=1, max_size=6), max_size=5), rules())
@example([[(DELETE, {"i": 1, "t": "a", "x": -0.0, "d": None, "b": True, "k": 7})]], AGGREGATE)
def test_a_fold_is_what_java_makes_of_rows_one_by_one(keys: Keys, told: MergeRules) -> None:
    rows, starts = table(keys)
    try:
        wanted = expected(keys, told)
    except CannotTakeBack:
        with pytest.raises(ValueError, match="expected no row of kind -U or -D"):
            fold(rows, starts, told)
        return
    folded = fold(rows, starts, told)
    assert bits(folded.select(list(TYPES))) == bits(wanted)
    assert folded.column(KIND).to_pylist() == [INSERT] * len(wanted)


@given(st.lists(st.lists(row(), min_size=1, max_size=6), max_size=5), rules())
def test_the_gate_makes_the_same_rows_by_other_means(keys: Keys, told: MergeRules) -> None:
    rows, starts = table(keys)
    try:
        wanted = expected(keys, told)
    except CannotTakeBack:
        assume(False)
    numbers = np.repeat(np.arange(len(keys)), np.diff(np.append(starts, rows.num_rows)))
    # A decimal that passed its limit is null for good in Java's order only; the gate takes it for a difference.
    assume("d" not in told.fields or told.fields["d"].function is not Function.SUM or _small(keys))
    found = merged_rows(rows.select([KIND, *TYPES]), numbers, told)
    assert bits(found) == bits(wanted)
    assert found.schema == wanted.schema
    assert fingerprint(found.combine_chunks().to_batches()[0] if len(found) else pa.RecordBatch.from_pylist([]))


def _small(keys: Keys) -> bool:
    return all(sum(abs(values["d"] or 0) for _, values in rows) < 1000 for rows in keys)


def test_the_sequence_number_is_that_of_the_last_row_that_counts() -> None:
    values = {"i": 1, "t": "a", "x": 0.25, "d": None, "b": None, "k": 7}
    told = MergeRules(
        MergeEngine.PARTIAL_UPDATE, dict.fromkeys(TYPES, FieldRule(Function.LAST_NON_NULL_VALUE)), True, False
    )
    rows, starts = table([[(INSERT, values), (INSERT, values), (DELETE, values)], [(INSERT, values)]])
    assert fold(rows, starts, told).column(SEQUENCE).to_pylist() == [1, 3]


def test_many_keys_are_folded_at_once_by_both() -> None:
    """An expression of the gate that repeats its rows for every key would not end."""
    values = {"i": 1, "t": "a", "x": 0.25, "d": Decimal("0.01"), "b": True, "k": 7}
    keys: Keys = [[(INSERT, values), (INSERT, values)]] * 20_000
    rows, starts = table(keys)
    told = replace(AGGREGATE, fields={**AGGREGATE.fields, "d": FieldRule(Function.SUM)})
    folded = fold(rows, starts, told).column("d").to_pylist()
    assert set(folded) == {Decimal("0.02")} and len(folded) == len(keys)
    numbers = np.repeat(np.arange(len(keys)), 2)
    assert merged_rows(rows.select([KIND, *TYPES]), numbers, told).column("d").to_pylist() == folded
