"""`window:` of a policy -> when each operation of a table may start: one window for all, or a mapping of operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.model import Operation
from nightkeep.policy.units import WINDOW_PATTERN, Window, parse_window

WINDOWED: Final = (Operation.UPGRADE, Operation.PERSIST_DELETES, Operation.OPTIMIZE, Operation.EXPIRE, Operation.SWEEP)
"""Operations that can have a window of their own: those of nights and of weeks."""
_TEXT: Final[dict[str, object]] = {"type": "string", "pattern": WINDOW_PATTERN}

WINDOWS_SCHEMA: Final[dict[str, object]] = {
    "anyOf": [
        _TEXT,
        {
            "type": "object",
            "properties": {each.value: _TEXT for each in WINDOWED},
            "minProperties": 1,
            "additionalProperties": False,
        },
    ]
}


@dataclass(frozen=True, slots=True)
class Windows:
    """The window of each operation; `every` is that of operations without one of their own, None for at any time."""

    every: Window | None = None
    operations: tuple[tuple[Operation, Window], ...] = ()

    def of(self, operation: Operation) -> Window | None:
        """When this operation may start; None for at any time."""
        return dict(self.operations).get(operation, self.every)

    def __str__(self) -> str:
        own = [f"{operation}: {window}" for operation, window in self.operations]
        return "; ".join([*([] if self.every is None else [str(self.every)]), *own])


def parse_windows(value: object) -> Windows:
    """The windows of a policy's `window`. Raises ValueError(expected), with what was found for a mapping."""
    if isinstance(value, Windows):
        return value
    if not isinstance(value, Mapping):
        return Windows(parse_window(value))
    names = [each.value for each in WINDOWED]
    if not value or set(value) - set(names):
        found = ", ".join(map(str, value)) or "an empty mapping"
        raise ValueError(f"a window, or a mapping of some of {', '.join(names)} to windows", found)
    return Windows(None, tuple((Operation(str(name)), _parsed(str(name), each)) for name, each in value.items()))


def _parsed(name: str, value: object) -> Window:
    try:
        return parse_window(value)
    except ValueError as failure:
        raise ValueError(failure.args[0], repr(value), (name,)) from failure
