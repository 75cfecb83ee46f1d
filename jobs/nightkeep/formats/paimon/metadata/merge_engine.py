"""A table's options -> how the rows of one key become one row, column by column.

Follows PartialUpdateMergeFunction and AggregateMergeFunction of Paimon 2.0.0 (C/mergetree/compact). A table that keeps
whole rows (deduplicate) has no such rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from nightkeep.formats.paimon.metadata.element_rules import ElementRule, element_rule
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bool
from nightkeep.formats.paimon.metadata.types import TypeRoot

LONG_DIGITS = 18
"""Decimals of so many digits, and the sum of two, fit into 64 bits."""
IGNORE_DELETE = (
    "ignore-delete",
    "first-row.ignore-delete",
    "deduplicate.ignore-delete",
    "partial-update.ignore-delete",
)
"""Rows of kind -U and -D are skipped: the names of CoreOptions.IGNORE_DELETE, older ones included."""
_FIELDS = "fields."
_GROUP = ".sequence-group"
_FUNCTION = ".aggregate-function"
REMOVING_GROUPS = "partial-update.remove-record-on-sequence-group"
BLANK = r"^[\t-\r\x1c-\x1f \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}]*$"
"""Texts that `listagg` skips, as a regular expression: Java's Character.isWhitespace throughout, or empty."""


class MergeEngine(StrEnum):
    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATION = "aggregation"
    FIRST_ROW = "first-row"


WHOLE_ROWS = frozenset({MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW})


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
    COLLECT = "collect"
    """The elements of arrays, joined in the order of rows."""
    MERGE_MAP = "merge_map"
    """The entries of maps: of entries with one key the last."""
    NESTED_UPDATE = "nested_update"
    """The rows in arrays, joined; of rows with one nested key the newest."""
    NESTED_PARTIAL_UPDATE = "nested_partial_update"
    """The rows in arrays: of rows with one nested key, of each field the last value that is not null."""
    KEY = "primary-key"
    """A column of the primary key: the last row's, retracts included."""
    SEQUENCE = "sequence"
    """A sequence field of a group: that of the last row of the group that was not older, retracts included."""
    OF_GROUP = "of-group"
    """A column of a group without a function: as its sequence fields, and null if that row is a retract."""


INTERNAL = frozenset({Function.KEY, Function.SEQUENCE, Function.OF_GROUP})
"""Functions that no option can name."""
RETRACTABLE = frozenset(
    {
        Function.LAST_VALUE,
        Function.LAST_NON_NULL_VALUE,
        Function.SUM,
        Function.PRODUCT,
        Function.COLLECT,
        Function.MERGE_MAP,
        Function.NESTED_UPDATE,
        *INTERNAL,
    }
)
"""A retract of another function is an error, unless the column ignores retracts."""
NESTED = frozenset({Function.NESTED_UPDATE, Function.NESTED_PARTIAL_UPDATE})
"""Functions of ARRAY columns of rows."""
OF_ELEMENTS = NESTED | {Function.COLLECT, Function.MERGE_MAP}
"""Functions of ARRAY and MAP columns."""
NUMBERS = frozenset(
    {
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DECIMAL,
    }
)


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The function of one column; `ignores_retracts`: rows of kind -U and -D leave it as it is.

    `group` is the place of its sequence group in MergeRules.groups. `delimiter` and `distinct` are of `listagg`:
    `distinct` leaves out every part, between two delimiters, that was there before. It also is of `collect`: an element
    that is there already is left out. `elements` is set for functions of OF_ELEMENTS.
    """

    function: Function
    ignores_retracts: bool = False
    group: int | None = None
    delimiter: str = ","
    distinct: bool = False
    elements: ElementRule | None = None

    @property
    def is_unordered(self) -> bool:
        """Whether the order of elements means nothing: Java has that of a hash table."""
        if self.elements is None:
            return False
        return (
            bool(self.elements.key) or (self.distinct and not self.elements.rows) or self.function is Function.MERGE_MAP
        )


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
    """None where a key keeps one of its rows as it is. The schema has no feature of `merge_features`."""
    engine = MergeEngine(engine_of(schema))
    if engine in WHOLE_ROWS:
        return None
    groups = groups_of(schema) if engine is MergeEngine.PARTIAL_UPDATE else []
    removing = listed(schema, REMOVING_GROUPS)
    of_column = {name: n for n, group in enumerate(groups) for name in (*group.columns, *group.sequence)}
    return MergeRules(
        engine=engine,
        fields={field.name: _rule(schema, engine, field.name, of_column.get(field.name)) for field in schema.fields},
        ignores_deletes=engine is MergeEngine.PARTIAL_UPDATE and any(option_bool(schema, o) for o in IGNORE_DELETE),
        removes_on_delete=option_bool(schema, f"{engine}.remove-record-on-delete"),
        groups=tuple(SequenceGroup(group.sequence, bool({*group.sequence} & {*removing})) for group in groups),
    )


def skips_retracts(schema: PaimonSchema) -> bool:
    """Whether rows of kind -U and -D are as if they were not there, in a table that keeps whole rows: `ignore-delete`.
    Writers that know the option write none; files of before may have some."""
    return engine_of(schema) in WHOLE_ROWS and any(option_bool(schema, option) for option in IGNORE_DELETE)


def refuse_retract(rule: FieldRule, name: str) -> None:
    """Raises ValueError: a row of kind -U or -D of column `name`, whose function has no inverse."""
    assert rule.function not in RETRACTABLE
    raise ValueError(
        f"expected no row of kind -U or -D for column {name}, whose function {rule.function} cannot take a value back; "
        f"set {_FIELDS}{name}.ignore-retract"
    )


def sequence_fields(schema: PaimonSchema) -> tuple[str, ...]:
    """Columns of `sequence.field`, in order; none by default."""
    return listed(schema, "sequence.field")


def sequence_descends(schema: PaimonSchema) -> bool:
    """Whether the smallest value of `sequence.field` is the newest."""
    return schema.options.get("sequence.field.sort-order", "ascending").lower() == "descending"


def ordering_fields(schema: PaimonSchema) -> tuple[str, ...]:
    """Columns that order rows of one key: of `sequence.field`, and of sequence groups."""
    return (*sequence_fields(schema), *(name for group in groups_of(schema) for name in group.sequence))


@dataclass(frozen=True, slots=True)
class GroupOption:
    """An option fields.`sequence`.sequence-group = `columns`."""

    option: str
    sequence: tuple[str, ...]
    columns: tuple[str, ...]


def groups_of(schema: PaimonSchema) -> list[GroupOption]:
    """The options of sequence groups, in their order, whatever the merge engine."""
    return [
        GroupOption(key, tuple(key[len(_FIELDS) : -len(_GROUP)].split(",")), tuple(value.split(",")))
        for key, value in schema.options.items()
        if key.startswith(_FIELDS) and key.endswith(_GROUP)
    ]


def _rule(schema: PaimonSchema, engine: MergeEngine, name: str, group: int | None) -> FieldRule:
    function = Function(named_function(schema, engine, name))
    return FieldRule(
        function=function,
        ignores_retracts=option_bool(schema, f"{_FIELDS}{name}.ignore-retract") and function not in INTERNAL,
        group=group,
        delimiter=delimiter_of(schema, name),
        distinct=is_distinct(schema, name),
        elements=element_rule(schema, name, nested=function in NESTED) if function in OF_ELEMENTS else None,
    )


def delimiter_of(schema: PaimonSchema, name: str) -> str:
    """What `listagg` puts between texts of a column."""
    return schema.options.get(f"{_FIELDS}{name}.list-agg-delimiter", ",")


def is_distinct(schema: PaimonSchema, name: str) -> bool:
    """Whether `listagg` leaves out repeated parts of a column, and `collect` repeated elements."""
    return option_bool(schema, f"{_FIELDS}{name}.distinct")


def named_function(schema: PaimonSchema, engine: MergeEngine, name: str) -> str:
    """A partial update keeps what is not null, and in a group what is newest."""
    grouped = engine is MergeEngine.PARTIAL_UPDATE and any(name in group.columns for group in groups_of(schema))
    unnamed = Function.OF_GROUP if grouped else Function.LAST_NON_NULL_VALUE
    return fixed_function(schema, engine, name) or function_option(schema, name) or unnamed


def fixed_function(schema: PaimonSchema, engine: MergeEngine, name: str) -> Function | None:
    """The function of a column that decides, whatever options name: getAggFuncName of AggregateMergeFunction and
    PartialUpdateMergeFunction."""
    updates = engine is MergeEngine.PARTIAL_UPDATE
    if updates and any(name in group.sequence for group in groups_of(schema)):
        return Function.SEQUENCE
    if not updates and name in sequence_fields(schema):
        return Function.LAST_VALUE
    return Function.KEY if name in schema.primary_keys else None


def function_option(schema: PaimonSchema, name: str) -> str | None:
    """The function that options give a column, its own or the default."""
    return schema.options.get(f"{_FIELDS}{name}{_FUNCTION}", schema.options.get(f"{_FIELDS}default-aggregate-function"))


def listed(schema: PaimonSchema, option: str) -> tuple[str, ...]:
    """The names in an option, in order."""
    return tuple(name.strip() for name in schema.options.get(option, "").split(",") if name.strip())


def engine_of(schema: PaimonSchema) -> str:
    """The merge engine by its name, which we may not know."""
    return schema.options.get("merge-engine", str(MergeEngine.DEDUPLICATE)).lower()
