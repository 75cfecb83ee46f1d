"""Rows of one key, one by one -> the row that Paimon's merge engine makes of them. Slow, and as Java is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules

Row = tuple[int, Mapping[str, Any]]
"""The byte of the row's kind, and its values by column."""

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
DIGITS = 5
"""Of the decimals here."""


class CannotTakeBack(Exception):
    """A retract came where the engine allows none."""


def merged(rows: Sequence[Row], rules: MergeRules) -> dict[str, Any] | None:
    """None if the key has no row. Raises CannotTakeBack as Java raises."""
    return (_updated if rules.engine is MergeEngine.PARTIAL_UPDATE else _aggregated)(rows, rules)


def _updated(rows: Sequence[Row], rules: MergeRules) -> dict[str, Any] | None:
    row: dict[str, Any] = dict.fromkeys(rules.fields)
    begun = inserted = deleted = False
    for kind, values in rows:
        deleted = False
        if kind in (UPDATE_BEFORE, DELETE):
            if not begun:
                row, begun = dict(values), True
            if rules.ignores_deletes:
                continue
            if not rules.removes_on_delete:
                raise CannotTakeBack
            if kind == DELETE:
                row, deleted = dict(values), True
            continue
        row |= {name: value for name, value in values.items() if value is not None}
        begun = inserted = True
    return row if inserted and not deleted else None


def _aggregated(rows: Sequence[Row], rules: MergeRules) -> dict[str, Any] | None:
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
                row[name] = row[name] if rule.ignores_retracts else _taken_back(rule, row[name], values[name])
            else:
                row[name] = _added(rule, row[name], values[name], name in seen)
                if values[name] is not None or rule.function is Function.FIRST_VALUE:
                    seen.add(name)
    return None if deleted else row


def _added(rule: FieldRule, held: Any, value: Any, seen: bool) -> Any:
    match rule.function:
        case Function.LAST_VALUE | Function.KEY:
            return value
        case Function.FIRST_VALUE | Function.FIRST_NON_NULL_VALUE:
            takes = not seen and (value is not None or rule.function is Function.FIRST_VALUE)
            return value if takes else held
        case _ if held is None or value is None:
            return value if held is None else held
        case Function.LAST_NON_NULL_VALUE:
            return value
        case Function.SUM:
            return _within(held + value)
        case Function.MAX | Function.BOOL_OR:
            return value if _order(held) < _order(value) else held
        case _:
            return held if _order(held) < _order(value) else value


def _taken_back(rule: FieldRule, held: Any, value: Any) -> Any:
    match rule.function:
        case Function.KEY:
            return value
        case Function.LAST_VALUE:
            return None
        case Function.LAST_NON_NULL_VALUE:
            return held if value is None else None
        case Function.SUM if held is None:
            return None if value is None else -value
        case Function.SUM:
            return held if value is None else _within(held - value)
        case _:
            raise CannotTakeBack


def _within(total: Any) -> Any:
    """A decimal beyond its digits is null."""
    beyond = isinstance(total, Decimal) and abs(total.scaleb(2)) >= 10**DIGITS
    return None if beyond else total


def _order(value: Any) -> Any:
    """Double.compare: NaN last, -0.0 before 0.0."""
    if not isinstance(value, float):
        return value
    return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1.0, value))
