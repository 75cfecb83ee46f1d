"""Rows of cells -> aligned lines of text; text -> text that is safe for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned_lines(rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()) -> list[str]:
    """A line for each row. Columns whose places are in `numbers` stand at the right, all others at the left; the last
    one ends where its text does."""
    last = max(map(len, rows), default=0) - 1
    widths = [max(len(row[i]) for row in rows) for i in range(last)]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(w) if i in numbers else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=False))
        )
        return "  ".join([*cells, row[last]])

    return [line(row) for row in rows]


def printable(text: str) -> str:
    """The text with `?` for control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)
