"""A value's text and a table's schema -> a typed expression, in Spark's semantics.

Anything that Spark might compute differently, or by its settings, is refused by name before any data is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from nightkeep.errors import UsageError, did_you_mean
from nightkeep.sql_text.literals import read_literal
from nightkeep.sql_text.rows import expression_types as types
from nightkeep.sql_text.rows.chains import is_reordered
from nightkeep.sql_text.rows.comparison_types import is_text, typed
from nightkeep.sql_text.rows.condition import ColumnRef, Test, Value
from nightkeep.sql_text.rows.expression import (
    Arithmetic,
    Chosen,
    Concatenated,
    Expression,
    FirstKnown,
    Negated,
    Operator,
)
from nightkeep.sql_text.rows.parse import test_of

_KNOWN: Final = "a column, a literal, + - * /, CASE, IF, COALESCE, NULLIF, CONCAT, || or CAST of a number"


@dataclass(frozen=True, slots=True)
class ValueScope:
    """Reads the values in a text. The whole text and the columns that it may name; every message needs both."""

    text: str
    schema: pa.Schema

    def value(self, node: object) -> Expression:
        """The expression at a node of the text. Raises UsageError, naming what is not understood."""
        build = _BUILD.get(type(node))
        if build is None or not isinstance(node, exp.Expression):
            raise self.wrong(node, _KNOWN)
        if {name for name, value in node.args.items() if value} - _UNDERSTOOD.get(type(node), _PARTS):
            raise self.wrong(node, _KNOWN)
        try:
            return build(self, node)
        except ValueError as failure:
            raise self.wrong(node, f"an expression whose types fit ({failure})") from failure

    def column(self, node: object) -> ColumnRef:
        """A column of plain values."""
        name = node.name if isinstance(node, exp.Column) and len(node.parts) == 1 else None
        if name is None or self.schema.get_field_index(name) < 0:
            known = f"{', '.join(self.schema.names)}{did_you_mean(str(name), self.schema.names)}"
            raise self.wrong(node, f"a column of the table ({known})")
        kind = self.schema.field(name).type
        if pa.types.is_nested(kind):
            raise self.wrong(node, f"a column of plain values, not of {kind}")
        return ColumnRef((name,), kind)

    def test(self, node: exp.Expression) -> Test:
        return test_of(node, self.text, self.schema)

    def wrong(self, node: object, expected: str) -> UsageError:
        found = node.sql(dialect="spark") if isinstance(node, exp.Expression) else str(node)
        return UsageError(f"--set {self.text!r}: expected {expected}, found {found}")


def _plain(scope: ValueScope, node: exp.Literal) -> Expression:
    text = str(node.this)
    if node.is_string:
        return Value(text, pa.string())
    if not text.isdigit() and set(text) - set("0123456789."):
        if math.isinf(float(text)):
            raise ValueError(f"{text}, which DOUBLE does not hold")
        return Value(float(text), types.DOUBLE)
    return _number(text, negative=False)


def _number(text: str, *, negative: bool) -> Expression:
    """A number as Spark has it: the smallest of INT, BIGINT and DECIMAL that holds it."""
    sign = "-" if negative else ""
    if text.isdigit():
        value = int(sign + text)
        for kind in (pa.int32(), pa.int64()):
            if -(1 << (kind.bit_width - 1)) <= value < 1 << (kind.bit_width - 1):
                return Value(value, kind)
        return Value(Decimal(sign + text), types.decimal_of(len(str(abs(value))), 0))
    held = Decimal(sign + text)
    _, figures, exponent = held.as_tuple()
    scale = -int(exponent)
    return Value(held, types.decimal_of(max(len(figures), scale), scale))


def _negated(scope: ValueScope, node: exp.Neg) -> Expression:
    literal = node.this
    # -2147483648 is one literal: 2147483648 alone would be a BIGINT.
    if isinstance(literal, exp.Literal) and not literal.is_string and not set(literal.this) - set("0123456789."):
        return _number(str(literal.this), negative=True)
    if isinstance(literal, exp.TryCast) and isinstance(literal.this, exp.Literal) and not literal.args.get("safe"):
        return _literal_as(node, literal.to)
    value = scope.value(node.this)
    if not types.is_number(value.type):
        raise ValueError(f"- of {value.type}")
    return Negated(value, value.type)


def _cast(scope: ValueScope, node: exp.TryCast) -> Expression:
    is_decimal = node.to.this is exp.DType.DECIMAL
    if (
        isinstance(node.this, exp.Literal)
        and (is_decimal or not node.this.is_string)
        and not is_text(_type_of(node.to))
    ):
        return _literal_as(node, node.to)
    return types.cast(scope.value(node.this), _type_of(node.to))


def _literal_as(node: exp.Expression, to: exp.DataType) -> Expression:
    """5L, -1.5F, 2BD, or a cast of a number to a type that holds it."""
    kind = _type_of(to)
    return types.converted(typed(read_literal(node), kind), kind)


def _time(scope: ValueScope, node: exp.Cast) -> Expression:
    kinds: dict[exp.DType, pa.DataType] = {exp.DType.DATE: pa.date32(), exp.DType.TIMESTAMPNTZ: pa.timestamp("us")}
    return Value(read_literal(node), kinds.get(node.to.this, _INSTANT))


def _arithmetic(operator: Operator) -> Callable[[ValueScope, exp.Expression], Expression]:
    def build(scope: ValueScope, node: exp.Expression) -> Expression:
        left, right = scope.value(node.this), scope.value(node.expression)
        for side in (left, right):
            if not types.is_number(side.type):
                raise ValueError(f"{operator} of {side.type}")
        kind = types.result(operator, left, right)
        if pa.types.is_decimal(kind):
            return Arithmetic(operator, types.as_decimal(left), types.as_decimal(right), kind)
        built = Arithmetic(operator, types.converted(left, kind), types.converted(right, kind), kind)
        if is_reordered(built):
            raise ValueError("a constant inside a chain of + or *, which Spark moves to its end: write it there")
        return built

    return build


def _case(scope: ValueScope, node: exp.Case) -> Expression:
    if node.this is not None:
        raise scope.wrong(node, "CASE WHEN condition THEN value, without a value after CASE")
    branches = [(scope.test(each.this), scope.value(each.args["true"])) for each in node.args["ifs"]]
    default = node.args.get("default")
    return _chosen(branches, Value(None, pa.null()) if default is None else scope.value(default))


def _if(scope: ValueScope, node: exp.If) -> Expression:
    otherwise = node.args.get("false")
    if otherwise is None:
        raise scope.wrong(node, "IF with three arguments")
    return _chosen([(scope.test(node.this), scope.value(node.args["true"]))], scope.value(otherwise))


def _nullif(scope: ValueScope, node: exp.Nullif) -> Expression:
    same = scope.test(exp.EQ(this=node.this.copy(), expression=node.expression.copy()))
    return _chosen([(same, Value(None, pa.null()))], scope.value(node.this))


def _chosen(branches: Sequence[tuple[Test, Expression]], otherwise: Expression) -> Expression:
    kind = types.common([*(value for _, value in branches), otherwise])
    return types.converted(Chosen(tuple(branches), otherwise, pa.null()), kind)


def _coalesce(scope: ValueScope, node: exp.Coalesce) -> Expression:
    values = tuple(scope.value(each) for each in (node.this, *node.expressions))
    return types.converted(FirstKnown(values, pa.null()), types.common(values))


def _concat(scope: ValueScope, node: exp.Expression) -> Expression:
    parts = node.expressions if isinstance(node, exp.Concat) else (node.this, node.expression)
    values = tuple(scope.value(each) for each in parts)
    for value in values:
        if not is_text(value.type):
            raise ValueError(f"a text of {value.type}, use CAST(.. AS STRING)")
    return Concatenated(values, pa.string())


def _type_of(node: exp.DataType) -> pa.DataType:
    if node.this is exp.DType.DECIMAL:
        precision, scale = ([int(each.name) for each in node.expressions] + [10, 0][len(node.expressions) :])[:2]
        return types.decimal_of(precision, scale)
    kind = _TYPES.get(node.this)
    if kind is None or node.expressions:
        raise ValueError(f"CAST to {node.sql(dialect='spark')}")
    return kind


_INSTANT: Final[pa.DataType] = pa.timestamp("us", "UTC")
_TYPES: Final[Mapping[exp.DType, pa.DataType]] = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
}
_BUILD: Final[Mapping[type, Callable[[ValueScope, Any], Expression]]] = {
    exp.Column: ValueScope.column,
    exp.Literal: _plain,
    exp.Null: lambda scope, node: Value(None, pa.null()),
    exp.Boolean: lambda scope, node: Value(bool(node.this), pa.bool_()),
    exp.HexString: lambda scope, node: Value(read_literal(node), pa.binary()),
    exp.Paren: lambda scope, node: scope.value(node.this),
    exp.Neg: _negated,
    exp.Cast: _time,
    exp.TryCast: _cast,
    exp.Add: _arithmetic(Operator.PLUS),
    exp.Sub: _arithmetic(Operator.MINUS),
    exp.Mul: _arithmetic(Operator.TIMES),
    exp.Div: _arithmetic(Operator.OVER),
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _nullif,
    exp.Coalesce: _coalesce,
    exp.Concat: _concat,
    exp.DPipe: _concat,
}
_PARTS: Final = frozenset({"this", "expression", "expressions"})
"""Arguments of nodes that are understood. Others change what a node means and are refused, as TRY_CAST's `safe`."""
_UNDERSTOOD: Final[Mapping[type, frozenset[str]]] = {
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Div: frozenset({"this", "expression", "safe"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Concat: frozenset({"expressions", "safe"}),
}
