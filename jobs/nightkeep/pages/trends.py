"""Figures over time -> the points of a line, and the same as text. Pure; knows no HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 120.0, 24.0
_EDGE = 2.0


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure over time, oldest first, as points of a line in a box of WIDTH by HEIGHT, and its values as texts."""

    name: str
    points: str
    end: tuple[float, float]
    first: str
    last: str
    low: str
    high: str
    count: int

    @property
    def sentence(self) -> str:
        return f"{self.name}: {self.first} to {self.last} over {self.count} runs, {self.low} to {self.high}"


def trend(name: str, values: Sequence[float | None], show: Callable[[float], str]) -> Trend | None:
    """The trend of the values that are known; None for fewer than two."""
    known = [float(value) for value in values if value is not None]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    step, span = (WIDTH - 2 * _EDGE) / (len(known) - 1), high - low
    places = [
        (_EDGE + n * step, HEIGHT / 2 if not span else HEIGHT - _EDGE - (value - low) / span * (HEIGHT - 2 * _EDGE))
        for n, value in enumerate(known)
    ]
    return Trend(
        name,
        " ".join(f"{x:.1f},{y:.1f}" for x, y in places),
        places[-1],
        show(known[0]),
        show(known[-1]),
        show(low),
        show(high),
        len(known),
    )
