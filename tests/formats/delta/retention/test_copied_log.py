"""Files of a log that were copied over each other: no sweep deletes a live file of delta-rs or delta-spark."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.damaged import LATER_MS, later_ms, leave, log_of, opener
from tests.retention.copies import copied
from tests.retention.damage import World

from nightkeep.errors import EvidenceError
from nightkeep.model.sweep_rules import DAY_MS

Make = Callable[[pytest.FixtureRequest, Path], None]


def _rows(number: int) -> pa.Table:
    ids = range(number * 10, number * 10 + 5)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"{key:04}" for key in ids]})


def _rust(request: pytest.FixtureRequest, table: Path) -> None:
    """Without checksums. A delete writes one file anew, so both checkpoints have as many files."""
    lakes: Lakes = request.getfixturevalue("lakes")
    for number in range(4):
        lakes.delta_rs_append(table, _rows(number))
    lakes.delta_rs_checkpoint(table)
    lakes.delta_rs_delete(table, "id = 11")
    lakes.delta_rs_checkpoint(table)


def _rust_later(request: pytest.FixtureRequest, table: Path) -> None:
    _rust(request, table)
    lakes: Lakes = request.getfixturevalue("lakes")
    for number in range(5, 7):
        lakes.delta_rs_append(table, _rows(number))
    lakes.delta_rs_delete(table, "id = 51")
    lakes.delta_rs_append(table, _rows(8))


def _spark(request: pytest.FixtureRequest, table: Path) -> None:
    delta_spark: DeltaSpark = request.getfixturevalue("delta_spark")
    for number in range(3):
        delta_spark.write(table, _rows(number))
    delta_spark.checkpoint(table)
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 11")
    delta_spark.write(table, _rows(5))


def _spark_without_checksums(request: pytest.FixtureRequest, table: Path) -> None:
    _spark(request, table)
    for path in (table / "_delta_log").glob("*.crc"):
        path.unlink()


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.extended)], ids=["some", "all"])
@pytest.mark.parametrize(
    "make",
    [
        _rust,
        _rust_later,
        *(pytest.param(make, marks=pytest.mark.extended) for make in (_spark, _spark_without_checksums)),
    ],
)
def test_no_copy_in_the_log_makes_a_live_file_an_orphan(
    request: pytest.FixtureRequest, tmp_path: Path, make: Make, *, some: bool
) -> None:
    table = tmp_path / "t"
    make(request, table)
    leave(table)
    found = copied(World("t", opener(table), log_of(table), (), later_ms(), 7 * DAY_MS), some=some)
    assert not found.failures, (str(found), found.failures)


@pytest.mark.slow
def test_a_checkpoint_with_the_bytes_of_an_older_one_is_a_copy_if_files_changed(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    _rust(request, table)
    leave(table)
    log = table / "_delta_log"
    whole = World("t", opener(table), log_of(table), (), later_ms(), 7 * DAY_MS)
    # A commit without files between the two: its version has the same checkpoint.
    info = {"timestamp": later_ms() - LATER_MS, "operation": "SET TBLPROPERTIES"}
    (log / f"{5:020}.json").write_text(json.dumps({"commitInfo": info}) + "\n")
    shutil.copyfile(log / f"{4:020}.checkpoint.parquet", log / f"{5:020}.checkpoint.parquet")
    assert whole.look().named == whole.orphans
    shutil.copyfile(log / f"{3:020}.checkpoint.parquet", log / f"{5:020}.checkpoint.parquet")
    with pytest.raises(EvidenceError, match="content of its own, found that of"):
        whole.look()
