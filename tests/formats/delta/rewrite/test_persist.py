"""Deletion vectors: what is scattered goes to one file, what hides nothing or everything goes away."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.formats.delta.lake import ROW_TRACKING, Lake, request

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.deletes.vectors import vector_file
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.model import Operation, Plan

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("day", pa.string())])
ASKED = request(Operation.PERSIST_DELETES)


def lake(folder: Path, files: int = 6, properties: Mapping[str, str] | None = None) -> Lake:
    found = Lake(folder / "t", SCHEMA, ["day"], {**ROW_TRACKING, **(properties or {})})
    for day in "xy":
        rows = pa.table({"a": np.arange(files * 100), "s": [f"{day}{n}" for n in range(files * 100)]})
        found.append(rows, files=files, partition={"day": day})
    return found


def day(found: Lake, name: str) -> Sequence[DeltaDataFile]:
    return found.unit(f"day={name}").files


def places(found: Lake) -> set[Any]:
    return {vector_file(file.vector) for file in found.files if file.vector}


def done(found: Lake, asked: Any = ASKED) -> Plan:
    before, files = found.rows(), {file.path: file for file in found.files}
    plan = found.run(asked)
    assert found.rows() == before
    assert not found.plan(ASKED).units
    kept = ("baseRowId", "defaultRowCommitVersion", "stats", "size", "modificationTime")
    for file in found.files:
        assert [file.raw.get(key) for key in kept] == [files[file.path].raw.get(key) for key in kept]
    return plan


def test_scattered_vectors_of_a_partition_go_to_one_file(tmp_path: Path) -> None:
    found = lake(tmp_path)
    for number, file in enumerate(day(found, "x")[:4]):
        found.mark({file.path: range(number, 50)})
    found.mark({day(found, "y")[0].path: [1], day(found, "y")[1].path: [2]})
    others = {file.path: file.vector for file in day(found, "y")}
    plan = done(found)
    assert [unit.reason for unit in plan.units] == ["4 deletion vectors scattered over 4 files"]
    assert [unit.estimate.benefit for unit in plan.units] == ["readers open 1 file of vectors for 4"]
    assert len(places(found)) == 2
    assert {file.path: file.vector for file in day(found, "y")} == others


def test_a_file_of_vectors_that_is_mostly_dead_is_replaced(tmp_path: Path) -> None:
    found = lake(tmp_path)
    files = day(found, "x")
    found.mark({file.path: range(0, 99, 2) for file in files})
    old = places(found)
    found.mark({file.path: [1] for file in files[:-1]})
    assert len(places(found)) == 2
    plan = done(found)
    assert [unit.reason for unit in plan.units] == ["1 deletion vectors scattered over 1 files"]
    assert len(places(found)) == 2 and not places(found) & old


def test_vectors_of_nothing_and_of_everything_go(tmp_path: Path) -> None:
    found = lake(tmp_path, properties={"delta.enableDeletionVectors": "false"})
    first, second, third, *_ = day(found, "x")
    found.mark({first.path: range(100), second.path: [], third.path: [4]})
    plan = done(found)
    assert [unit.reason for unit in plan.units] == ["1 of no rows; 1 that hide every row of their file"]
    assert [unit.estimate.benefit for unit in plan.units] == ["2 vectors fewer"]
    assert [file.path for file in found.files if file.vector] == [third.path]
    assert first.path not in {file.path for file in found.files}


def test_a_partition_without_any_row_ends(tmp_path: Path) -> None:
    found = lake(tmp_path, files=2)
    found.mark({file.path: range(100) for file in day(found, "x")})
    done(found)
    assert not day(found, "x")


def test_all_asked_for_packs_two_files(tmp_path: Path) -> None:
    found = lake(tmp_path)
    for file in day(found, "x")[:2]:
        found.mark({file.path: [3]})
    assert not found.plan(ASKED).units
    done(found, request(Operation.PERSIST_DELETES, full=True))
    assert len(places(found)) == 1


def test_new_vectors_are_refused_where_the_table_has_none_enabled(tmp_path: Path) -> None:
    found = lake(tmp_path, properties={"delta.enableDeletionVectors": "false"})
    assert not found.plan(ASKED).units
    for file in day(found, "x")[:4]:
        found.mark({file.path: [3]})
    with pytest.raises(RefusedTable, match=r"delta.enableDeletionVectors"):
        found.plan(ASKED)
