"""A date or time that Python's own types cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import cast


class FarTime(int):
    """A date or time outside of the years 1 to 9999: days, or microseconds, since 1970-01-01. Its text is its name."""

    text: str

    @classmethod
    def of(cls, number: int, text: str) -> FarTime:
        found = cls(number)
        found.text = text
        return found

    def __str__(self) -> str:
        return self.text

    def __lt__(self, other: object) -> bool:
        # Before or after every day that Python has.
        return int(self) < 0 if isinstance(other, date) else int.__lt__(self, cast(int, other))

    def __gt__(self, other: object) -> bool:
        return int(self) > 0 if isinstance(other, date) else int.__gt__(self, cast(int, other))

    def __le__(self, other: object) -> bool:
        return self < other if isinstance(other, date) else int.__le__(self, cast(int, other))

    def __ge__(self, other: object) -> bool:
        return self > other if isinstance(other, date) else int.__ge__(self, cast(int, other))

    def __reduce__(self) -> tuple[Callable[[int, str], FarTime], tuple[int, str]]:
        return (FarTime.of, (int(self), self.text))
