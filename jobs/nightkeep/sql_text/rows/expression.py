"""The value that a column is set to, as a tree of typed expressions. The two evaluations share only these values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa

from nightkeep.sql_text.rows.condition import ColumnRef, Test, Value


class Operator(StrEnum):
    """Arithmetic on two numbers of one type. OVER is only for DOUBLE."""

    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    OVER = "/"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An integer beyond `type`, and a division of a value by zero, have no value: rows with one are refused.

    Operands are of `type`, but for decimals, which keep their own: the result is exact.
    """

    operator: Operator
    left: Expression
    right: Expression
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Negated:
    value: Expression
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Converted:
    """A number as `type`: a decimal is rounded half up. A value beyond `type` is refused. Of text: any number."""

    value: Expression
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Chosen:
    """CASE: the value of the first test that is true, else `otherwise`. Others are not evaluated."""

    branches: tuple[tuple[Test, Expression], ...]
    otherwise: Expression
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class FirstKnown:
    """COALESCE: the first value that is not null. Later ones are not evaluated."""

    values: tuple[Expression, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Concatenated:
    """CONCAT of texts; null if any is null."""

    values: tuple[Expression, ...]
    type: pa.DataType


Expression: TypeAlias = ColumnRef | Value | Arithmetic | Negated | Converted | Chosen | FirstKnown | Concatenated


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column` becomes `value`, which has the column's type. `text` is the value as it was asked for, in Spark SQL."""

    column: str
    value: Expression
    text: str


class UnfitValueError(Exception):
    """A value that Spark SQL has none of, or that does not fit its column. The message names the expression's part."""
