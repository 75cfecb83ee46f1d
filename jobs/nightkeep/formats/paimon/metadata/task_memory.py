"""A task's memory -> the bytes that it may hold for rows, beside what it holds whatever the size of its bucket."""

from __future__ import annotations

from typing import Final

DEFAULT_BYTES: Final = 2 << 30
BASE_BYTES: Final = 320 << 20
"""What a task's process holds before its first row, about: Python, Arrow and Polars, and some slack."""
LEAST_BYTES: Final = 32 << 20
"""Rows are held up to this, however small the budget: less would be spent on reading and writing pieces."""
DECODED: Final = 4
"""Arrow takes about this many times a file's bytes; a guess, for the number of rows that are held at a time only."""
ROW_BYTES: Final = 64


def row_bytes(stored_bytes: int, rows: int) -> int:
    """What a row of files of so many bytes and rows takes with all its columns, about."""
    return ROW_BYTES + DECODED * stored_bytes // max(1, rows)


def spare_bytes(task_bytes: int) -> int:
    """What is left of a task's memory for rows and what is computed of them."""
    return max(LEAST_BYTES, task_bytes - BASE_BYTES)
