"""Rows of cells -> aligned lines of text; text -> text that is safe for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Final

COLUMNS: Final = 80
"""How wide text is at most, but for names and statements that are longer."""
INDENT: Final = "    "


def aligned_lines(rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()) -> list[str]:
    """A line for each row. Columns whose places are in `numbers` stand at the right, all others at the left; where the
    last one stands at the left, it ends where its text does."""
    count = max(map(len, rows), default=0)
    widths = [max(len(row[i]) for row in rows) for i in range(count)]

    def cell(place: int, text: str) -> str:
        if place in numbers:
            return text.rjust(widths[place])
        return text if place == count - 1 else text.ljust(widths[place])

    return ["  ".join(cell(place, text) for place, text in enumerate(row)) for row in rows]


def printable(text: str) -> str:
    """The text with `?` for control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def indented(text: str, *, most: int | None = None) -> list[str]:
    """The text in indented lines of `COLUMNS` at most, and in so many lines at most. No word is broken."""
    lines = textwrap.wrap(text, COLUMNS - len(INDENT), break_long_words=False, break_on_hyphens=False, max_lines=most)
    return [f"{INDENT}{line}" for line in lines]
