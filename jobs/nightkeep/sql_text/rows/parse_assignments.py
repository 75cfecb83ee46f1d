"""--set texts and a table's schema -> assignments, in Spark's semantics.

Anything that Spark might compute differently, or by its settings, is refused by name before any data is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nightkeep.errors import UsageError
from nightkeep.sql_text.rows import expression_types as types
from nightkeep.sql_text.rows.condition import ColumnRef, Test, Value, columns_of
from nightkeep.sql_text.rows.expression import Arithmetic, Assignment, Chosen, Concatenated, Expression, FirstKnown
from nightkeep.sql_text.rows.parse_expression import ValueScope

_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=4)
def assignments(texts: tuple[str, ...], schema: pa.Schema) -> tuple[Assignment, ...]:
    """What each of `texts`, "column = expression", sets. Expressions see the row as it was.

    Raises UsageError for anything that is not understood, naming it: an unknown column, one that is set twice, a value
    of another type than its column.
    """
    found = []
    for text in texts:
        try:
            found.append(_assignment(text, schema))
        except RecursionError as failure:
            raise UsageError(f"--set {text!r}: expected fewer expressions within each other") from failure
    twice = sorted({each.column for each in found if [one.column for one in found].count(each.column) > 1})
    if not found or twice:
        what = f"{', '.join(twice)} more than once" if twice else "none"
        raise UsageError(f"--set: expected columns to set, each once, found {what}")
    return tuple(found)


def read_columns(found: Sequence[Assignment]) -> frozenset[str]:
    """The columns that the values are computed from."""
    return frozenset().union(*(_columns(each.value) for each in found))


def _columns(value: Expression) -> frozenset[str]:
    if isinstance(value, ColumnRef):
        return frozenset(value.path[:1])
    tests: list[Test] = [test for test, _ in value.branches] if isinstance(value, Chosen) else []
    return frozenset().union(*map(columns_of, tests), *map(_columns, parts_of(value)))


def parts_of(value: Expression) -> tuple[Expression, ...]:
    """The expressions directly within one."""
    match value:
        case ColumnRef() | Value():
            return ()
        case Arithmetic():
            return (value.left, value.right)
        case Chosen():
            return (*(each for _, each in value.branches), value.otherwise)
        case FirstKnown() | Concatenated():
            return value.values
        case _:
            return (value.value,)


def _assignment(text: str, schema: pa.Schema) -> Assignment:
    left, right = _sides(text)
    scope = ValueScope(text, schema)
    column = scope.column(_parsed(text, left))
    value = scope.value(_parsed(text, right))
    try:
        return Assignment(column.path[0], types.converted(value, column.type), right.strip())
    except ValueError as failure:
        raise scope.wrong(right.strip(), f"a value of column {column.path[0]}, {column.type} ({failure})") from failure


def _sides(text: str) -> tuple[str, str]:
    """The texts before and after the first equals sign that is not quoted."""
    try:
        tokens = sqlglot.tokenize(text, dialect="spark")
    except SqlglotError as failure:
        raise UsageError(f"--set {text!r}: expected column = expression, found {failure}") from failure
    _require_plain_texts(text, [token.token_type for token in tokens])
    equals = next((token for token in tokens if token.token_type == sqlglot.TokenType.EQ), None)
    if equals is None:
        raise UsageError(f"--set {text!r}: expected column = expression, found no equals sign")
    return text[: equals.start], text[equals.end + 1 :]


def _require_plain_texts(text: str, kinds: Sequence[object]) -> None:
    """Refuse texts that versions of Spark read differently."""
    if (sqlglot.TokenType.STRING, sqlglot.TokenType.STRING) in pairwise(kinds):
        raise UsageError(f"--set {text!r}: expected one text, as 'it\\'s', found two next to each other")
    odd = sorted(set(_ESCAPED.findall(text)) - set("\\'\"nt"))
    if odd:
        raise UsageError(f"--set {text!r}: expected only \\\\ \\' \\\" \\n \\t after a backslash, found \\{odd[0]}")


def _parsed(text: str, part: str) -> exp.Expression:
    try:
        nodes = sqlglot.parse(part, dialect="spark")
    except SqlglotError as failure:
        reason = str(failure).partition("\n")[0]
        raise UsageError(f"--set {text!r}: expected column = expression, found {reason}") from failure
    if len(nodes) != 1 or not isinstance(nodes[0], exp.Expression):
        raise UsageError(f"--set {text!r}: expected one expression, found {len(nodes) if part.strip() else 'none'}")
    return nodes[0]
