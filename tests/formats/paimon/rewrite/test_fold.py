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
from tests.formats.paimon.merge_twin import DELETE, INSERT, UPDATE_BEFORE, CannotMerge, Row, merged

from nightkeep.formats.paimon.data.columns import KIND, SEQUENCE
from nightkeep.formats.paimon.gate.merged import merged_rows
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules, SequenceGroup
from nightkeep.formats.paimon.rewrite.fold import fold
from nightkeep.kernels.fingerprint import fingerprint

TYPES: Mapping[str, pa.DataType] = {
    "i": pa.int8(),
    "t": pa.string(),
    "x": pa.float64(),
    "d": pa.decimal128(5, 2),
    "b": pa.bool_(),
    "k": pa.int32(),
    "g": pa.int32(),
    "h": pa.string(),
}
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3),
    "t": st.sampled_from(["", " \t", "a", "b,a", "a,,c", "\u00e9"]),
    "x": st.sampled_from([0.0, -0.0, 0.25, -1.5, float("nan"), float("inf"), 1e300]),
    "d": st.sampled_from([Decimal("0.01"), Decimal("-9.95"), Decimal("-600.00"), Decimal("600.00")]),
    "b": st.booleans(),
    "k": st.just(7),
    "g": st.integers(0, 3),
    "h": st.sampled_from(["", "a", "b"]),
}
ANY = [
    Function.LAST_VALUE,
    Function.LAST_NON_NULL_VALUE,
    Function.FIRST_VALUE,
    Function.FIRST_NON_NULL_VALUE,
    Function.MAX,
    Function.MIN,
]
FUNCTIONS: Mapping[str, Sequence[Function]] = {
    "i": [Function.SUM, Function.PRODUCT, *ANY],
    "t": [Function.LISTAGG, *ANY],
    "x": [Function.SUM, Function.PRODUCT, *ANY],
    "d": [Function.SUM, Function.PRODUCT, *ANY],
    "b": [Function.BOOL_AND, Function.BOOL_OR, Function.FIRST_VALUE],
    "k": [Function.KEY],
    "g": ANY,
    "h": ANY,
}
GROUPS: Sequence[tuple[tuple[str, ...], ...]] = ((), (("g",),), (("g", "h"),), (("g",), ("h",)))
Keys = list[list[Row]]


@st.composite
def rules(draw: st.DrawFn) -> MergeRules:
    return draw(update_rules() if draw(st.booleans()) else aggregate_rules())


@st.composite
def aggregate_rules(draw: st.DrawFn) -> MergeRules:
    fields = {name: draw(field_rule(name)) for name in TYPES}
    return MergeRules(MergeEngine.AGGREGATION, fields, ignores_deletes=False, removes_on_delete=draw(st.booleans()))


@st.composite
def update_rules(draw: st.DrawFn) -> MergeRules:
    groups = draw(st.sampled_from(GROUPS))
    sequence = {name: n for n, group in enumerate(groups) for name in group}
    fields = {name: FieldRule(Function.LAST_NON_NULL_VALUE) for name in TYPES}
    fields |= {name: FieldRule(Function.SEQUENCE, group=n) for name, n in sequence.items()}
    for name in [name for name in "itxdb" if groups and draw(st.booleans())]:
        told = draw(field_rule(name))
        if told.function is Function.FIRST_NON_NULL_VALUE or draw(st.booleans()):
            told = FieldRule(Function.OF_GROUP)
        fields[name] = replace(told, group=draw(st.integers(0, len(groups) - 1)))
    removes, ignores = draw(st.sampled_from([(False, False), (False, True), (True, False)]))
    return MergeRules(
        engine=MergeEngine.PARTIAL_UPDATE,
        fields=fields,
        ignores_deletes=ignores,
        removes_on_delete=removes and not groups,
        groups=tuple(SequenceGroup(names, removes and draw(st.booleans())) for names in groups),
    )


@st.composite
def field_rule(draw: st.DrawFn, name: str) -> FieldRule:
    function = draw(st.sampled_from(FUNCTIONS[name]))
    distinct = function is Function.LISTAGG and draw(st.booleans())
    return FieldRule(function, name != "k" and draw(st.booleans()), distinct=distinct)


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


ROW: dict[str, Any] = {"i": 1, "t": "a", "x": 0.25, "d": None, "b": True, "k": 7, "g": 1, "h": None}
# A removal gives the first value that stands, but no row before it that has no sequence counts as the first.
FIRST_OF_GROUP = MergeRules(
    MergeEngine.PARTIAL_UPDATE,
    {n: FieldRule(Function.LAST_NON_NULL_VALUE) for n in TYPES}
    | {"g": FieldRule(Function.SEQUENCE, group=0), "i": FieldRule(Function.FIRST_VALUE, True, group=0)},
    ignores_deletes=False,
    removes_on_delete=False,
    groups=(SequenceGroup(("g",), removes=True),),
)
AGGREGATE = MergeRules(MergeEngine.AGGREGATION, {n: FieldRule(FUNCTIONS[n][0]) for n in TYPES}, False, True)


@given(st.lists(st.lists(row(), min_size=1, max_size=6), max_size=5), rules())
@example([[(DELETE, {"i": 1, "t": "a", "x": -0.0, "d": None, "b": True, "k": 7, "g": 1, "h": None})]], AGGREGATE)
def test_a_fold_is_what_java_makes_of_rows_one_by_one(keys: Keys, told: MergeRules) -> None:
    rows, starts = table(keys)
    try:
        wanted = expected(keys, told)
    except CannotMerge:
        with pytest.raises((ValueError, OverflowError), match=r"expected no |beyond int8"):
            fold(rows, starts, told)
        return
    folded = fold(rows, starts, told)
    assert bits(folded.select(list(TYPES))) == bits(wanted)
    assert folded.column(KIND).to_pylist() == [INSERT] * len(wanted)


@given(st.lists(st.lists(row(), min_size=1, max_size=6), max_size=5), rules())
@example([[(INSERT, ROW | {"g": None}), (DELETE, ROW), (INSERT, ROW | {"i": None})]], FIRST_OF_GROUP)
@example([[(INSERT, ROW | {"g": 1}), (DELETE, ROW | {"g": 2}), (INSERT, ROW | {"i": None, "g": 2})]], FIRST_OF_GROUP)
def test_the_gate_makes_the_same_rows_by_other_means(keys: Keys, told: MergeRules) -> None:
    # The gate shows the only row of a key as it is stored.
    keys = [some for some in keys if len(some) > 1 or some[0][0] in (UPDATE_BEFORE, DELETE)]
    rows, starts = table(keys)
    try:
        wanted = expected(keys, told)
    except CannotMerge:
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
    values = {"i": 1, "t": "a", "x": 0.25, "d": None, "b": None, "k": 7, "g": 1, "h": None}
    told = MergeRules(
        MergeEngine.PARTIAL_UPDATE, dict.fromkeys(TYPES, FieldRule(Function.LAST_NON_NULL_VALUE)), True, False
    )
    rows, starts = table([[(INSERT, values), (INSERT, values), (DELETE, values)], [(INSERT, values)]])
    assert fold(rows, starts, told).column(SEQUENCE).to_pylist() == [1, 3]


def test_many_keys_are_folded_at_once_by_both() -> None:
    """An expression of the gate that repeats its rows for every key would not end."""
    values = {"i": 1, "t": "a", "x": 0.25, "d": Decimal("0.01"), "b": True, "k": 7, "g": 1, "h": None}
    keys: Keys = [[(INSERT, values), (INSERT, values)]] * 20_000
    rows, starts = table(keys)
    told = replace(AGGREGATE, fields={**AGGREGATE.fields, "d": FieldRule(Function.SUM)})
    folded = fold(rows, starts, told).column("d").to_pylist()
    assert set(folded) == {Decimal("0.02")} and len(folded) == len(keys)
    numbers = np.repeat(np.arange(len(keys)), 2)
    assert merged_rows(rows.select([KIND, *TYPES]), numbers, told).column("d").to_pylist() == folded
