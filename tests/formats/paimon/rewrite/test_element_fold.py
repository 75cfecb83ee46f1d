"""Arrays and maps, folded: the twin goes through them one by one, as Java does; the gate has its own way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.paimon.element_twin import canonical
from tests.formats.paimon.merge_twin import DELETE, INSERT, UPDATE_BEFORE, Row, merged

from nightkeep.formats.paimon.data.columns import KIND, SEQUENCE
from nightkeep.formats.paimon.gate.merged import merged_rows
from nightkeep.formats.paimon.metadata.element_rules import ElementRule, NullKeys
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules, SequenceGroup
from nightkeep.formats.paimon.rewrite.element_codes import dense
from nightkeep.formats.paimon.rewrite.element_lists import Elements, spread, turn_within
from nightkeep.formats.paimon.rewrite.fold import fold

NESTED = pa.struct([("a", pa.int32()), ("b", pa.string()), ("s", pa.float64())])
TYPES: Mapping[str, pa.DataType] = {
    "k": pa.int32(),
    "g": pa.int32(),
    "c": pa.list_(pa.float64()),
    "e": pa.list_(NESTED),
    "m": pa.map_(pa.string(), pa.int32()),
    "r": pa.list_(NESTED),
    "p": pa.list_(NESTED),
}
ROWS = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(0, 1),
        "b": st.none() | st.sampled_from(["", "x"]),
        "s": st.none() | st.sampled_from([0.0, -0.0, 1.5]),
    }
).map(lambda held: {name: held[name] for name in "abs"})
NESTED_ROWS = st.lists(ROWS, max_size=3)
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "k": st.just(7),
    "g": st.none() | st.integers(0, 2),
    "c": st.none() | st.lists(st.none() | st.sampled_from([0.0, -0.0, 2.5]), max_size=3),
    # Java cannot compare a null row with another.
    "e": st.none() | NESTED_ROWS,
    "m": st.none()
    | st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 3), max_size=2).map(
        lambda held: list(held.items())
    ),
    "r": st.none() | st.lists(st.none() | ROWS, max_size=3),
    "p": st.none() | st.lists(st.none() | ROWS, max_size=3),
}
Keys = list[list[Row]]


@st.composite
def field_rule(draw: st.DrawFn, name: str) -> FieldRule:
    ignores = draw(st.booleans())
    match name:
        case "c" | "e":
            told = ElementRule(rows=name == "e")
            return FieldRule(Function.COLLECT, ignores, distinct=draw(st.booleans()), elements=told)
        case "m":
            return FieldRule(Function.MERGE_MAP, ignores, elements=ElementRule())
        case "r":
            return FieldRule(Function.NESTED_UPDATE, ignores, elements=draw(nested()))
    key = draw(st.sampled_from([("a",), ("a", "b")]))
    told = ElementRule(rows=True, key=key, null_keys=draw(st.sampled_from([NullKeys.MERGE, NullKeys.IGNORE])))
    return FieldRule(Function.NESTED_PARTIAL_UPDATE, True, elements=told)


@st.composite
def nested(draw: st.DrawFn) -> ElementRule:
    if draw(st.booleans()):
        return ElementRule(rows=True, limit=draw(st.none() | st.integers(0, 4)))
    return ElementRule(
        rows=True,
        key=draw(st.sampled_from([("a",), ("a", "b")])),
        sequence=draw(st.sampled_from([(), ("b",), ("b", "a")])),
        null_keys=draw(st.sampled_from([NullKeys.MERGE, NullKeys.IGNORE])),
    )


@st.composite
def rules(draw: st.DrawFn) -> MergeRules:
    fields = {name: draw(field_rule(name)) for name in "cemrp"}
    if draw(st.booleans()):
        fields |= {"k": FieldRule(Function.KEY), "g": FieldRule(Function.LAST_VALUE)}
        fields = {name: fields[name] for name in TYPES}
        return MergeRules(MergeEngine.AGGREGATION, fields, False, draw(st.booleans()))
    grouped = {
        name: FieldRule(rule.function, rule.ignores_retracts, 0, distinct=rule.distinct, elements=rule.elements)
        for name, rule in fields.items()
    }
    grouped |= {"k": FieldRule(Function.LAST_NON_NULL_VALUE), "g": FieldRule(Function.SEQUENCE, group=0)}
    removes, ignores = draw(st.sampled_from([(False, False), (False, True), (True, False)]))
    return MergeRules(
        MergeEngine.PARTIAL_UPDATE,
        {name: grouped[name] for name in TYPES},
        ignores,
        False,
        (SequenceGroup(("g",), removes),),
    )


def row() -> st.SearchStrategy[Row]:
    return st.tuples(st.sampled_from([INSERT, 2, INSERT, UPDATE_BEFORE, DELETE]), st.fixed_dictionaries(dict(VALUES)))


def table(keys: Keys) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
    rows = [each for some in keys for each in some]
    columns = {name: pa.array([values[name] for _, values in rows], kind) for name, kind in TYPES.items()}
    kinds = pa.array([kind for kind, _ in rows], pa.int8())
    sequences = pa.array(range(len(rows)), pa.int64())
    starts = np.cumsum([0, *map(len, keys)], dtype=np.int64)[:-1]
    return pa.table({"_KEY_k": columns["k"], SEQUENCE: sequences, KIND: kinds, **columns}), starts


def expected(keys: Keys, told: MergeRules) -> list[dict[str, str]]:
    some = [one for rows in keys if (one := merged(rows, told)) is not None]
    return [shown(one, told) for one in some]


def shown(row: Mapping[str, Any], told: MergeRules) -> dict[str, str]:
    return {
        name: canonical(rule, row[name]) if rule.elements else repr(row[name]) for name, rule in told.fields.items()
    }


@given(st.lists(st.lists(row(), min_size=1, max_size=6), max_size=4), rules())
def test_a_fold_of_elements_is_what_java_makes_of_rows_one_by_one(keys: Keys, told: MergeRules) -> None:
    rows, starts = table(keys)
    wanted = expected(keys, told)
    folded = fold(rows, starts, told).select(list(TYPES))
    folded.validate(full=True)
    assert [shown(one, told) for one in folded.to_pylist()] == wanted


@given(st.lists(st.lists(row(), min_size=1, max_size=6), max_size=4), rules())
def test_the_gate_makes_the_same_elements_by_other_means(keys: Keys, told: MergeRules) -> None:
    # The gate shows the only row of a key as it is stored.
    keys = [some for some in keys if len(some) > 1 or some[0][0] in (UPDATE_BEFORE, DELETE)]
    rows, starts = table(keys)
    numbers = np.repeat(np.arange(len(keys)), np.diff(np.append(starts, rows.num_rows)))
    found = merged_rows(rows.select([KIND, *TYPES]), numbers, told)
    found.validate(full=True)
    assert [shown(one, told) for one in found.to_pylist()] == expected(keys, told)
    assert found.schema.types == list(TYPES.values())


@pytest.mark.parametrize("back", [[2.5, 0.0, 2.5], [2.5], [-0.0], []])
def test_what_is_collected_is_taken_back_as_often_as_it_is_stated(back: list[float]) -> None:
    values: dict[str, Any] = {**dict.fromkeys(TYPES), "k": 7, "c": [0.0, 2.5, None, 2.5, 2.5]}
    told = FieldRule(Function.COLLECT, elements=ElementRule())
    rules = MergeRules(MergeEngine.AGGREGATION, _last_values(c=told), False, False)
    keys: Keys = [[(INSERT, values), (UPDATE_BEFORE, values | {"c": back})]]
    rows, starts = table(keys)
    assert [shown(one, rules) for one in fold(rows, starts, rules).to_pylist()] == expected(keys, rules)


@pytest.mark.parametrize("gone", [0, 1])
def test_of_rows_with_one_nested_key_the_last_is_left(gone: int) -> None:
    """A first row is as it was written, with a key twice."""
    held = [{"a": 0, "b": "x", "s": 1.5}, {"a": 1, "b": "x", "s": 1.5}, {"a": 0, "b": "", "s": 0.0}]
    values: dict[str, Any] = {**dict.fromkeys(TYPES), "k": 7, "r": held}
    rules = MergeRules(
        MergeEngine.AGGREGATION,
        _last_values(r=FieldRule(Function.NESTED_UPDATE, elements=ElementRule(True, ("a",)))),
        False,
        False,
    )
    keys: Keys = [[(INSERT, values), (UPDATE_BEFORE, values | {"r": [{"a": gone, "b": None, "s": None}]})]]
    rows, starts = table(keys)
    assert [shown(one, rules) for one in fold(rows, starts, rules).to_pylist()] == expected(keys, rules)


def _last_values(**told: FieldRule) -> dict[str, FieldRule]:
    return {**dict.fromkeys(TYPES, FieldRule(Function.LAST_VALUE)), "k": FieldRule(Function.KEY), **told}


def test_a_partial_update_of_rows_takes_nothing_back() -> None:
    told = FieldRule(Function.NESTED_PARTIAL_UPDATE, elements=ElementRule(True, ("a",)))
    fields = {**dict.fromkeys(TYPES, FieldRule(Function.LAST_VALUE)), "p": told}
    values: dict[str, Any] = {**dict.fromkeys(TYPES), "k": 7, "p": []}
    rows, starts = table([[(INSERT, values), (UPDATE_BEFORE, values)]])
    with pytest.raises(ValueError, match="column p, whose function nested_partial_update cannot take a value back"):
        fold(rows, starts, MergeRules(MergeEngine.AGGREGATION, fields, False, False))


def test_a_null_in_a_nested_key_may_be_an_error() -> None:
    told = FieldRule(Function.NESTED_UPDATE, elements=ElementRule(True, ("a",), null_keys=NullKeys.ERROR))
    fields = {**dict.fromkeys(TYPES, FieldRule(Function.LAST_VALUE)), "r": told}
    values: dict[str, Any] = {**dict.fromkeys(TYPES), "k": 7, "r": [{"a": None, "b": "x", "s": 1.5}]}
    rows, starts = table([[(INSERT, values), (INSERT, values)]])
    with pytest.raises(ValueError, match="column r: expected no null in fields a of its rows, found one"):
        fold(rows, starts, MergeRules(MergeEngine.AGGREGATION, fields, False, False))


@given(st.lists(st.none() | ROWS, max_size=8))
def test_codes_are_equal_for_equal_rows_alone(rows: list[Any]) -> None:
    codes = dense([pa.array(rows, NESTED)])
    assert [[a == b for a in codes] for b in codes] == [[repr(a) == repr(b) for a in rows] for b in rows]


@given(st.lists(st.integers(0, 3), max_size=12))
def test_turns_and_ranges_are_counted_within_their_group(groups: list[int]) -> None:
    assert turn_within(np.array(groups, np.int64)).tolist() == [groups[:n].count(g) for n, g in enumerate(groups)]
    places, numbers = spread(np.array(groups, np.int64) * 10, np.array(groups, np.int64))
    assert list(zip(places, numbers, strict=True)) == [(n, g * 10 + i) for n, g in enumerate(groups) for i in range(g)]


def test_elements_of_some_owners_keep_their_order() -> None:
    held = Elements(np.array([0, 0, 2, 3]), np.array([[5], [4], [9], [1]]))
    some = held.of(np.array([0, 1, 3]))
    assert (some.owner.tolist(), some.items[:, 0].tolist()) == ([0, 0, 2], [5, 4, 1])
    both, late = some.followed_by(Elements(np.array([0, 1]), np.array([[7], [8]])))
    assert both.items[:, 0].tolist() == [5, 4, 7, 8, 1] and late.tolist() == [False, False, True, True, False]
    assert held.without(np.array([0])).counts(4).tolist() == [0, 0, 1, 1]
