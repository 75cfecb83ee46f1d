"""What is known of the tables of a session when it starts."""

from __future__ import annotations

from nightkeep.groups.reads import SessionBytes


def test_tables_that_were_not_read_count_as_the_average_of_those_that_were() -> None:
    size = SessionBytes(4)
    assert size.add("a", 100) == 400
    assert size.add("b", 300) == 800
    assert size.add("c", 0) == 533


def test_all_tables_count_once() -> None:
    size = SessionBytes(2)
    size.add("a", 100)
    size.add("a", 50)
    assert size.add("b", 7) == 57


def test_a_table_that_nobody_counted_on_is_no_fault() -> None:
    size = SessionBytes(0)
    assert size.add("a", 5) == 5
