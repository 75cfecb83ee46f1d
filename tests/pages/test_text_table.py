"""Rows of cells as aligned lines."""

from __future__ import annotations

from nightkeep.pages.text_table import aligned_lines


def test_numbers_stand_at_the_right_and_the_last_column_ends_where_it_ends() -> None:
    rows = [("table", "files", "why"), ("a", "1,000", "nothing to do"), ("longer", "2", "")]
    assert aligned_lines(rows, numbers=[1]) == ["table   files  why", "a       1,000  nothing to do", "longer      2  "]
    assert aligned_lines(rows[:2]) == ["table  files  why", "a      1,000  nothing to do"]
    assert aligned_lines([]) == []
