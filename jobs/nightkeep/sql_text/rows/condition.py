"""A condition on rows as a tree of typed tests. The two evaluations share only these values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa


class Comparison(StrEnum):
    """How two values are compared. SAME is <=>, which is never unknown."""

    EQUAL = "="
    DIFFERENT = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    SAME = "<=>"


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column or a field of a struct, compared as `type`. `path` has logical names."""

    path: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Value:
    """A literal of `type`; None is NULL."""

    value: object
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Compare:
    order: Comparison
    left: ColumnRef | Value
    right: ColumnRef | Value


@dataclass(frozen=True, slots=True, eq=False)
class Among:
    """Whether the values of `columns` are a row of `keys`, which has a column for each, of its type and without nulls.

    With a single column, null is unknown. Several columns are a tuple, which is never null: with a null it is no key.
    """

    columns: tuple[ColumnRef, ...]
    keys: pa.Table


@dataclass(frozen=True, slots=True)
class IsNull:
    column: ColumnRef


@dataclass(frozen=True, slots=True)
class Like:
    """LIKE. In `pattern`, % is any text and _ any single character; there is no escape."""

    column: ColumnRef
    pattern: str


@dataclass(frozen=True, slots=True)
class Not:
    test: Test


@dataclass(frozen=True, slots=True)
class And:
    left: Test
    right: Test


@dataclass(frozen=True, slots=True)
class Or:
    left: Test
    right: Test


Test: TypeAlias = Compare | Among | IsNull | Like | Not | And | Or


def columns_of(test: Test) -> frozenset[str]:
    """The top-level columns that the test reads."""
    match test:
        case Compare(_, left, right):
            return frozenset(side.path[0] for side in (left, right) if isinstance(side, ColumnRef))
        case Among(columns, _):
            return frozenset(column.path[0] for column in columns)
        case IsNull(column) | Like(column, _):
            return frozenset({column.path[0]})
        case Not(inner):
            return columns_of(inner)
        case And(left, right) | Or(left, right):
            return columns_of(left) | columns_of(right)
