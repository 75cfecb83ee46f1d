"""A table's options -> how the rows of one key become one row, column by column.

Follows PartialUpdateMergeFunction and AggregateMergeFunction of Paimon 2.0.0 (C/mergetree/compact). A table that keeps
whole rows (deduplicate) has no such rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, option_bool
from nightkeep.formats.paimon.metadata.types import MAX_LENGTH, TypeRoot

LONG_DIGITS = 18
"""Decimals of so many digits, and the sum of two, fit into 64 bits."""
_IGNORE_DELETE = (
    "ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete",
)  # fmt: skip
"""Rows of kind -U and -D are skipped: the names of CoreOptions.IGNORE_DELETE, older ones included."""
_FIELDS = "fields."
_GROUP = ".sequence-group"
_FUNCTION = ".aggregate-function"
_REMOVING_GROUPS = "partial-update.remove-record-on-sequence-group"
BLANK = r"^[\t-\r\x1c-\x1f \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}]*$"
"""Texts that `listagg` skips, as a regular expression: Java's Character.isWhitespace throughout, or empty."""


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
    PRODUCT = "product"
    LISTAGG = "listagg"
    """Texts that are not blank, joined in the order of rows."""
    KEY = "primary-key"
    """A column of the primary key: the last row's, retracts included."""
    SEQUENCE = "sequence"
    """A sequence field of a group: that of the last row of the group that was not older, retracts included."""
    OF_GROUP = "of-group"
    """A column of a group without a function: as its sequence fields, and null if that row is a retract."""


_INTERNAL = frozenset({Function.KEY, Function.SEQUENCE, Function.OF_GROUP})
"""Functions that no option can name."""
RETRACTABLE = frozenset({
    Function.LAST_VALUE, Function.LAST_NON_NULL_VALUE, Function.SUM, Function.PRODUCT, *_INTERNAL,
})  # fmt: skip
"""A retract of another function is an error, unless the column ignores retracts."""
_ARITHMETIC = (Function.SUM, Function.PRODUCT)
NUMBERS = frozenset({
    TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.FLOAT, TypeRoot.DOUBLE,
    TypeRoot.DECIMAL,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The function of one column; `ignores_retracts`: rows of kind -U and -D leave it as it is.

    `group` is the place of its sequence group in MergeRules.groups. `delimiter` and `distinct` are of `listagg`:
    `distinct` leaves out every part, between two delimiters, that was there before.
    """

    function: Function
    ignores_retracts: bool = False
    group: int | None = None
    delimiter: str = ","
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns of a partial update with an order of their own: `fields` are compared one after the other, null first.

    A row whose `fields` are all null leaves the group alone. A row that is older than the group's last one changes only
    columns with a function. `removes`: a row of kind -D that is not older removes what came before it, in every column.
    """

    fields: tuple[str, ...]
    removes: bool = False


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How rows of one key become one row. `fields` has every column of the table, in order.

    `ignores_deletes`: retracts are skipped. `removes_on_delete`: a row of kind -D removes what came before it.
    """

    engine: MergeEngine
    fields: Mapping[str, FieldRule]
    ignores_deletes: bool
    removes_on_delete: bool
    groups: tuple[SequenceGroup, ...] = ()


def merge_rules(schema: PaimonSchema) -> MergeRules | None:
    """None where a key keeps its newest row as it is. The schema has no feature of `merge_features`."""
    engine = MergeEngine(_engine(schema))
    if engine is MergeEngine.DEDUPLICATE:
        return None
    groups = _groups(schema) if engine is MergeEngine.PARTIAL_UPDATE else []
    removing = _listed(schema, _REMOVING_GROUPS)
    of_column = {name: n for n, group in enumerate(groups) for name in (*group.columns, *group.sequence)}
    return MergeRules(
        engine=engine,
        fields={field.name: _rule(schema, engine, field.name, of_column.get(field.name)) for field in schema.fields},
        ignores_deletes=engine is MergeEngine.PARTIAL_UPDATE and any(option_bool(schema, o) for o in _IGNORE_DELETE),
        removes_on_delete=option_bool(schema, f"{engine}.remove-record-on-delete"),
        groups=tuple(SequenceGroup(group.sequence, bool({*group.sequence} & {*removing})) for group in groups),
    )


def refuse_retract(rule: FieldRule, name: str) -> None:
    """Raises ValueError: a row of kind -U or -D of column `name`, whose function has no inverse."""
    assert rule.function not in RETRACTABLE
    raise ValueError(
        f"expected no row of kind -U or -D for column {name}, whose function {rule.function} cannot take a value back; "
        f"set {_FIELDS}{name}.ignore-retract"
    )


def sequence_fields(schema: PaimonSchema) -> tuple[str, ...]:
    """Columns of `sequence.field`, in order; none by default."""
    return _listed(schema, "sequence.field")


def ordering_fields(schema: PaimonSchema) -> tuple[str, ...]:
    """Columns that order rows of one key: of `sequence.field`, and of sequence groups."""
    return (*sequence_fields(schema), *(name for group in _groups(schema) for name in group.sequence))


def merge_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Features of the merge engine that we do not handle, each with an advice."""
    engine = _engine(schema)
    if engine not in set(MergeEngine):
        yield f"option merge-engine = {engine} is not handled", f"{', '.join(MergeEngine)} are"
        return
    if engine == MergeEngine.PARTIAL_UPDATE:
        yield from _group_features(schema)
    else:
        for group in _groups(schema):
            yield f"option {group.option} is not handled", "sequence groups are of partial updates"
    for option in _IGNORE_DELETE if engine == MergeEngine.DEDUPLICATE else ():
        if option_bool(schema, option):
            yield f"option {option} = true is not handled", "engines disagree on what a retract then deletes below it"
    if engine != MergeEngine.DEDUPLICATE:
        for field in schema.fields:
            yield from _function_features(schema, MergeEngine(engine), field)


@dataclass(frozen=True, slots=True)
class _Group:
    """An option fields.`sequence`.sequence-group = `columns`."""

    option: str
    sequence: tuple[str, ...]
    columns: tuple[str, ...]


def _groups(schema: PaimonSchema) -> list[_Group]:
    return [
        _Group(key, tuple(key[len(_FIELDS) : -len(_GROUP)].split(",")), tuple(value.split(",")))
        for key, value in schema.options.items()
        if key.startswith(_FIELDS) and key.endswith(_GROUP)
    ]


def _group_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """What PartialUpdateMergeFunction.Factory forbids, or lets depend on the order of a hash table."""
    names = {field.name for field in schema.fields}
    removing = _listed(schema, _REMOVING_GROUPS)
    seen: set[str] = set()
    for group in _groups(schema):
        feature = f"option {group.option} = {','.join(group.columns)} is not handled"
        members = [*group.sequence, *group.columns]
        if unknown := [name for name in members if name not in names]:
            yield feature, f"the table has no column {', '.join(unknown)}"
        if keys := [name for name in members if name in schema.primary_keys]:
            yield feature, f"{', '.join(keys)} is of the primary key"
        if shared := [name for name in members if name in seen or members.count(name) > 1]:
            yield feature, f"{', '.join(dict.fromkeys(shared))} is named more than once, so that engines differ"
        seen |= {*members}
        removing = tuple(name for name in removing if name not in group.sequence)
    if removing:
        yield f"option {_REMOVING_GROUPS} is not handled", f"{', '.join(removing)} is no sequence field of a group"
    yield from _contradictions(schema)


def _contradictions(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Options that Java does not allow together."""
    ignoring = [option for option in _IGNORE_DELETE if option_bool(schema, option)]
    removes = "partial-update.remove-record-on-delete"
    if ignoring and _REMOVING_GROUPS in schema.options:
        yield f"options {ignoring[0]} and {_REMOVING_GROUPS} are not handled together", "unset one of them"
    if option_bool(schema, removes) and _groups(schema):
        yield f"options {removes} and {_groups(schema)[0].option} are not handled together", "unset one of them"


def _function_features(schema: PaimonSchema, engine: MergeEngine, field: PaimonField) -> Iterator[tuple[str, str]]:
    if _fixed_function(schema, engine, field.name) is not None:
        return
    named = _named_function(schema, engine, field.name)
    grouped = any(field.name in group.columns for group in _groups(schema))
    advice = None
    if named not in set(Function) or (named in _INTERNAL and named == _option_of(schema, field.name)):
        advice = f"{', '.join(f for f in Function if f not in _INTERNAL)} are"
    elif engine is MergeEngine.PARTIAL_UPDATE and not grouped and named != Function.LAST_NON_NULL_VALUE:
        advice = "Paimon needs a sequence group for it"
    elif grouped and named == Function.FIRST_NON_NULL_VALUE:
        advice = "in a sequence group, Java's result depends on the order in which rows arrive"
    else:
        advice = _unfit(schema, field, Function(named))
    if advice is not None:
        yield f"aggregate function {named} of column {field.name} ({field.type}) is not handled", advice


def _unfit(schema: PaimonSchema, field: PaimonField, function: Function) -> str | None:
    """Why a column cannot have a function; None if it can."""
    kind = field.type
    if function in (Function.BOOL_AND, Function.BOOL_OR):
        return None if kind.root is TypeRoot.BOOLEAN else "it is of BOOLEAN columns"
    if kind.is_nested and function in (Function.MAX, Function.MIN):
        return "nested values have no order"
    if function in _ARITHMETIC:
        fits = kind.root in NUMBERS and (kind.precision or 0) <= LONG_DIGITS
        return None if fits else f"it is of numbers, of DECIMAL up to {LONG_DIGITS} digits"
    if function is Function.LISTAGG:
        if kind.root is not TypeRoot.VARCHAR or kind.length != MAX_LENGTH:
            return "it is of STRING columns"
        if _distinct(schema, field.name) and len(_delimiter(schema, field.name)) != 1:
            return "distinct parts are told apart by a delimiter of one character"
    return None


def _rule(schema: PaimonSchema, engine: MergeEngine, name: str, group: int | None) -> FieldRule:
    function = Function(_named_function(schema, engine, name))
    return FieldRule(
        function=function,
        ignores_retracts=option_bool(schema, f"{_FIELDS}{name}.ignore-retract") and function not in _INTERNAL,
        group=group,
        delimiter=_delimiter(schema, name),
        distinct=_distinct(schema, name),
    )


def _delimiter(schema: PaimonSchema, name: str) -> str:
    return schema.options.get(f"{_FIELDS}{name}.list-agg-delimiter", ",")


def _distinct(schema: PaimonSchema, name: str) -> bool:
    return option_bool(schema, f"{_FIELDS}{name}.distinct")


def _named_function(schema: PaimonSchema, engine: MergeEngine, name: str) -> str:
    """A partial update keeps what is not null, and in a group what is newest."""
    grouped = engine is MergeEngine.PARTIAL_UPDATE and any(name in group.columns for group in _groups(schema))
    unnamed = Function.OF_GROUP if grouped else Function.LAST_NON_NULL_VALUE
    return _fixed_function(schema, engine, name) or _option_of(schema, name) or unnamed


def _fixed_function(schema: PaimonSchema, engine: MergeEngine, name: str) -> Function | None:
    """The function of a column that decides, whatever options say: getAggFuncName of AggregateMergeFunction and
    PartialUpdateMergeFunction."""
    updates = engine is MergeEngine.PARTIAL_UPDATE
    if updates and any(name in group.sequence for group in _groups(schema)):
        return Function.SEQUENCE
    if not updates and name in sequence_fields(schema):
        return Function.LAST_VALUE
    return Function.KEY if name in schema.primary_keys else None


def _option_of(schema: PaimonSchema, name: str) -> str | None:
    return schema.options.get(f"{_FIELDS}{name}{_FUNCTION}", schema.options.get(f"{_FIELDS}default-aggregate-function"))


def _listed(schema: PaimonSchema, option: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in schema.options.get(option, "").split(",") if name.strip())


def _engine(schema: PaimonSchema) -> str:
    return schema.options.get("merge-engine", str(MergeEngine.DEDUPLICATE)).lower()
