"""SQL text of queries -> ranges of columns by which files can be skipped. Other conditions are left out.

A range is never narrower than what its condition selects, so the computed skipping is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nightkeep.errors import UsageError
from nightkeep.sql_text.literals import Literal, read_literal

Part = TypeVar("Part")
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Range:
    """A range of one column's values, both ends included. None means no end."""

    low: Literal = None
    high: Literal = None


@dataclass(frozen=True, slots=True)
class Query:
    """One query: its text, and the range of each column. Every row of the query is in all of them."""

    text: str
    ranges: Mapping[str, Range]


def read_queries(text: str, *, subject: str) -> tuple[Query, ...]:
    """The queries of a file: SELECT statements or bare conditions, separated by semicolons or, without any, by lines.

    Raises UsageError, naming `subject`, for text that is no SQL and for text without a query.
    """
    is_separated = any(
        token.token_type is sqlglot.TokenType.SEMICOLON for token in _parsed(text, subject, sqlglot.tokenize)
    )
    parts = [text] if is_separated else text.splitlines()
    parsed = [node for part in parts for node in _parsed(part, subject, sqlglot.parse) if node is not None]
    queries = tuple(_query(node) for node in parsed if not isinstance(node, exp.Semicolon))
    if not queries:
        raise UsageError(f"{subject}: expected queries, found none")
    return queries


def _parsed(text: str, subject: str, read: Callable[..., Iterable[Part]]) -> list[Part]:
    try:
        return list(read(text, dialect="spark"))
    except RecursionError as failure:
        raise UsageError(f"{subject}: {text!r}: expected fewer conditions within each other") from failure
    except SqlglotError as failure:
        reason = str(failure).partition("\n")[0]
        raise UsageError(f"{subject}: {text!r}: expected a query or a condition, found {reason}") from failure


def _query(parsed: exp.Expr) -> Query:
    where = parsed.args.get("where") if isinstance(parsed, exp.Select) else None
    condition = where.this if where is not None else parsed
    return Query(parsed.sql(dialect="spark", comments=False), _ranges(condition))


_Ranges = Mapping[str, Range]


def _ranges(node: object) -> _Ranges:
    """Ranges that hold for every row the condition selects."""
    read = _READ.get(type(node))
    return {} if read is None else read(node)


def _and(node: exp.And) -> _Ranges:
    left, right = _ranges(node.this), _ranges(node.expression)
    return {name: _both(left.get(name), right.get(name)) for name in [*left, *(n for n in right if n not in left)]}


def _or(node: exp.Or) -> _Ranges:
    left, right = _ranges(node.this), _ranges(node.expression)
    spans = {name: _either(left[name], right[name]) for name in left if name in right}
    return {name: span for name, span in spans.items() if span != Range()}


def _both(left: Range | None, right: Range | None) -> Range:
    """The intersection of two ranges. If two ends cannot be compared, one of them is used."""
    if left is None or right is None:
        return left or right or Range()
    return Range(_end(left.low, right.low, max, left.low), _end(left.high, right.high, min, left.high))


def _either(left: Range, right: Range) -> Range:
    """A range that covers both ranges. If two ends cannot be compared, it has no end there."""
    low = None if None in (left.low, right.low) else _end(left.low, right.low, min, None)
    high = None if None in (left.high, right.high) else _end(left.high, right.high, max, None)
    return Range(low, high)


def _end(left: Literal, right: Literal, choose: Callable[[Any, Any], Literal], otherwise: Literal) -> Literal:
    if left is None or right is None:
        return right if left is None else left
    try:
        return choose(left, right)
    except TypeError:
        return otherwise


def _compared(node: exp.Expression) -> _Ranges:
    column, literal, is_mirrored = _sides(node)
    if column is None:
        return {}
    opens_up = isinstance(node, exp.GT | exp.GTE) != is_mirrored
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        return {column: Range(literal, literal)}
    return {column: Range(low=literal) if opens_up else Range(high=literal)}


def _sides(node: exp.Expression) -> tuple[str | None, Literal, bool]:
    for column, other, is_mirrored in ((node.this, node.expression, False), (node.expression, node.this, True)):
        literal = _literal(other)
        if isinstance(column, exp.Column) and literal is not None:
            return _name(column), literal, is_mirrored
    return None, None, False


def _between(node: exp.Between) -> _Ranges:
    low, high = _literal(node.args["low"]), _literal(node.args["high"])
    if not isinstance(node.this, exp.Column) or low is None or high is None:
        return {}
    return {_name(node.this): Range(low, high)}


def _in(node: exp.In) -> _Ranges:
    values = [_literal(item) for item in node.expressions]
    if not isinstance(node.this, exp.Column) or not values or None in values:
        return {}
    spans = [Range(value, value) for value in values]
    union = spans[0]
    for span in spans[1:]:
        union = _either(union, span)
    return {_name(node.this): union}


def _like(node: exp.Like) -> _Ranges:
    pattern = _literal(node.expression)
    if not isinstance(node.this, exp.Column) or not isinstance(pattern, str) or node.args.get("negate"):
        return {}
    prefix = pattern[: min([pattern.find(c) for c in "%_\\" if c in pattern], default=len(pattern))]
    return {_name(node.this): Range(prefix, prefix + _LAST_CHARACTER)} if prefix else {}


def _paren(node: exp.Paren) -> _Ranges:
    return _ranges(node.this)


def _literal(node: object) -> Literal:
    try:
        return read_literal(node)
    except ValueError:
        return None


def _name(column: exp.Column) -> str:
    """The column's full name with dots. It may begin with a table or be a path of fields; that is decided later."""
    return ".".join(part.name for part in column.parts)


_READ: Final[Mapping[type, Callable[[Any], _Ranges]]] = {
    exp.And: _and,
    exp.Or: _or,
    exp.Paren: _paren,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    **dict.fromkeys((exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _compared),
}


def of_columns(queries: Iterable[Query], columns: Iterable[str]) -> tuple[Query, ...]:
    """The queries with only the ranges of `columns`, under the names in `columns`.

    A query may qualify a column with its table (`t.a`) and may use another case, as in Spark.
    """
    known = list(columns)
    # An exact match takes precedence over columns that differ only in case.
    spelled = {**{name.lower(): name for name in reversed(known)}, **{name: name for name in known}}

    def named(name: str) -> str | None:
        ends = [name.split(".", i)[i] for i in range(name.count(".") + 1)]
        return next((spelled[end] for own in ends for end in (own, own.lower()) if end in spelled), None)

    return tuple(
        replace(query, ranges={column: r for name, r in query.ranges.items() if (column := named(name))})
        for query in queries
    )
