"""A table's options -> how the rows of one key become one row, column by column.

Follows PartialUpdateMergeFunction and AggregateMergeFunction of Paimon 2.0.0 (C/mergetree/compact). A table that keeps
whole rows (deduplicate) has no such rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, option_bool
from nightkeep.formats.paimon.metadata.types import TypeRoot

LONG_DIGITS = 18
"""Decimals of so many digits, and the sum of two, fit into 64 bits."""
_IGNORE_DELETE = (
    "ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete",
)  # fmt: skip
"""Rows of kind -U and -D are skipped: the names of CoreOptions.IGNORE_DELETE, older ones included."""
_GROUP = ".sequence-group"
_FUNCTION = ".aggregate-function"


class MergeEngine(StrEnum):
    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATION = "aggregation"


class Function(StrEnum):
    """What a column keeps of the rows of one key, which come in the order of their sequence."""

    LAST_VALUE = "last_value"
    LAST_NON_NULL_VALUE = "last_non_null_value"
    FIRST_VALUE = "first_value"
    FIRST_NON_NULL_VALUE = "first_non_null_value"
    MAX = "max"
    MIN = "min"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    SUM = "sum"
    KEY = "primary-key"
    """A column of the primary key: the last row's, retracts included."""


RETRACTABLE = frozenset({Function.LAST_VALUE, Function.LAST_NON_NULL_VALUE, Function.SUM, Function.KEY})
"""A retract of another function is an error, unless the column ignores retracts."""
SUMMED = frozenset({
    TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.FLOAT, TypeRoot.DOUBLE,
    TypeRoot.DECIMAL,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The function of one column; `ignores_retracts`: rows of kind -U and -D leave it as it is."""

    function: Function
    ignores_retracts: bool = False


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How rows of one key become one row. `fields` has every column of the table, in order.

    `ignores_deletes`: retracts are skipped. `removes_on_delete`: a row of kind -D removes what came before it.
    """

    engine: MergeEngine
    fields: Mapping[str, FieldRule]
    ignores_deletes: bool
    removes_on_delete: bool


def merge_rules(schema: PaimonSchema) -> MergeRules | None:
    """None where a key keeps its newest row as it is. The schema has no feature of `merge_features`."""
    engine = MergeEngine(_engine(schema))
    if engine is MergeEngine.DEDUPLICATE:
        return None
    return MergeRules(
        engine=engine,
        fields={field.name: _rule(schema, engine, field.name) for field in schema.fields},
        ignores_deletes=engine is MergeEngine.PARTIAL_UPDATE and any(option_bool(schema, o) for o in _IGNORE_DELETE),
        removes_on_delete=option_bool(schema, f"{engine}.remove-record-on-delete"),
    )


def sequence_fields(schema: PaimonSchema) -> tuple[str, ...]:
    """Columns of `sequence.field`, in order; none by default."""
    listed = schema.options.get("sequence.field", "")
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def merge_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Features of the merge engine that we do not handle, each with an advice."""
    engine = _engine(schema)
    if engine not in set(MergeEngine):
        yield f"option merge-engine = {engine} is not handled", f"{', '.join(MergeEngine)} are"
        return
    for key in schema.options:
        if key.startswith("fields.") and key.endswith(_GROUP):
            yield f"option {key} is not handled", "columns with a sequence of their own are not merged yet"
    for option in _IGNORE_DELETE if engine == MergeEngine.DEDUPLICATE else ():
        if option_bool(schema, option):
            yield f"option {option} = true is not handled", "engines disagree on what a retract then deletes below it"
    if engine != MergeEngine.DEDUPLICATE:
        for field in schema.fields:
            yield from _function_features(schema, MergeEngine(engine), field)


def _function_features(schema: PaimonSchema, engine: MergeEngine, field: PaimonField) -> Iterator[tuple[str, str]]:
    named = _named_function(schema, engine, field.name)
    feature = f"aggregate function {named} of column {field.name} ({field.type}) is not handled"
    kind = field.type.root
    if named not in set(Function) or (named == Function.KEY and field.name not in schema.primary_keys):
        yield feature, f"{', '.join(f for f in Function if f is not Function.KEY)} are"
    elif engine is MergeEngine.PARTIAL_UPDATE and named not in (Function.LAST_NON_NULL_VALUE, Function.KEY):
        yield feature, "Paimon needs a sequence group for it"
    elif named in (Function.BOOL_AND, Function.BOOL_OR) and kind is not TypeRoot.BOOLEAN:
        yield feature, "it is of BOOLEAN columns"
    elif named == Function.SUM and (kind not in SUMMED or (field.type.precision or 0) > LONG_DIGITS):
        yield feature, f"sums are of numbers, of DECIMAL up to {LONG_DIGITS} digits"


def _rule(schema: PaimonSchema, engine: MergeEngine, name: str) -> FieldRule:
    ignores = option_bool(schema, f"fields.{name}.ignore-retract")
    return FieldRule(Function(_named_function(schema, engine, name)), ignores)


def _named_function(schema: PaimonSchema, engine: MergeEngine, name: str) -> str:
    """AggregateMergeFunction.getAggFuncName; a partial update of no group keeps what is not null."""
    if engine is MergeEngine.AGGREGATION and name in sequence_fields(schema):
        return Function.LAST_VALUE
    if engine is MergeEngine.AGGREGATION and name in schema.primary_keys:
        return Function.KEY
    default = schema.options.get("fields.default-aggregate-function", str(Function.LAST_NON_NULL_VALUE))
    return schema.options.get(f"fields.{name}{_FUNCTION}", default)


def _engine(schema: PaimonSchema) -> str:
    return schema.options.get("merge-engine", str(MergeEngine.DEDUPLICATE)).lower()
