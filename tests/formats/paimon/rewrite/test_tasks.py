"""Which rewrite does a task, and which rows a condition may name."""

from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import VECTORS, Appended
from tests.formats.paimon.contents import opened
from tests.formats.paimon.made_bucket import RUN, MadeBucket, Row
from tests.formats.paimon.rewrite.test_rewrite import lifting
from tests.support.table_storage import storage_of

from nightkeep.formats.paimon.rewrite.append.delete import delete_rows
from nightkeep.formats.paimon.rewrite.tasks import columns, matching_rows, rewrite
from nightkeep.model import Operation, Request


def test_a_task_of_a_table_with_keys_is_upgraded() -> None:
    made = MadeBucket()
    made.add(0, [Row(1), Row(2)])
    task = lifting(made, 5)
    done = rewrite(made.storage, task, RUN)
    assert done.rows_written == 2 and done.edit.added and not done.edit.is_empty
    with pytest.raises(TypeError, match="expected a task of delete"):
        matching_rows(made.storage, task)


def test_a_task_of_a_table_without_keys_deletes(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", VECTORS, columns=(("n", "INT"),), partitioned=False)
    table.append(10)
    found = opened(table.folder)
    snapshot = found.snapshot()
    assert columns(snapshot).names == ["id", "day", "n"]
    for condition, rows in (("id <= 3", 3), ("id > 3 AND id < 4", 0)):
        work = delete_rows(snapshot, snapshot.units[0], Request(Operation.DELETE, 0, rows=condition))
        assert work is not None
        (task,) = work.tasks
        done = rewrite(storage_of(found), task, RUN)
        assert done.rows_marked == matching_rows(storage_of(found), task) == rows
        assert done.edit.is_empty == (rows == 0) == (not done.outputs)
