"""Arrays and maps of two rows -> those of their merge, element by element. Slow, and as Java is written.

An array is a list, a map a list of pairs, a nested row a dict. Where Java has the order of a hash table, elements are
in the order in which they came first.
"""

from __future__ import annotations

import math
from typing import Any

from nightkeep.formats.paimon.metadata.element_rules import ElementRule, NullKeys
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function


def added(rule: FieldRule, held: Any, value: Any) -> Any:
    """`agg(held, value)` of the function's class."""
    assert rule.elements is not None
    match rule.function:
        case Function.COLLECT:
            return _collected(rule, held, value)
        case Function.MERGE_MAP:
            if held is None or value is None:
                return value if held is None else held
            return list({_same(key): (key, item) for key, item in [*held, *value]}.values())
        case _ if value is None:
            return held
        case Function.NESTED_PARTIAL_UPDATE:
            return _partly(rule.elements, [*(held or []), *value])
        case _ if rule.elements.key:
            return list(_by_key(rule.elements, [*(held or []), *value]).values())
        case _:
            return _within(rule.elements, held, value)


def added_older(rule: FieldRule, held: Any, value: Any) -> Any:
    """`aggReversed(held, value)`: FieldIgnoreRetractAgg does not pass it on."""
    if rule.function is Function.COLLECT and not rule.ignores_retracts:
        return added(rule, held, value)
    return added(rule, value, held)


def taken_back(rule: FieldRule, held: Any, value: Any) -> Any:
    """`retract(held, value)`."""
    assert rule.elements is not None and rule.function is not Function.NESTED_PARTIAL_UPDATE
    if held is None or value is None or (not value and rule.function is not Function.NESTED_UPDATE):
        return held
    if rule.function is Function.MERGE_MAP:
        gone = [_same(key) for key, _ in value]
        return [(key, item) for key, item in held if _same(key) not in gone]
    if rule.function is Function.COLLECT:
        left = [_same(one) for one in value]
        return [one for one in held if not _removes(left, _same(one))]
    rows = [row for row in held if row is not None]
    if not rule.elements.key:
        gone = [_same(row) for row in value if row is not None]
        return [row for row in rows if _same(row) not in gone]
    kept = {key: row for row in rows if (key := _key(rule.elements, row)) is not None}
    for row in value:
        kept.pop(None if row is None else _key(rule.elements, row), None)
    return list(kept.values())


def canonical(rule: FieldRule, value: Any) -> str:
    """A text that is equal for values that are equal, whatever the order of elements that have none."""
    if value is None or not rule.is_unordered:
        return repr(value)
    return repr(sorted(map(repr, value)))


def _collected(rule: FieldRule, held: Any, value: Any) -> Any:
    assert rule.elements is not None
    if held is None and value is None:
        return None
    if not rule.distinct:
        return [*(held or []), *(value or [])]
    # With an equaliser what is held is not looked at again; a hash set tells all elements apart.
    found = list(held or []) if rule.elements.rows else []
    for one in value or [] if rule.elements.rows else [*(held or []), *(value or [])]:
        if _same(one) not in map(_same, found):
            found.append(one)
    return found


def _removes(left: list[str], one: str) -> bool:
    if one in left:
        left.remove(one)
        return True
    return False


def _within(rule: ElementRule, held: Any, value: Any) -> Any:
    limit = len(value) + len(held or []) if rule.limit is None else rule.limit
    rows = [row for row in value if row is not None]
    if held is None:
        return rows[:limit]
    if len(held) >= limit and rule.limit is not None:
        return held
    return [row for row in held if row is not None] + rows[: limit - len(held)]


def _by_key(rule: ElementRule, rows: list[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for row in rows:
        key = None if row is None else _key(rule, row)
        if key is None:
            continue
        if key not in found or _rank(rule, row) >= _rank(rule, found[key]):
            found[key] = row
    return found


def _partly(rule: ElementRule, rows: list[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for row in rows:
        key = None if row is None else _key(rule, row)
        if key is None:
            continue
        told = found.setdefault(key, dict.fromkeys(row))
        told |= {name: value for name, value in row.items() if value is not None}
    return list(found.values())


def _key(rule: ElementRule, row: Any) -> Any:
    """None for a row that is left out."""
    key = [row[name] for name in rule.key]
    return None if None in key and rule.null_keys is NullKeys.IGNORE else _same(key)


def _rank(rule: ElementRule, row: Any) -> Any:
    return [_null_first(row[name]) for name in rule.sequence]


def _null_first(value: Any) -> Any:
    """Of floats, -0.0 comes before 0.0."""
    sign = math.copysign(1, value) if isinstance(value, float) else 0
    return (False,) if value is None else (True, value, sign)


def _same(value: Any) -> str:
    """Equal where Double.compare says 0."""
    return repr(value)
