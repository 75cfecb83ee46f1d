"""--where text -> a test of typed partition values. The text is checked completely before any value is tested.

Uses SQL's three-valued logic: a comparison with NULL is unknown, and a partition is selected only if the test is true.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nightkeep.errors import UsageError, did_you_mean
from nightkeep.sql_text.literals import Literal, alike, read_literal

Partition: TypeAlias = Mapping[str, object]
Truth: TypeAlias = bool | None
Comparator: TypeAlias = Callable[[Any, Any], bool]
_Test: TypeAlias = Callable[[Partition], Truth]


def partition_filter(text: str | None, columns: tuple[str, ...]) -> Callable[[Partition], bool]:
    """A function from one partition's values by column name to whether the filter selects it.

    `text` is a condition in Spark SQL over `columns`, the partition columns: comparisons of a column with a
    literal, IN, BETWEEN, LIKE, IS [NOT] NULL, AND, OR, NOT. None selects everything. A literal is converted to
    the type of the value it meets; NaN equals itself and is the largest number, as in Spark. Values are str,
    int, bool, Decimal, float, bytes, date, datetime (UTC where it has no zone), time or None.
    Raises UsageError for anything else; the function it returns does so for a literal that is no such value.
    """
    if text is None:
        return lambda values: True
    if not columns:
        raise UsageError(f"partition filter {text!r}: expected none, as the table has no partition columns, found one")
    try:
        test = _Filter(text, columns).test(_parse(text))
    except RecursionError as failure:
        raise UsageError(f"partition filter {text!r}: expected fewer conditions within each other") from failure
    return lambda values: test(values) is True


def _parse(text: str) -> exp.Expression:
    try:
        nodes = sqlglot.parse(text, dialect="spark")
    except SqlglotError as failure:
        reason = str(failure).partition("\n")[0]
        raise UsageError(f"partition filter {text!r}: expected a condition, found {reason}") from failure
    if len(nodes) != 1 or not isinstance(nodes[0], exp.Expression):
        raise UsageError(f"partition filter {text!r}: expected one condition, found {len(list(filter(None, nodes)))}")
    return nodes[0]


@dataclass(frozen=True, slots=True)
class _Filter:
    """The whole text and the columns that it may name; every message needs both."""

    text: str
    columns: tuple[str, ...]

    def test(self, node: exp.Expression) -> _Test:
        build = _TESTS.get(type(node))
        # Other arguments of the node change its meaning, such as SYMMETRIC or a subquery of IN, and are refused.
        if build is None or {name for name, value in node.args.items() if value} - _UNDERSTOOD:
            raise self.wrong(node, "comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR and NOT of partition columns")
        test = build(self, node)
        return _negation(test) if node.args.get("negate") else test

    def column(self, node: object) -> str:
        """The column with this name. Upper and lower case are ignored if only one column matches, as in Spark."""
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            raise self.wrong(node, "a partition column")
        near = [name for name in self.columns if name.lower() == node.name.lower()]
        if node.name not in near and len(near) != 1:
            raise self.wrong(node, "a partition column")
        return str(node.name) if node.name in near else near[0]

    def literal(self, node: object) -> Literal:
        try:
            return read_literal(node)
        except ValueError as failure:
            raise self.wrong(node, "a literal") from failure

    def wrong(self, node: object, expected: str) -> UsageError:
        found = node.sql(dialect="spark") if isinstance(node, exp.Expression) else str(node)
        known = f"partition columns are {', '.join(self.columns)}{did_you_mean(found, self.columns)}"
        return UsageError(f"partition filter {self.text!r}: expected {expected} ({known}), found {found}")


def _and(scope: _Filter, node: exp.Expression) -> _Test:
    left, right = scope.test(node.this), scope.test(node.expression)
    return lambda values: _both(left(values), right(values))


def _or(scope: _Filter, node: exp.Expression) -> _Test:
    left, right = scope.test(node.this), scope.test(node.expression)
    return lambda values: _negated(_both(_negated(left(values)), _negated(right(values))))


def _not(scope: _Filter, node: exp.Expression) -> _Test:
    return _negation(scope.test(node.this))


def _negation(test: _Test) -> _Test:
    return lambda values: _negated(test(values))


def _both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _paren(scope: _Filter, node: exp.Expression) -> _Test:
    return scope.test(node.this)


def _comparison(scope: _Filter, node: exp.Expression) -> _Test:
    compare, mirrored = _COMPARE[type(node)]
    if isinstance(node.expression, exp.Column) and not isinstance(node.this, exp.Column):
        return _compared(scope, node.expression, node.this, mirrored)
    return _compared(scope, node.this, node.expression, compare)


def _compared(scope: _Filter, left: object, right: object, compare: Comparator) -> _Test:
    name, literal = scope.column(left), scope.literal(right)

    def test(values: Partition) -> Truth:
        value = values[name]
        if value is None or literal is None:
            return None
        try:
            return compare(*alike(value, literal))
        except ValueError as failure:
            raise scope.wrong(right, f"a literal that compares with {name} = {value!r}") from failure

    return test


def _between(scope: _Filter, node: exp.Expression) -> _Test:
    low = _compared(scope, node.this, node.args["low"], operator.ge)
    high = _compared(scope, node.this, node.args["high"], operator.le)
    return lambda values: _both(low(values), high(values))


def _in(scope: _Filter, node: exp.Expression) -> _Test:
    if not node.expressions:
        raise scope.wrong(node, "IN with a list of literals")
    tests = [_compared(scope, node.this, item, operator.ne) for item in node.expressions]

    def test(values: Partition) -> Truth:
        differs: Truth = True
        for each in tests:
            differs = _both(differs, each(values))
        return _negated(differs)

    return test


def _is(scope: _Filter, node: exp.Expression) -> _Test:
    name = scope.column(node.this)
    if not isinstance(node.expression, exp.Null):
        raise scope.wrong(node, "IS NULL or IS NOT NULL")
    return lambda values: values[name] is None


def _like(scope: _Filter, node: exp.Expression) -> _Test:
    name = scope.column(node.this)
    pattern = scope.literal(node.expression)
    if not isinstance(pattern, str) or "\\" in pattern:
        raise scope.wrong(node, "LIKE with a text of plain characters, % and _")
    wildcards = {"%": ".*", "_": "."}
    matcher = re.compile("".join(wildcards.get(c) or re.escape(c) for c in pattern), re.DOTALL)

    def test(values: Partition) -> Truth:
        value = values[name]
        if value is None:
            return None
        if not isinstance(value, str):
            raise scope.wrong(node, f"LIKE on a text column, and {name} holds {value!r}")
        return matcher.fullmatch(value) is not None

    return test


_COMPARE: Final[Mapping[type, tuple[Comparator, Comparator]]] = {
    exp.EQ: (operator.eq, operator.eq),
    exp.NEQ: (operator.ne, operator.ne),
    exp.LT: (operator.lt, operator.gt),
    exp.LTE: (operator.le, operator.ge),
    exp.GT: (operator.gt, operator.lt),
    exp.GTE: (operator.ge, operator.le),
}
"""For each node, its comparison and the equivalent one with its sides swapped."""

_TESTS: Final[Mapping[type, Callable[[_Filter, exp.Expression], _Test]]] = {
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Paren: _paren,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    **dict.fromkeys(_COMPARE, _comparison),
}

_UNDERSTOOD: Final = frozenset({"this", "expression", "expressions", "low", "high", "negate"})
