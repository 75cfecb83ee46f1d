"""Numbers -> bars with their places, and the same as text. Pure; knows no HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
# Each bin is four times as wide as the one before, so that small and large files fit on one axis of a few bars.
_BIN_FACTOR = 4
_SMALLEST_BIN = 1024


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its `label`, its value as `text`, and its `start` and `size` as shares of the axis."""

    label: str
    text: str
    start: float
    size: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Before and after over the same labels and one scale; `peak` is the largest count of either."""

    labels: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def peak(self) -> int:
        return max((*self.before, *self.after, 1))

    def sentence(self, side: Sequence[int]) -> str:
        """The bars as text: `2 at 64 KB, 1 at 1 MB`."""
        counts = [f"{n} at {label}" for label, n in zip(self.labels, side, strict=True) if n]
        return ", ".join(counts) or "none"


def stages(seconds: Mapping[str, float]) -> tuple[Bar, ...]:
    """One bar per stage, end to end: `start` and `size` are shares of the whole."""
    total = sum(seconds.values())
    bars, start = [], 0.0
    for stage, spent in seconds.items():
        share = spent / total if total else 0.0
        bars.append(Bar(stage, show_seconds(spent), start, share))
        start += share
    return tuple(bars)


def size_bins(before: Iterable[int], after: Iterable[int]) -> Pair | None:
    """Files by size in bins a factor of four wide, from the first in use to the last; None for no files."""
    sides = [[_bin(size) for size in sizes] for sizes in (before, after)]
    used = [*sides[0], *sides[1]]
    if not used:
        return None
    bins = range(min(used), max(used) + 1)
    counts = [tuple(side.count(b) for b in bins) for side in sides]
    return Pair(tuple(_bin_label(b) for b in bins), counts[0], counts[1])


def levels(before: Mapping[str, int], after: Mapping[str, int]) -> Pair | None:
    """Files by level, levels in numeric order; None for no levels."""
    names = sorted({*before, *after}, key=lambda name: (len(name), name))
    if not names:
        return None
    sides = [tuple(side.get(name, 0) for name in names) for side in (before, after)]
    return Pair(tuple(f"L{name}" for name in names), sides[0], sides[1])


def show_age(milliseconds: float) -> str:
    """An age in the largest unit of which it has one: `3 d`, `2.5 h`, `40 min`, `9 s`."""
    seconds = milliseconds / 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:,.0f} s"


def show_seconds(seconds: float) -> str:
    """`20 ms`, `9.1 s`, from ten minutes on `12.5 min`, from two hours on `2.1 h`."""
    for least, size, unit in ((7_200, 3_600, "h"), (600, 60, "min")):
        if seconds >= least:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s" if seconds >= 0.1 or seconds == 0 else f"{seconds * 1000:.0f} ms"


def show_amount(amount: float) -> str:
    """An amount of money: two decimals, or of less than one its first two digits. No exponent."""
    if abs(amount) >= 1 or amount == 0:
        return f"{amount:,.2f}"
    decimals = 1 - math.floor(math.log10(abs(amount)))
    return f"{amount:.{decimals}f}"


def show_bytes(size: int) -> str:
    """`1.4 MB`: three digits at most, powers of 1024."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 99.95 else f"{value:.1f} {_UNITS[unit]}"


def _bin(size: int) -> int:
    place, upper = 0, _SMALLEST_BIN
    while size > upper:
        place, upper = place + 1, upper * _BIN_FACTOR
    return place


def _bin_label(index: int) -> str:
    return show_bytes(_SMALLEST_BIN * _BIN_FACTOR**index).replace(".0 ", " ")
