"""`when:` of a policy -> a condition on the health of a table, and whether it holds.

A comparison of a metric with a number, `any:` or `all:` of conditions, or a mapping of operations, each with its own.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from nightkeep.model import Operation
from nightkeep.model.health import Health
from nightkeep.policy.units import parse_duration, parse_size

METRICS: Final = (
    *(field.name for field in fields(Health)),
    "small_share",
    "deleted_ratio",
    "days_since_run",
    "commits_since_run",
    "bytes_since_run",
    "nights_waited",
    "orphans",
)
"""The names that a condition may use."""
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_COMPARISON: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(>=|<=|!=|==|=|>|<)\s*(\S.*?)\s*")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?(%?)")
_MOST_PARTS: Final = 100
_NIGHTLY: Final = (Operation.UPGRADE, Operation.PERSIST_DELETES, Operation.OPTIMIZE)
_EXPECTED: Final = 'a comparison such as "small_files > 20", or a list of them below any or all'

WHEN_SCHEMA: Final[dict[str, object]] = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                **{joint: {"type": "array", "minItems": 1, "maxItems": _MOST_PARTS} for joint in ("any", "all")},
                **{each.value: {"type": ["string", "object"]} for each in _NIGHTLY},
            },
            "minProperties": 1,
            "additionalProperties": False,
        },
    ]
}

Metrics = Mapping[str, int | float | None]


class Joint(StrEnum):
    """How conditions are joined."""

    ANY = "any"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """`metric` compared with `value`. `text` is how the policy spells it."""

    metric: str
    sign: str
    value: float
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class JoinedConditions:
    """Conditions of which one, or each, must hold."""

    joint: Joint
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return f"{self.joint} of ({', '.join(map(str, self.parts))})"


Condition = MetricComparison | JoinedConditions


@dataclass(frozen=True, slots=True)
class When:
    """The condition of each operation; `other` is that of operations without one of their own, None for none."""

    other: Condition | None = None
    operations: tuple[tuple[Operation, Condition], ...] = ()

    def of(self, operation: Operation) -> Condition | None:
        """The condition on which this operation is done."""
        return dict(self.operations).get(operation, self.other)

    def __str__(self) -> str:
        own = [f"{operation}: {condition}" for operation, condition in self.operations]
        return "; ".join([*([] if self.other is None else [str(self.other)]), *own])


def parse_when(value: object) -> When:
    """The conditions of a policy's `when`. Raises ValueError(expected, found)."""
    if isinstance(value, When):
        return value
    names = {each.value for each in _NIGHTLY}
    if isinstance(value, Mapping) and value and names.issuperset(value):
        return When(None, tuple((Operation(str(name)), _parsed(each)) for name, each in value.items()))
    return When(_parsed(value))


def unmet(condition: Condition, metrics: Metrics) -> str | None:
    """Why a condition does not hold; None where it does. A metric without a value fulfils no comparison."""
    if _holds(condition, metrics):
        return None
    found = {each.metric: metrics.get(each.metric) for each in _comparisons(condition)}
    values = ", ".join(f"{name} {'has no value' if value is None else f'{value:,}'}" for name, value in found.items())
    return f"expected {condition}, found {values}"


def metrics_of(condition: Condition) -> frozenset[str]:
    """The metrics that a condition names."""
    return frozenset(each.metric for each in _comparisons(condition))


def could_hold(condition: Condition, known: Collection[str]) -> bool:
    """Whether it may hold of a table that has only the metrics `known`."""
    if isinstance(condition, MetricComparison):
        return condition.metric in known
    parts = (could_hold(part, known) for part in condition.parts)
    return any(parts) if condition.joint is Joint.ANY else all(parts)


def _parsed(value: object) -> Condition:
    if isinstance(value, str):
        return _comparison(value)
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, parts),) = value.items()
        if name in list(Joint) and isinstance(parts, list) and 0 < len(parts) <= _MOST_PARTS:
            return JoinedConditions(Joint(name), tuple(map(_parsed, parts)))
    raise ValueError(_EXPECTED, ", ".join(map(str, value)) if isinstance(value, Mapping) and value else repr(value))


def _comparison(text: str) -> MetricComparison:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ValueError(_EXPECTED, repr(text))
    return MetricComparison(_metric(match[1], text), match[2], _number(match[3], text), " ".join(text.split()))


def _metric(name: str, text: str) -> str:
    """A name of METRICS. Raises ValueError for another one, as a condition on it would never hold."""
    if name in METRICS:
        return name
    nearest = difflib.get_close_matches(name, METRICS, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ValueError(f"a known metric in {text}", f"{name}{hint} (known: {', '.join(METRICS)})")


def _number(value: str, text: str) -> float:
    """A number; a share in percent, a size in bytes, a duration in milliseconds."""
    match = _NUMBER.fullmatch(value)
    if match is not None:
        return float(value.rstrip("%")) / (100 if match[2] else 1)
    for parse in (parse_size, parse_duration):
        try:
            return float(parse(value))
        except ValueError:
            continue
    raise ValueError("a number, a share such as 5%, a size such as 2GB or a duration such as 36h", repr(text))


def _comparisons(condition: Condition) -> Sequence[MetricComparison]:
    if isinstance(condition, MetricComparison):
        return (condition,)
    return [each for part in condition.parts for each in _comparisons(part)]


def _holds(condition: Condition, metrics: Metrics) -> bool:
    if isinstance(condition, JoinedConditions):
        parts = (_holds(part, metrics) for part in condition.parts)
        return any(parts) if condition.joint is Joint.ANY else all(parts)
    value = metrics.get(condition.metric)
    return value is not None and _SIGNS[condition.sign](value, condition.value)
