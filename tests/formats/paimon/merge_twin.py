"""Rows of one key, one by one -> the row that Paimon's merge engine makes of them. Slow, and as Java is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.formats.paimon import element_twin

from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules

Row = tuple[int, Mapping[str, Any]]
"""The byte of the row's kind, and its values by column."""

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
DIGITS = 5
"""Of the decimals here; whole numbers have 8 bits."""


class CannotMerge(Exception):
    """A retract came where the engine allows none, or a number is beyond its type."""


def merged(rows: Sequence[Row], rules: MergeRules) -> dict[str, Any] | None:
    """None if the key has no row. Raises CannotMerge as Java raises."""
    if len(rows) == 1 and rows[0][0] in (INSERT, UPDATE_AFTER):
        return dict(rows[0][1])
    kind, values = result(rows, rules)
    return None if kind == DELETE else values


def result(rows: Sequence[Row], rules: MergeRules) -> tuple[int, dict[str, Any]]:
    """An insert, or a delete with the values that it holds. Raises CannotMerge as Java raises."""
    return (_updated if rules.engine is MergeEngine.PARTIAL_UPDATE else _aggregated)(rows, rules)


def _updated(rows: Sequence[Row], rules: MergeRules) -> tuple[int, dict[str, Any]]:
    row: dict[str, Any] = dict.fromkeys(rules.fields)
    begun = inserted = deleted = False
    seen: set[str] = set()
    for kind, values in rows:
        deleted = False
        if kind in (UPDATE_BEFORE, DELETE):
            if not begun:
                row, begun = dict(values), True
            if rules.ignores_deletes:
                continue
            if rules.groups:
                deleted = _retracted_by_groups(row, kind, values, rules)
            elif not rules.removes_on_delete:
                raise CannotMerge
            elif kind == DELETE:
                row, deleted = dict(values), True
            continue
        _updated_by_groups(row, values, rules, seen)
        begun = inserted = True
    return INSERT if inserted and not deleted else DELETE, row


def _updated_by_groups(row: dict[str, Any], values: Mapping[str, Any], rules: MergeRules, seen: set[str]) -> None:
    newer = [_is_newer(row, values, group.fields) for group in rules.groups]
    for name, rule in rules.fields.items():
        if rule.group is None:
            row[name] = _agg(rule, row[name], values[name], name, seen)
            continue
        match newer[rule.group], rule.function:
            case None, _:
                pass
            case True, Function.SEQUENCE | Function.OF_GROUP:
                row[name] = values[name]
            case True, _:
                row[name] = _agg(rule, row[name], values[name], name, seen)
            case False, Function.SEQUENCE | Function.OF_GROUP:
                pass
            case False, _:
                row[name] = _agg_reversed(rule, row[name], values[name], name, seen)


def _retracted_by_groups(row: dict[str, Any], kind: int, values: Mapping[str, Any], rules: MergeRules) -> bool:
    """Whether the row is gone."""
    newer = [_is_newer(row, values, group.fields) for group in rules.groups]
    if kind == DELETE and any(n for n, group in zip(newer, rules.groups, strict=True) if group.removes):
        row |= values
        return True
    for name, rule in rules.fields.items():
        if rule.group is None or newer[rule.group] is None:
            continue
        if rule.function is Function.SEQUENCE:
            row[name] = values[name] if newer[rule.group] else row[name]
        elif rule.function is Function.OF_GROUP:
            row[name] = None if newer[rule.group] else row[name]
        elif not rule.ignores_retracts:
            row[name] = _retract(rule, row[name], values[name])
    return False


def _is_newer(row: Mapping[str, Any], values: Mapping[str, Any], fields: Sequence[str]) -> bool | None:
    """None for a row without a sequence in this group."""
    if all(values[name] is None for name in fields):
        return None
    return [_null_first(values[name]) for name in fields] >= [_null_first(row[name]) for name in fields]


def _null_first(value: Any) -> Any:
    return (False,) if value is None else (True, _order(value))


def _aggregated(rows: Sequence[Row], rules: MergeRules) -> tuple[int, dict[str, Any]]:
    row: dict[str, Any] = dict.fromkeys(rules.fields)
    seen: set[str] = set()
    deleted = False
    for kind, values in rows:
        deleted = rules.removes_on_delete and kind == DELETE
        if deleted:
            row = dict(values)
            continue
        for name, rule in rules.fields.items():
            if kind in (UPDATE_BEFORE, DELETE):
                row[name] = row[name] if rule.ignores_retracts else _retract(rule, row[name], values[name])
            else:
                row[name] = _agg(rule, row[name], values[name], name, seen)
    return DELETE if deleted else INSERT, row


def _agg(rule: FieldRule, held: Any, value: Any, name: str, seen: set[str]) -> Any:
    return element_twin.added(rule, held, value) if rule.elements else _added(rule, held, value, name, seen)


def _agg_reversed(rule: FieldRule, held: Any, value: Any, name: str, seen: set[str]) -> Any:
    return element_twin.added_older(rule, held, value) if rule.elements else _added(rule, value, held, name, seen)


def _retract(rule: FieldRule, held: Any, value: Any) -> Any:
    if rule.function is Function.NESTED_PARTIAL_UPDATE:
        raise CannotMerge
    return element_twin.taken_back(rule, held, value) if rule.elements else _taken_back(rule, held, value)


def _added(rule: FieldRule, held: Any, value: Any, name: str, seen: set[str]) -> Any:
    """`agg(held, value)` of the function's class; `seen` are the columns whose first value came."""
    match rule.function:
        case Function.LAST_VALUE | Function.KEY:
            return value
        case Function.FIRST_VALUE | Function.FIRST_NON_NULL_VALUE:
            takes = name not in seen and (value is not None or rule.function is Function.FIRST_VALUE)
            seen |= {name} if takes else set()
            return value if takes else held
        case Function.LISTAGG:
            return _joined(rule, held, value)
        case _ if held is None or value is None:
            return value if held is None else held
        case Function.LAST_NON_NULL_VALUE:
            return value
        case Function.SUM | Function.PRODUCT:
            return _within(held + value if rule.function is Function.SUM else held * value)
        case Function.MAX | Function.BOOL_OR:
            return value if _order(held) < _order(value) else held
        case _:
            return held if _order(held) < _order(value) else value


def _joined(rule: FieldRule, held: str | None, value: str | None) -> str | None:
    if value is None or not value.strip():
        return held
    if held is None or not held.strip():
        return value
    if not rule.distinct:
        return held + rule.delimiter + value
    there = set(held.split(rule.delimiter))
    for part in value.split(rule.delimiter):
        if part.strip() and part not in there:
            there.add(part)
            held += rule.delimiter + part
    return held


def _taken_back(rule: FieldRule, held: Any, value: Any) -> Any:
    match rule.function:
        case Function.KEY | Function.LAST_VALUE:
            return value if rule.function is Function.KEY else None
        case Function.LAST_NON_NULL_VALUE:
            return held if value is None else None
        case Function.SUM:
            return _difference(held, value)
        case Function.PRODUCT if held is None or value is None:
            return held
        case Function.PRODUCT if isinstance(value, Decimal) or (value == 0 and isinstance(value, int)):
            raise CannotMerge
        case Function.PRODUCT if isinstance(value, int):
            return int(math.copysign(1, held) * math.copysign(1, value)) * (abs(held) // abs(value))
        case Function.PRODUCT:
            return _quotient(held, value)
        case _:
            raise CannotMerge


def _difference(held: Any, value: Any) -> Any:
    if held is None or value is None:
        return held if value is None else -value
    return _within(held - value)


def _quotient(held: float, value: float) -> float:
    """Division of IEEE 754, with zeros."""
    if value:
        return held / value
    return math.nan if held == 0 or math.isnan(held) else math.copysign(1, held) * math.copysign(math.inf, value)


def _within(total: Any) -> Any:
    """A decimal beyond its digits is null, one of more fraction digits is rounded half up."""
    if isinstance(total, Decimal):
        total = total.quantize(Decimal("0.01"), ROUND_HALF_UP)
        return None if abs(total.scaleb(2)) >= 10**DIGITS else total
    if isinstance(total, int) and not -128 <= total <= 127:
        raise CannotMerge
    return total


def _order(value: Any) -> Any:
    """Double.compare: NaN last, -0.0 before 0.0."""
    if not isinstance(value, float):
        return value
    return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1.0, value))
