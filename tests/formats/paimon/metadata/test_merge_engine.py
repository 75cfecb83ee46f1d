"""Options of a table -> the rules of its merge engine, and what is refused of it."""

from collections.abc import Mapping

import pytest

from nightkeep.formats.paimon.metadata.merge_engine import (
    FieldRule,
    Function,
    MergeEngine,
    MergeRules,
    merge_features,
    merge_rules,
)
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import parse_type

COLUMNS = {"k": "INT NOT NULL", "s": "BIGINT", "n": "INT", "d": "DECIMAL(20, 2)", "b": "BOOLEAN", "t": "STRING"}
KEEPS = FieldRule(Function.LAST_NON_NULL_VALUE)


def schema(options: Mapping[str, str]) -> PaimonSchema:
    fields = tuple(PaimonField(n, name, parse_type(text)) for n, (name, text) in enumerate(COLUMNS.items()))
    return PaimonSchema(0, fields, (), ("k",), options)


def test_a_table_keeps_whole_rows_unless_it_says_otherwise() -> None:
    assert merge_rules(schema({})) is merge_rules(schema({"merge-engine": "deduplicate"})) is None


@pytest.mark.parametrize("option", ["ignore-delete", "partial-update.ignore-delete"])
def test_a_partial_update_keeps_what_is_not_null(option: str) -> None:
    told = merge_rules(schema({"merge-engine": "PARTIAL-UPDATE", option: "true"}))
    assert told == MergeRules(MergeEngine.PARTIAL_UPDATE, dict.fromkeys(COLUMNS, KEEPS), True, False)


def test_an_aggregation_has_a_function_for_every_column() -> None:
    told = merge_rules(
        schema({
            "merge-engine": "aggregation", "sequence.field": "s", "aggregation.remove-record-on-delete": "true",
            "fields.n.aggregate-function": "sum", "fields.default-aggregate-function": "max",
            "fields.t.ignore-retract": "true", "fields.b.aggregate-function": "bool_or",
        })
    )  # fmt: skip
    assert told is not None
    assert dict(told.fields) == {
        "k": FieldRule(Function.KEY),
        "s": FieldRule(Function.LAST_VALUE),
        "n": FieldRule(Function.SUM),
        "d": FieldRule(Function.MAX),
        "b": FieldRule(Function.BOOL_OR),
        "t": FieldRule(Function.MAX, ignores_retracts=True),
    }
    assert (told.ignores_deletes, told.removes_on_delete) == (False, True)


AGGREGATES = {"merge-engine": "aggregation"}
UPDATES = {"merge-engine": "partial-update"}
REFUSED: Mapping[str, tuple[Mapping[str, str], str]] = {
    "first row": ({"merge-engine": "first-row"}, "option merge-engine = first-row is not handled"),
    "a group": ({**UPDATES, "fields.s.sequence-group": "n,t"}, "option fields.s.sequence-group is not handled"),
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
    "deletes that are skipped": ({"ignore-delete": "true"}, "option ignore-delete = true is not handled"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_handled_is_named(name: str) -> None:
    options, feature = REFUSED[name]
    assert [found for found, _ in merge_features(schema(options))] == [feature]


def test_what_is_handled_has_no_feature_to_refuse() -> None:
    for options in ({}, UPDATES, AGGREGATES, {**AGGREGATES, "fields.b.aggregate-function": "bool_and"}):
        assert not list(merge_features(schema(options)))
