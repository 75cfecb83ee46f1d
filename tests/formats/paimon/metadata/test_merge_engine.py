"""Options of a table -> the rules of its merge engine, and what is refused of it."""

from collections.abc import Mapping

import pytest

from nightkeep.formats.paimon.metadata.element_rules import ElementRule, NullKeys
from nightkeep.formats.paimon.metadata.merge_engine import (
    FieldRule,
    Function,
    MergeEngine,
    MergeRules,
    SequenceGroup,
    merge_rules,
    skips_retracts,
)
from nightkeep.formats.paimon.metadata.merge_features import merge_features
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.model.json_values import JsonValue

COLUMNS = {
    "k": "INT NOT NULL",
    "s": "BIGINT",
    "n": "INT",
    "d": "DECIMAL(20, 2)",
    "b": "BOOLEAN",
    "t": "STRING",
    "m": "INT",
}
KEEPS = FieldRule(Function.LAST_NON_NULL_VALUE)


def schema(options: Mapping[str, str]) -> PaimonSchema:
    fields = tuple(PaimonField(n, name, parse_type(text)) for n, (name, text) in enumerate(COLUMNS.items()))
    return PaimonSchema(0, fields, (), ("k",), options)


def test_a_table_keeps_whole_rows_by_default() -> None:
    engines: list[dict[str, str]] = [{}, {"merge-engine": "deduplicate"}, {"merge-engine": "first-row"}]
    assert [merge_rules(schema(options)) for options in engines] == [None] * 3


@pytest.mark.parametrize("engine", ["deduplicate", "first-row"])
def test_a_table_of_whole_rows_may_skip_retracts(engine: str) -> None:
    options = {"merge-engine": engine, f"{engine}.ignore-delete": "true"}
    assert skips_retracts(schema(options))
    assert not skips_retracts(schema({"merge-engine": engine}))
    assert not skips_retracts(schema({"merge-engine": "partial-update", "ignore-delete": "true"}))


@pytest.mark.parametrize("option", ["ignore-delete", "partial-update.ignore-delete"])
def test_a_partial_update_keeps_what_is_not_null(option: str) -> None:
    told = merge_rules(schema({"merge-engine": "PARTIAL-UPDATE", option: "true"}))
    fields = {**dict.fromkeys(COLUMNS, KEEPS), "k": FieldRule(Function.KEY)}
    assert told == MergeRules(MergeEngine.PARTIAL_UPDATE, fields, True, False)


def test_columns_of_a_sequence_group_are_as_new_as_its_sequence() -> None:
    told = merge_rules(
        schema(
            {
                "merge-engine": "partial-update",
                "fields.s,n.sequence-group": "d,t",
                "fields.b.sequence-group": "m",
                "fields.t.aggregate-function": "listagg",
                "fields.t.list-agg-delimiter": ";",
                "fields.t.distinct": "true",
                "fields.t.ignore-retract": "true",
                "partial-update.remove-record-on-sequence-group": "b",
            }
        )
    )
    assert told is not None
    assert dict(told.fields) == {
        "k": FieldRule(Function.KEY),
        "s": FieldRule(Function.SEQUENCE, group=0),
        "n": FieldRule(Function.SEQUENCE, group=0),
        "d": FieldRule(Function.OF_GROUP, group=0),
        "b": FieldRule(Function.SEQUENCE, group=1),
        "t": FieldRule(Function.LISTAGG, ignores_retracts=True, group=0, delimiter=";", distinct=True),
        "m": FieldRule(Function.OF_GROUP, group=1),
    }
    assert told.groups == (SequenceGroup(("s", "n")), SequenceGroup(("b",), removes=True))


def test_a_default_function_is_not_that_of_a_sequence_field() -> None:
    options = {**UPDATES, "fields.s.sequence-group": "n,d,b,t,m", "fields.default-aggregate-function": "last_value"}
    assert not list(merge_features(schema(options)))
    told = merge_rules(schema(options))
    assert told is not None and told.fields["s"].function is Function.SEQUENCE


def test_an_aggregation_has_a_function_for_every_column() -> None:
    told = merge_rules(
        schema(
            {
                "merge-engine": "aggregation",
                "sequence.field": "s",
                "aggregation.remove-record-on-delete": "true",
                "fields.n.aggregate-function": "sum",
                "fields.default-aggregate-function": "max",
                "fields.t.ignore-retract": "true",
                "fields.b.aggregate-function": "bool_or",
            }
        )
    )
    assert told is not None
    assert dict(told.fields) == {
        "k": FieldRule(Function.KEY),
        "s": FieldRule(Function.LAST_VALUE),
        "n": FieldRule(Function.SUM),
        "d": FieldRule(Function.MAX),
        "b": FieldRule(Function.BOOL_OR),
        "t": FieldRule(Function.MAX, ignores_retracts=True),
        "m": FieldRule(Function.MAX),
    }
    assert (told.ignores_deletes, told.removes_on_delete) == (False, True)


AGGREGATES = {"merge-engine": "aggregation"}
UPDATES = {"merge-engine": "partial-update"}
GROUP = {"fields.s.sequence-group": "n,t"}
REFUSED: Mapping[str, tuple[Mapping[str, str], str]] = {
    "an unknown engine": ({"merge-engine": "other"}, "option merge-engine = other is not handled"),
    "a group of an aggregation": (
        {**AGGREGATES, "fields.s.sequence-group": "n,t"},
        "option fields.s.sequence-group is not handled",
    ),
    "a group of a column that is not there": (
        {**UPDATES, "fields.s.sequence-group": "n, t"},
        "option fields.s.sequence-group = n, t is not handled",
    ),
    "a group of a key": (
        {**UPDATES, "fields.s.sequence-group": "k,t"},
        "option fields.s.sequence-group = k,t is not handled",
    ),
    "a column of two groups": (
        {**UPDATES, "fields.s.sequence-group": "t", "fields.n.sequence-group": "t"},
        "option fields.n.sequence-group = t is not handled",
    ),
    "a sequence that follows another": (
        {**UPDATES, "fields.s.sequence-group": "n", "fields.n.sequence-group": "t"},
        "option fields.n.sequence-group = t is not handled",
    ),
    "a removing column of no group": (
        {**UPDATES, "fields.s.sequence-group": "n", "partial-update.remove-record-on-sequence-group": "n"},
        "option partial-update.remove-record-on-sequence-group is not handled",
    ),
    "deletes that remove and are ignored": (
        {**UPDATES, **GROUP, "ignore-delete": "true", "partial-update.remove-record-on-sequence-group": "s"},
        "options ignore-delete and partial-update.remove-record-on-sequence-group are not handled together",
    ),
    "deletes that remove, and groups": (
        {**UPDATES, **GROUP, "partial-update.remove-record-on-delete": "true"},
        "options partial-update.remove-record-on-delete and fields.s.sequence-group are not handled together",
    ),
    "a first value of a group that Java takes in the order of arrival": (
        {**UPDATES, **GROUP, "fields.n.aggregate-function": "first_non_null_value"},
        "aggregate function first_non_null_value of column n (INT) is not handled",
    ),
    "parts that a long delimiter cannot tell apart": (
        {
            **AGGREGATES,
            "fields.t.aggregate-function": "listagg",
            "fields.t.distinct": "true",
            "fields.t.list-agg-delimiter": ", ",
        },
        "aggregate function listagg of column t (STRING) is not handled",
    ),
    "a list of numbers": (
        {**AGGREGATES, "fields.n.aggregate-function": "listagg"},
        "aggregate function listagg of column n (INT) is not handled",
    ),
    "a function of ours that nobody may name": (
        {**AGGREGATES, "fields.n.aggregate-function": "of-group"},
        "aggregate function of-group of column n (INT) is not handled",
    ),
    "a function of a group": (
        {**UPDATES, "fields.n.aggregate-function": "sum"},
        "aggregate function sum of column n (INT) is not handled",
    ),
    "a sketch": (
        {**AGGREGATES, "fields.t.aggregate-function": "hll_sketch"},
        "aggregate function hll_sketch of column t (STRING) is not handled",
    ),
    "a key function that nobody may name": (
        {**AGGREGATES, "fields.t.aggregate-function": "primary-key"},
        "aggregate function primary-key of column t (STRING) is not handled",
    ),
    "a sum of texts": (
        {**AGGREGATES, "fields.t.aggregate-function": "sum"},
        "aggregate function sum of column t (STRING) is not handled",
    ),
    "a long sum": (
        {**AGGREGATES, "fields.d.aggregate-function": "sum"},
        "aggregate function sum of column d (DECIMAL(20, 2)) is not handled",
    ),
    "a number that is a condition": (
        {**AGGREGATES, "fields.n.aggregate-function": "bool_and"},
        "aggregate function bool_and of column n (INT) is not handled",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_handled_is_named(name: str) -> None:
    options, feature = REFUSED[name]
    assert [found for found, _ in merge_features(schema(options))] == [feature]


def test_what_is_handled_has_no_feature_to_refuse() -> None:
    for options in ({}, UPDATES, AGGREGATES, {**AGGREGATES, "fields.b.aggregate-function": "bool_and"}):
        assert not list(merge_features(schema(options)))


ROWS = {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "INT"}]}}
ELEMENTS: Mapping[str, JsonValue] = {
    "k": "INT NOT NULL",
    "a": {"type": "ARRAY", "element": "INT"},
    "m": {"type": "MAP", "key": "STRING", "value": "INT"},
    "r": ROWS,
    "s": ROWS,
}


def of_elements(options: Mapping[str, str]) -> PaimonSchema:
    fields = tuple(PaimonField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(ELEMENTS.items()))
    return PaimonSchema(0, fields, (), ("k",), {"merge-engine": "aggregation", **options})


def test_columns_of_elements_have_rules_of_their_own() -> None:
    options = {
        "fields.a.aggregate-function": "collect",
        "fields.a.distinct": "true",
        "fields.a.count-limit": "of no account",
        "fields.m.aggregate-function": "merge_map",
        "fields.m.ignore-retract": "true",
        "fields.r.aggregate-function": "nested_update",
        "fields.r.nested-key": " x ",
        "fields.r.nested-sequence-field": "x",
        "fields.r.nested-key-null-strategy": "IGNORE",
        "fields.s.aggregate-function": "nested_update",
        "fields.s.count-limit": "3",
    }
    table = of_elements(options)
    assert list(merge_features(table)) == []
    told = merge_rules(table)
    assert told is not None
    nested = ElementRule(True, ("x",), ("x",), NullKeys.IGNORE)
    assert told.fields["a"] == FieldRule(Function.COLLECT, distinct=True, elements=ElementRule())
    assert told.fields["m"] == FieldRule(Function.MERGE_MAP, ignores_retracts=True, elements=ElementRule())
    assert told.fields["r"] == FieldRule(Function.NESTED_UPDATE, elements=nested)
    assert told.fields["s"] == FieldRule(Function.NESTED_UPDATE, elements=ElementRule(True, limit=3))
    assert [name for name, rule in told.fields.items() if rule.is_unordered] == ["a", "m", "r"]


def test_a_default_function_is_of_columns_that_can_have_it() -> None:
    options = {"fields.default-aggregate-function": "collect", "fields.m.aggregate-function": "last_value"}
    assert list(merge_features(of_elements(options))) == []
    (told,) = merge_features(of_elements({"fields.default-aggregate-function": "collect"}))
    assert told == (
        f"aggregate function collect of column m ({parse_type(ELEMENTS['m'])}) is not handled",
        "it is of ARRAY columns",
    )
