"""The check of real versions of Delta tables: delta-spark's own, and the same after someone tampered."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, latest_version, named

from nightkeep.checking.check import check
from nightkeep.model import Address
from nightkeep.model.check_values import CheckRequest, Evidence
from nightkeep.records.check_report import CheckReport
from nightkeep.records.document import CheckStatus

Rows = pa.Table
Action = dict[str, Any]
SELECT = (
    "id",
    "CAST(id % 12 AS INT) AS k",
    "if(id % 5 = 0, NULL, if(id % 5 = 1, '', 'note ' || id)) AS note",
    "if(id % 7 = 0, DOUBLE('NaN'), if(id % 7 = 1, DOUBLE('-0.0'), id / 4)) AS x",
    "named_struct('at', timestamp_micros(id * 1000001), 'n', if(id < 600, NULL, id)) AS s",
)
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
(HONEST, DROPPED, DOUBLED, CHANGED, EMPTIED, NUMBERED, BARE, MOVED, OUTSIDE, NULLED, NESTED, COUNTED) = range(12)


@pytest.fixture(scope="module")
def optimized(delta_spark: DeltaSpark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition for each way to tamper, of two files with vectors before the last version and one after."""
    table = tmp_path_factory.mktemp("check") / "a b" / "t"
    for _ in range(2):
        delta_spark.write(table, Generated(1200, SELECT), Writing(partition_by=("k",), properties=PROPERTIES))
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id % 13 = 3", f"OPTIMIZE {named(table)}")
    return table


@pytest.fixture
def table(optimized: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(optimized, tmp_path / "t"))


def checked(spark: SparkSession, table: Path, **request: Any) -> CheckReport:
    return check(CheckRequest(Address("delta", str(table), "t"), evidence=Evidence.ROWS, **request), spark=spark)


def failed(report: CheckReport) -> dict[str, set[str | None]]:
    """Units by the name of the expectation that fails in them."""
    names = {r.name for r in report.results if r.status is CheckStatus.FAILED}
    return {name: {r.unit for r in report.results if r.name == name} for name in names}


def commit_of(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def edited(table: Path, edit: Callable[[Mapping[str, Action]], None]) -> None:
    """Change actions of the newest commit in place."""
    commit = commit_of(table, latest_version(table))
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        edit(action)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)


def added(table: Path) -> dict[int, Path]:
    """The file that the newest commit added to each partition."""
    lines = commit_of(table, latest_version(table)).read_text().splitlines()
    adds = [action["add"] for action in map(json.loads, lines) if "add" in action]
    return {int(add["partitionValues"]["k"]): table / add["path"] for add in adds}


def rewritten(file: Path, change: Callable[[Rows], Rows]) -> None:
    """Other rows under the same name, and without Hadoop's checksum beside it."""
    rows = pq.read_table(file, partitioning=None)
    pq.write_table(change(rows).cast(rows.schema), file, store_schema=False, use_deprecated_int96_timestamps=True)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def first(column: str, value: object, *, where: object) -> Callable[[Rows], Rows]:
    """Put `value` into the first row that has `where`."""

    def change(rows: Rows) -> Rows:
        place = rows.schema.get_field_index(column)
        held = rows.column(place).to_pylist()
        held[held.index(where)] = value
        return rows.set_column(place, rows.schema.field(place), pa.array(held, rows.schema.field(place).type))

    return change


def numbered_anew(rows: Rows) -> Rows:
    """The same rows with other ids."""
    name = next(name for name in rows.schema.names if name.startswith("_row-id-col"))
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), pc.add(rows.column(place), 1_000_000))


def stats_of(add: Action, change: Callable[[Action], None]) -> None:
    stats = json.loads(add["stats"])
    change(stats)
    add["stats"] = json.dumps(stats)


# ---- versions that are right ----


@pytest.mark.extended
def test_delta_sparks_optimize_passes(spark: SparkSession, optimized: Path) -> None:
    report = checked(spark, optimized)
    assert report.status is CheckStatus.PASSED, str(report)
    assert report.differences == ()
    assert report.coverage.startswith("12 of 12 touched units compared")


def test_only_the_version_before_is_comparable(spark: SparkSession, optimized: Path) -> None:
    """Whatever was planned on: since then others appended, which shows at once."""
    report = checked(spark, optimized, base_version=0)
    assert report.status is CheckStatus.PASSED, str(report)


# ---- versions that are wrong ----


def test_tampering_fails_the_expectations_made_for_it(spark: SparkSession, table: Path) -> None:
    files = added(table)
    rewritten(files[DROPPED], lambda rows: rows.slice(1))
    rewritten(files[DOUBLED], lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]))
    rewritten(files[CHANGED], first("note", "note 300", where="note 639"))
    rewritten(files[EMPTIED], first("note", "", where=None))
    rewritten(files[NUMBERED], numbered_anew)

    def edit(action: Mapping[str, Action]) -> None:
        add, remove = action.get("add"), action.get("remove")
        if remove and remove["partitionValues"]["k"] == str(BARE):
            remove.pop("deletionVector", None)
        if add and add["partitionValues"]["k"] == str(MOVED):
            add["partitionValues"]["k"] = str(HONEST)
        if add and add["partitionValues"]["k"] == str(OUTSIDE):
            stats_of(add, lambda stats: stats["maxValues"].update(id=1000))
        if add and add["partitionValues"]["k"] == str(NULLED):
            stats_of(add, lambda stats: stats["nullCount"].update(note=0))
        if add and add["partitionValues"]["k"] == str(NESTED):
            stats_of(add, lambda stats: stats["minValues"]["s"].update(at="2026-11-01T00:00:00.000Z"))
        if add and add["partitionValues"]["k"] == str(COUNTED):
            stats_of(add, lambda stats: stats.update(numRecords=stats["numRecords"] + 1))

    edited(table, edit)
    report = checked(spark, table)
    assert report.status is CheckStatus.FAILED
    units = {name: f"k={name}" for name in range(12)}
    rows = {units[n] for n in (DROPPED, DOUBLED, BARE, MOVED, HONEST)}
    values = rows | {units[n] for n in (CHANGED, EMPTIED, NUMBERED)}
    assert failed(report) == {
        "the number of rows is the same": rows,
        "the first sum of row hashes is the same": values,
        "the second sum of row hashes is the same": values,
        "no row is missing": {units[n] for n in (DROPPED, MOVED, CHANGED, EMPTIED, NUMBERED)},
        "no row is extra": {units[n] for n in (HONEST, CHANGED, EMPTIED, NUMBERED)},
        "metadata counts the rows that are there": {units[n] for n in (DROPPED, DOUBLED, COUNTED)} | {"table"},
        "statistics cover every value": {
            units[n] for n in (DROPPED, DOUBLED, EMPTIED, OUTSIDE, NULLED, NESTED, COUNTED)
        },
    }
    found = {str(d.unit): d.difference for d in report.differences}
    assert found.keys() == values
    changed = found[units[CHANGED]]
    assert (changed.missing_count, changed.extra_count) == (1, 1)
    assert changed.extra_rows[0] == {**changed.missing_rows[0], "note": "note 300"}
    assert changed.missing_rows[0]["note"] == "note 639"
    emptied = found[units[EMPTIED]]
    assert (emptied.missing_rows[0]["note"], emptied.extra_rows[0]["note"]) == (None, "")
    assert found[units[MOVED]].missing_count == found[units[HONEST]].extra_count > 20
    assert json.dumps(report.to_json())


# ---- versions that cannot be checked ----


def test_a_parent_that_is_gone_skips_the_check(spark: SparkSession, delta_spark: DeltaSpark, table: Path) -> None:
    version = latest_version(table)
    delta_spark.checkpoint(table)
    for older in range(version):
        commit_of(table, older).unlink()
    report = checked(spark, table)
    gone = f"version {version - 1}, to compare with, does not exist any more"
    assert (report.status, report.reason) == (CheckStatus.SKIPPED, gone)
    commit_of(table, version).unlink()
    report = checked(spark, table)
    assert report.reason == f"version {version} may change rows: its commit is not in the log any more"


def test_a_version_that_may_change_rows_skips_the_check(spark: SparkSession, optimized: Path) -> None:
    report = checked(spark, optimized, version=1)
    assert (report.status, report.reason) == (
        CheckStatus.SKIPPED,
        "version 1 may change rows: its commit, WRITE, changes data",
    )
    assert checked(spark, optimized, version=99).reason == "version 99 does not exist any more"


def test_a_version_of_someone_else_is_a_conflict(spark: SparkSession, optimized: Path) -> None:
    report = checked(spark, optimized, commit_user="nightkeep-us")
    assert report.conflicted
    assert (report.reason or "").startswith("version 3: expected the commit of nightkeep-us, found Apache-Spark/")
