"""Text -> bytes, durations, windows; `window:` of a policy -> when each operation may start.

Raises ValueError, naming what was expected, for any other text.
"""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Final

from nightkeep.model import Operation

# Powers of 1024 for both spellings, as in Paimon's MemorySize and Spark's byte strings, so that a policy can use the
# values of their options unchanged.
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}

# As in Kubernetes and Prometheus. Months and years have no fixed length.
_DURATIONS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}

# Editors use these as JSON Schema patterns, so they must mean the same in ECMA 262.
SIZE_PATTERN = r"^([0-9]+(?:\.[0-9]+)?)\s*(?:([KMGTkmgt])[Ii]?)?[Bb]$"
DURATION_PATTERN = r"^([0-9]+)\s*([mhd])$"
WINDOW_PATTERN = r"^([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})\s+(\S+)$"

_SIZE_EXPECTED = "a size with its unit, such as 512MB or 2GB"
_DURATION_EXPECTED = "a duration with its unit, such as 7d, 36h or 90m"
_WINDOW_EXPECTED = "a window with its time zone, such as 02:00-06:00 Europe/Berlin"


def parse_size(text: object) -> int:
    """Bytes of `512MB`, `1.5 GiB`, `100B`; at least 1. MB and MiB are both 2**20.

    Raises ValueError for anything else, a bare number included: its unit would be a guess.
    """
    match = re.fullmatch(SIZE_PATTERN, text) if isinstance(text, str) else None
    size = int(Decimal(match[1]) * _UNITS[f"{match[2] or ''}B".upper()]) if match else 0
    if size < 1:
        raise ValueError(_SIZE_EXPECTED)
    return size


def format_size(size: int) -> str:
    """The shortest text that `parse_size` turns back into exactly `size` bytes."""
    unit = next(unit for unit, factor in reversed(_UNITS.items()) if size % factor == 0)
    return f"{size // _UNITS[unit]}{unit}"


def parse_duration(text: object) -> int:
    """Milliseconds of `7d`, `36h`, `90m`; at least a minute. A day is 24 hours.

    Raises ValueError for anything else, a bare number included: its unit would be a guess.
    """
    match = re.fullmatch(DURATION_PATTERN, text) if isinstance(text, str) else None
    duration = int(match[1]) * _DURATIONS[match[2]] if match else 0
    if duration < 1:
        raise ValueError(_DURATION_EXPECTED)
    return duration


def format_duration(milliseconds: int) -> str:
    """The shortest text that `parse_duration` turns back into exactly `milliseconds`, which are whole minutes."""
    unit = next(unit for unit, factor in reversed(_DURATIONS.items()) if milliseconds % factor == 0)
    return f"{milliseconds // _DURATIONS[unit]}{unit}"


@dataclass(frozen=True, slots=True)
class Window:
    """A part of every day: `start` inclusive, `end` exclusive. It spans midnight if `end` is earlier than `start`."""

    start: time
    end: time
    zone: str

    def contains(self, now: datetime) -> bool:
        """Whether the wall clock in `zone` is in the window at `now`, which must have a time zone."""
        if now.tzinfo is None:
            raise ValueError(f"window {self}: expected a time with a zone, found {now}")
        local = now.astimezone(zoneinfo.ZoneInfo(self.zone)).time()
        if self.start < self.end:
            return self.start <= local < self.end
        return local >= self.start or local < self.end

    def left(self, now: datetime) -> timedelta:
        """How long the window is still open at `now`, which lies in it."""
        local = now.astimezone(zoneinfo.ZoneInfo(self.zone))
        end = datetime.combine(local.date(), self.end, local.tzinfo)
        if end.time() <= local.time():
            end = datetime.combine(local.date() + timedelta(days=1), self.end, local.tzinfo)
        # Two times of one zone are subtracted by the clock on the wall, which may be moved that night.
        return end.astimezone(UTC) - now.astimezone(UTC)

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.zone}"


def parse_window(text: object) -> Window:
    """A `Window` from `HH:MM-HH:MM Zone`, the zone an IANA name. Raises ValueError otherwise."""
    match = re.fullmatch(WINDOW_PATTERN, text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(_WINDOW_EXPECTED)
    zone = _known_zone(match[5])
    try:
        start, end = time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
    except ValueError as error:
        raise ValueError(f"times from 00:00 to 23:59 ({error})") from error
    if start == end:
        raise ValueError("a window that ends at another time than it starts")
    return Window(start, end, zone)


def _known_zone(zone: str) -> str:
    try:
        return zoneinfo.ZoneInfo(zone).key
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        nearest = difflib.get_close_matches(zone, sorted(zoneinfo.available_timezones()), n=1)
        example = nearest[0] if nearest else "Europe/Berlin"
        raise ValueError(f"an IANA time zone after the times, such as {example}") from error


WINDOWED: Final = (Operation.UPGRADE, Operation.PERSIST_DELETES, Operation.OPTIMIZE, Operation.EXPIRE, Operation.SWEEP)
"""Operations that can have a window of their own: those of nights and of weeks."""
_WINDOW_TEXT: Final[dict[str, object]] = {"type": "string", "pattern": WINDOW_PATTERN}

WINDOWS_SCHEMA: Final[dict[str, object]] = {
    "anyOf": [
        _WINDOW_TEXT,
        {
            "type": "object",
            "properties": {each.value: _WINDOW_TEXT for each in WINDOWED},
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
    return Windows(None, tuple((Operation(str(name)), _parsed_window(str(name), each)) for name, each in value.items()))


def _parsed_window(name: str, value: object) -> Window:
    try:
        return parse_window(value)
    except ValueError as failure:
        raise ValueError(failure.args[0], repr(value), (name,)) from failure
