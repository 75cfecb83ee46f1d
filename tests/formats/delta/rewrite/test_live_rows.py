"""Rows of a partition that no vector hides, against what the writer by hand says of its table."""

from pathlib import Path

import pytest
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.runs import opened
from tests.support.table_storage import storage_of

from nightkeep.formats.delta.rewrite.optimize import live_rows

DAY = "2026-11-01"


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    made = HandMade(tmp_path / "events")
    made.append(DAY, range(10))
    made.append(DAY, range(20, 25))
    made.delete(DAY, [0, 3, 9, 24])
    return made


def test_rows_are_those_of_the_files_in_their_order(made: HandMade) -> None:
    table = opened(made.folder)
    (unit,) = table.snapshot().units
    rows = live_rows(storage_of(table), unit)
    by_file = [[n for t in rows.batches([file], ["id"]) for n in t.column("id").to_pylist()] for file in unit.files]
    assert sorted(by_file) == [[1, 2, 4, 5, 6, 7, 8], [20, 21, 22, 23]]
    whole = [n for t in rows.batches(unit.files, ["id"]) for n in t.column("id").to_pylist()]
    assert whole == [n for some in by_file for n in some]
    assert rows.count(unit.files) == len(made.rows()) == 11


def test_a_sample_has_some_rows_of_each_file(made: HandMade) -> None:
    table = opened(made.folder)
    (unit,) = table.snapshot().units
    rows = live_rows(storage_of(table), unit)
    found = rows.sampled(unit.files, ["id"], 0.3).column("id").to_pylist()
    assert len([n for n in found if n < 10]) == 4 and len([n for n in found if n >= 20]) == 2
    assert rows.sampled(unit.files, ["id"], 0.3).column("id").to_pylist() == found
