"""--rows-where text and a table's schema -> a test of rows, in Spark's semantics.

Three-valued logic; NaN equals itself and is above every number; zeros of both signs are equal. An expression that Spark
might read differently is refused by name before any data is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nightkeep.errors import UsageError, did_you_mean
from nightkeep.model.variant_type import is_variant
from nightkeep.sql_text.literals import read_literal
from nightkeep.sql_text.rows.comparison_types import is_text, shared, typed
from nightkeep.sql_text.rows.condition import (
    Among,
    And,
    ColumnRef,
    Compare,
    Comparison,
    IsNull,
    Like,
    Not,
    Or,
    Test,
    Value,
)
from nightkeep.sql_text.rows.typed_literals import is_spelled_as

SHORT: Final = 200
"""How many characters of a condition fit on a line of output."""


@lru_cache(maxsize=4)
def rows_where(text: str, schema: pa.Schema) -> Test:
    """The condition `text`, in Spark SQL, over the columns of `schema`.

    Comparisons of columns with literals or columns of one kind, <=>, IN, BETWEEN, LIKE, IS [NOT] NULL, AND, OR, NOT.
    Raises UsageError for anything else, naming it, and for a literal that is no value of its column's type.
    """
    try:
        return _parsed(text, schema)
    except RecursionError as failure:
        raise UsageError(f"condition on rows {text!r}: expected fewer conditions within each other") from failure


def _parsed(text: str, schema: pa.Schema) -> Test:
    try:
        nodes = sqlglot.parse(text, dialect="spark")
    except SqlglotError as failure:
        reason = str(failure).partition("\n")[0]
        raise UsageError(f"condition on rows {text!r}: expected one that parses, found {reason}") from failure
    if len(nodes) != 1 or not isinstance(nodes[0], exp.Expression):
        raise UsageError(f"condition on rows {text!r}: expected one condition, found {len(nodes)}")
    return _Condition(text, schema).test(nodes[0])


def test_of(node: exp.Expression, text: str, schema: pa.Schema) -> Test:
    """The condition at a node of `text`. Raises UsageError as `rows_where`."""
    return _Condition(text, schema).test(node)


def shortened(text: str) -> str:
    """A condition, cut for people to read: one with thousands of keys does not fit on a line."""
    return text if len(text) <= SHORT else f"{text[:SHORT]}... ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class _Condition:
    """The whole text and the columns that it may name; every message needs both."""

    text: str
    schema: pa.Schema

    def test(self, node: exp.Expression) -> Test:
        build = _TESTS.get(type(node))
        # Other arguments of the node change its meaning and are refused: ESCAPE, SYMMETRIC, a subquery of IN.
        if build is None or {name for name, value in node.args.items() if value} - _UNDERSTOOD:
            expected = "comparisons, <=>, IN, BETWEEN, LIKE, IS NULL, AND, OR and NOT of columns and literals"
            raise self.wrong(node, expected)
        test = build(self, node)
        return Not(test) if node.args.get("negate") else test

    def column(self, node: object) -> ColumnRef:
        if not isinstance(node, exp.Column | exp.Dot):
            raise self.wrong(node, "a column")
        path = tuple(str(part.name) for part in node.parts)
        fields = list(self.schema)
        for place, name in enumerate(path):
            field = next((field for field in fields if field.name == name), None)
            if field is None:
                known = f"{', '.join(self.schema.names)}{did_you_mean(name, self.schema.names)}"
                raise self.wrong(node, f"a column of the table ({known})")
            if place == len(path) - 1:
                break
            if is_variant(field.type):
                raise self.wrong(node, "a whole column, as a variant has values and no fields")
            fields = list(field.type) if pa.types.is_struct(field.type) else []
        assert field is not None
        return ColumnRef(path, field.type)

    def compare(self, order: Comparison, left: exp.Expression, right: exp.Expression) -> Compare:
        one, other = self._operand(left), self._operand(right)
        if isinstance(one, ColumnRef) and isinstance(other, ColumnRef):
            kind = shared(one.type, other.type)
            if kind is None:
                raise self.wrong(right, f"a column that compares with one of type {one.type}")
            return Compare(order, ColumnRef(one.path, kind), ColumnRef(other.path, kind))
        if isinstance(one, ColumnRef):
            value = self._literal(other, one, right)
            return Compare(order, ColumnRef(one.path, value.type), value)
        if isinstance(other, ColumnRef):
            value = self._literal(one, other, left)
            return Compare(order, value, ColumnRef(other.path, value.type))
        raise self.wrong(left, "a column on one side")

    def _literal(self, literal: object, column: ColumnRef, node: exp.Expression) -> Value:
        """The literal of `node` as the type as which it is compared with the column."""
        try:
            return typed(literal, column.type)
        except ValueError as failure:
            raise self.wrong(node, f"a literal that compares with type {column.type} ({failure})") from failure

    def _operand(self, node: exp.Expression) -> object:
        if isinstance(node, exp.Paren):
            return self._operand(node.this)
        if isinstance(node, exp.Column | exp.Dot):
            return self.column(node)
        try:
            return read_literal(node)
        except ValueError as failure:
            raise self.wrong(node, "a column or a literal") from failure

    def wrong(self, node: object, expected: str) -> UsageError:
        found = node.sql(dialect="spark") if isinstance(node, exp.Expression) else str(node)
        return UsageError(f"condition on rows {self.text!r}: expected {expected}, found {found}")


def _between(scope: _Condition, node: exp.Expression) -> Test:
    low, high = node.args["low"], node.args["high"]
    above = scope.compare(Comparison.LESS_OR_EQUAL, low, node.this)
    return And(above, scope.compare(Comparison.LESS_OR_EQUAL, node.this, high))


def _in(scope: _Condition, node: exp.Expression) -> Test:
    if not node.expressions:
        raise scope.wrong(node, "IN with a list of literals")
    if isinstance(node.this, exp.Tuple):
        return _tuples(scope, node)
    tests = [scope.compare(Comparison.EQUAL, node.this, item) for item in node.expressions]
    sets: dict[ColumnRef, list[object]] = {}
    rest: list[Test] = []
    for test in tests:
        if isinstance(test.left, ColumnRef) and isinstance(test.right, Value) and test.right.value is not None:
            sets.setdefault(test.left, []).append(test.right.value)
        else:
            rest.append(test)
    memberships = [Among((column,), _keys([column], [values])) for column, values in sets.items()]
    return reduce(Or, [*memberships, *rest])


def _tuples(scope: _Condition, node: exp.Expression) -> Test:
    """(a, b) IN ((1L, 'x'), ..): Spark compares tuples only of equal types, and takes a null for equal to a null."""
    columns = [scope.column(each) for each in node.this.expressions]
    values: list[list[object]] = [[] for _ in columns]
    for item in node.expressions:
        literals = item.expressions if isinstance(item, exp.Tuple) else []
        if len(literals) != len(columns):
            raise scope.wrong(item, f"{len(columns)} literals")
        for held, column, literal in zip(values, columns, literals, strict=True):
            held.append(_exactly(scope, column, literal))
    return Among(tuple(columns), _keys(columns, values))


def _exactly(scope: _Condition, column: ColumnRef, node: exp.Expression) -> object:
    expected = f"a literal of type {column.type} as Spark has it, such as 1L, 1.5D or DATE '..'"
    if not is_spelled_as(node, column.type):
        raise scope.wrong(node, expected)
    try:
        return typed(read_literal(node), column.type).value
    except ValueError as failure:
        raise scope.wrong(node, f"{expected} ({failure})") from failure


def _keys(columns: Sequence[ColumnRef], values: Sequence[Sequence[object]]) -> pa.Table:
    arrays = [pa.array(held, column.type) for held, column in zip(values, columns, strict=True)]
    return pa.table(dict(zip(map(str, range(len(arrays))), arrays, strict=True)))


def _is(scope: _Condition, node: exp.Expression) -> Test:
    if not isinstance(node.expression, exp.Null):
        raise scope.wrong(node, "IS NULL or IS NOT NULL")
    return IsNull(scope.column(node.this))


def _like(scope: _Condition, node: exp.Expression) -> Test:
    column, pattern = scope.column(node.this), node.expression
    plain = isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.this
    if not plain or not is_text(column.type):
        raise scope.wrong(node, "LIKE of a text column with a text of plain characters, % and _")
    return Like(column, str(pattern.this))


def _flag(scope: _Condition, node: exp.Expression) -> Test:
    """A boolean column is a condition by itself."""
    column = scope.column(node)
    if not pa.types.is_boolean(column.type):
        raise scope.wrong(node, "a condition, or a boolean column")
    return Compare(Comparison.EQUAL, column, Value(value=True, type=pa.bool_()))


def _compared(order: Comparison, *, swapped: bool = False) -> Callable[[_Condition, exp.Expression], Test]:
    def build(scope: _Condition, node: exp.Expression) -> Test:
        left, right = (node.expression, node.this) if swapped else (node.this, node.expression)
        return scope.compare(order, left, right)

    return build


_TESTS: Final[Mapping[type, Callable[[_Condition, exp.Expression], Test]]] = {
    exp.EQ: _compared(Comparison.EQUAL),
    exp.NEQ: _compared(Comparison.DIFFERENT),
    exp.LT: _compared(Comparison.LESS),
    exp.LTE: _compared(Comparison.LESS_OR_EQUAL),
    exp.GT: _compared(Comparison.LESS, swapped=True),
    exp.GTE: _compared(Comparison.LESS_OR_EQUAL, swapped=True),
    exp.NullSafeEQ: _compared(Comparison.SAME),
    exp.And: lambda scope, node: And(scope.test(node.this), scope.test(node.expression)),
    exp.Or: lambda scope, node: Or(scope.test(node.this), scope.test(node.expression)),
    exp.Not: lambda scope, node: Not(scope.test(node.this)),
    exp.Paren: lambda scope, node: scope.test(node.this),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.Column: _flag,
    exp.Dot: _flag,
}
_UNDERSTOOD: Final = frozenset({"this", "expression", "expressions", "low", "high", "negate", "table", "db", "catalog"})
