"""Rows that a condition is true for: their positions in Python, and the files that cannot hold one are left."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.lake import request
from tests.formats.delta.runs import opened
from tests.support.table_storage import storage_of

from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.rewrite import delete
from nightkeep.formats.delta.rewrite.delete import count_matching, delete_rows, mark, refuse_deletes
from nightkeep.model import Operation, Run

RUN = Run("run", "f" * 16, "ab" * 4, 1_795_000_000_000)
FILES = {"2026-11-01": [range(10), range(20, 40)], "2026-11-02": [range(40, 50)]}


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    made = HandMade(tmp_path / "events")
    for day, files in FILES.items():
        for ids in files:
            made.append(day, ids)
    made.delete("2026-11-01", [3, 21])
    return made


def asked(text: str | None) -> Any:
    return request(Operation.DELETE, rows=text)


def hidden(made: HandMade, text: str) -> tuple[set[int], int]:
    """Ids of rows that go, and how many files are looked into."""
    table = opened(made.folder)
    snapshot, gone, looked = table.snapshot(), set[int](), 0
    before = {row[1] for row in made.rows()}
    for unit in snapshot.units:
        work = delete_rows(snapshot, unit, asked(text))
        if work is None:
            continue
        (task,) = work.tasks
        looked += len(work.input_files)
        expected = count_matching(storage_of(table), task)  # type: ignore[arg-type]
        edit, _, marked = mark(storage_of(table), task, RUN)  # type: ignore[arg-type]
        assert marked == expected == edit.rows_deleted
        gone |= ids_of(made, edit)
    return gone & before, looked


def ids_of(made: HandMade, edit: DeltaEdit) -> set[int]:
    """What the vectors of an edit hide, read without the library; all rows of a file that is removed."""
    adds, found = {str(add["path"]): add for add in edit.added}, set[int]()
    live = made.live()
    for file in edit.removed:
        ids = next(
            list(some) for some in (s for files in FILES.values() for s in files) if _holds(live[file.path], some)
        )
        marked = made.deleted(adds[file.path]) if file.path in adds else BitMap64(range(len(ids)))
        found |= {ids[at] for at in marked}
    return found


def _holds(add: dict[str, Any], ids: range) -> bool:
    return bool(json.loads(add["stats"])["minValues"]["id"] == ids[0])


@pytest.mark.parametrize(
    ("text", "matches", "files"),
    [
        ("id = 5", lambda day, id, price, note: id == 5, 1),
        ("id = 15", lambda day, id, price, note: False, 0),
        ("id >= 38", lambda day, id, price, note: id >= 38, 2),
        ("39 < id", lambda day, id, price, note: id > 39, 2),
        ("id in (1, 45)", lambda day, id, price, note: id in (1, 45), 2),
        ("id = 1 or id = 45", lambda day, id, price, note: id in (1, 45), 2),
        ("id > 5 and id < 25", lambda day, id, price, note: 5 < id < 25, 2),
        ("id <> 5", lambda day, id, price, note: id != 5, 3),
        ("not (id < 45)", lambda day, id, price, note: id >= 45, 3),
        ("day = '2026-11-02'", lambda day, id, price, note: day == "2026-11-02", 1),
        ("day = '2026-11-02' and id < 3", lambda day, id, price, note: False, 0),
        ("note is null", lambda day, id, price, note: note is None, 3),
        ("note = 'note 045'", lambda day, id, price, note: note == "note 045", 1),
        ("price > 9.5", lambda day, id, price, note: price > 9.5, 3),
    ],
)
def test_rows_go_that_the_condition_is_true_for(
    made: HandMade, text: str, matches: Callable[..., bool], files: int
) -> None:
    expected = {row[1] for row in made.rows() if matches(*row)}
    assert hidden(made, text) == (expected, files)


def test_positions_count_on_over_batches(made: HandMade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete, "BATCH_ROWS", 3)
    assert hidden(made, "id in (1, 4, 8, 25, 39)") == ({1, 4, 8, 25, 39}, 2)


def test_a_file_with_nothing_left_is_only_removed(made: HandMade) -> None:
    table = opened(made.folder)
    snapshot = table.snapshot()
    (unit,) = (unit for unit in snapshot.units if len(unit.files) == 1)
    work = delete_rows(snapshot, unit, asked("id >= 40"))
    assert work is not None
    edit, outputs, marked = mark(storage_of(table), work.tasks[0], RUN)  # type: ignore[arg-type]
    assert (len(edit.removed), edit.added, outputs, marked) == (1, (), (), 10)


def test_a_row_that_is_hidden_already_is_not_counted(made: HandMade) -> None:
    assert hidden(made, "id = 3") == (set(), 1)
    assert hidden(made, "id < 5")[0] == {0, 1, 2, 4}


def test_the_add_states_that_bounds_are_wide_and_keeps_the_rest(made: HandMade) -> None:
    table = opened(made.folder)
    snapshot = table.snapshot()
    (unit,) = (unit for unit in snapshot.units if len(unit.files) == 1)
    work = delete_rows(snapshot, unit, asked("id = 41"))
    assert work is not None
    edit, outputs, _ = mark(storage_of(table), work.tasks[0], RUN)  # type: ignore[arg-type]
    (add,), (before,) = edit.added, edit.removed
    assert json.loads(str(add["stats"])) == json.loads(str(before.stats)) | {"tightBounds": False}
    same = ("path", "size", "partitionValues", "modificationTime")
    assert [add[key] for key in same] == [before.raw[key] for key in same]
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("properties", "refused"),
    [
        ({"delta.enableDeletionVectors": "false"}, "new deletion vectors are not enabled"),
        ({"delta.appendOnly": "true"}, "it is append-only"),
        ({"delta.enableChangeDataFeed": "true"}, "its change data feed"),
    ],
)
def test_a_table_whose_rows_may_not_go_is_refused(tmp_path: Path, properties: dict[str, str], refused: str) -> None:
    made = HandMade(tmp_path / "events", properties=properties)
    made.append("2026-11-01", range(3))
    with pytest.raises(RefusedTable, match=refused):
        refuse_deletes(opened(made.folder).snapshot(), asked("id = 1"))


def test_a_condition_is_needed(made: HandMade) -> None:
    snapshot = opened(made.folder).snapshot()
    refuse_deletes(snapshot, asked("id = 1"))
    with pytest.raises(UsageError, match="expected a condition on the rows to delete, found none"):
        refuse_deletes(snapshot, asked(None))
    with pytest.raises(UsageError):
        refuse_deletes(snapshot, asked("nothing = 1"))
