"""A number of things as text."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 file`, `1,234 files`. `noun` is the singular of a noun with a regular plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
