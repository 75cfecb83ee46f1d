"""Incidents that others have reported of Delta tables, made again by the engine or forged: an audit finds each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from tests.auditing.delta_lake import DAY, OTHER, Lake, commits, two_days
from tests.checking.published_samples import files_with
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, named
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.hand_made import removal, rows_of

import nightkeep
from nightkeep.model import Outcome
from nightkeep.records import RunDocument
from nightkeep.records.row_values import files_of_values, read_values


def audited(table: Path, reports: Path, **options: Any) -> RunDocument:
    return nightkeep.audit(f"delta:{table}", since=options.pop("since", 0), reports=reports, **options)


def numbers(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "note": [f"n{n}" for n in range(count)]})


@pytest.mark.slow
@pytest.mark.parametrize("columns", [(), ("id",)], ids=["compact", "z-order"])
def test_deltalake_takes_files_twice_with_a_stale_handle(lakes: Lakes, tmp_path: Path, columns: Sequence[str]) -> None:
    """deltalake 1.6.6 takes the files again that a compaction since the handle was opened has taken. Where a delete has
    taken them, it refuses."""
    table = tmp_path / "t"
    for number in range(4):
        lakes.delta_rs_append(table, numbers(number * 10, 10))
    stale = lakes.open(table)
    lakes.delta_rs_optimize(table)
    lakes.delta_rs_append(table, numbers(100, 5))
    lakes.delta_rs_z_order(stale, columns) if columns else lakes.delta_rs_optimize(stale)
    document = audited(table, tmp_path / "reports")
    found = commits(document)
    assert document.outcome is Outcome.MISMATCH
    kept = {version: each["verdict"] for version, each in found.items() if each["kind"] == "OPTIMIZE"}
    assert kept == {4: "proven", 6: "differs"}
    assert (found[6]["missing"], found[6]["extra"], found[6]["doubled"]) == (0, 40, 40)
    assert len(lakes.delta_rs_read(table).rows) == 85


@pytest.mark.slow
def test_a_full_vacuum_of_deltalake_deletes_live_vectors(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    table = tmp_path / "t"
    vectors = {"delta.enableDeletionVectors": "true"}
    delta_spark.write(table, Generated(40, ("id", "id % 3 AS k")), Writing(properties=vectors))
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id < 5")
    gone = lakes.delta_rs_vacuum(table, retention_hours=0, dry_run=False, full=True)
    assert any("deletion_vector" in name for name in gone)
    document = audited(table, tmp_path / "reports", files=True)
    assert document.outcome is Outcome.MISMATCH
    assert commits(document)[1]["verdict"] == "unsound" and "deletion_vector" in str(commits(document)[1]["why"])
    assert "1 missing" in str(document.reason)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return two_days(tmp_path)


def test_a_remove_without_the_vector_leaves_the_file_live(lake: Lake) -> None:
    """trinodb/trino#31253: readers go on reading the file with its vector, and its rows are there twice."""
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    plain = [{name: value for name, value in add.items() if name != "deletionVector"} for add in held]
    lake.replace(plain, lake.made.written(DAY, rows))
    document = lake.audit()
    found = commits(document)[lake.made.version]
    assert (document.outcome, found["verdict"]) == (Outcome.MISMATCH, "differs"), document.reason
    # Two of the three files have a vector, and nine live rows each.
    assert (found["missing"], found["extra"], found["doubled"]) == (0, 18, 18)
    assert "with vector None" in str(found["why"])


def test_a_merge_that_removes_without_the_vector_is_unsound(lake: Lake) -> None:
    """The same by a commit that changes rows: its metadata alone shows it."""
    held = next(add for add in lake.live() if add.get("deletionVector"))
    plain = {name: value for name, value in held.items() if name != "deletionVector"}
    lake.made.commit("MERGE", {"remove": removal(plain)}, *lake.made.written(DAY, lake.rows(held)))
    document = lake.audit()
    found = commits(document)[lake.made.version]
    assert (document.outcome, found["verdict"]) == (Outcome.MISMATCH, "unsound"), document.reason


def test_rows_that_change_at_an_equal_count_are_found(lake: Lake) -> None:
    """ClickHouse/ClickHouse#118951: a merge writes one row in place of another, and all counts agree."""
    version = lake.compact(lambda rows: pa.concat_tables([rows.slice(2), rows.slice(2, 1), rows_of([7_000])]))
    document = lake.audit()
    found = commits(document)[version]
    assert (document.outcome, found["verdict"]) == (Outcome.MISMATCH, "differs")
    assert (found["missing"], found["extra"], found["doubled"]) == (2, 2, 1)


def test_values_of_rows_that_an_audit_finds_are_apart_from_its_document(tmp_path: Path) -> None:
    lake = two_days(tmp_path)
    lake.compact(lambda rows: pa.concat_tables([rows.slice(1), rows_of([70_707])]))
    policy = tmp_path / "tables.yaml"
    address = f"delta:{lake.made.folder}"
    policy.write_text(f"version: 1\ntables:\n  - {{name: t, table: '{address}', check: {{evidence: rows}}}}\n")
    found = nightkeep.audit("t", since="3650d", reports=lake.reports, policy=policy)
    nightkeep.report(reports=lake.reports, policy=policy)
    values = read_values(found, lake.reports)
    assert found.outcome is Outcome.MISMATCH and values is not None
    shown = [row for each in values.differences for row in each.difference.extra_rows]
    assert "70707" in {str(value) for row in shown for value in row.values()}
    assert files_with(lake.reports, "70707") == {*files_of_values(found)}
    (unit,) = [each for each in found.units if "difference" in each.extra]
    hashed: Any = unit.extra["difference"]
    assert (hashed["missing_rows"], hashed["extra_rows"]) == ([], []) and hashed["extra_keys"]


def test_a_compaction_of_a_stale_version_takes_newer_versions_away(lake: Lake) -> None:
    """ClickHouse/ClickHouse#120165: a writer goes by an old listing, in a store without exclusive create, and the
    versions that others committed since are gone."""
    lake.compact(day=OTHER)
    assert lake.audit().outcome is Outcome.VERIFIED
    stale, held = lake.made.version, lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.made.append(DAY, range(50, 57))
    lake.made.append(OTHER, range(150, 154))
    assert lake.audit().outcome is Outcome.SKIPPED
    for version in (stale + 1, stale + 2):
        (lake.log / f"{version:020d}.json").unlink()
    lake.replace(held, lake.made.written(DAY, rows))
    document = lake.audit()
    section: Any = document.extra["audit"]
    assert document.outcome is Outcome.MISMATCH
    assert [(each["version"], each["rolled_back"]) for each in section["vanished"]] == [
        (stale + 1, False),
        (stale + 2, False),
    ]
    assert "7 more rows" in str(document.reason) and "4 more rows" in str(document.reason)
    # The compaction itself keeps the rows of the version that it was made of.
    assert commits(document)[stale + 1]["verdict"] == "proven"


def test_deleted_rows_that_come_back_are_counted(lake: Lake) -> None:
    """A compaction that was prepared before a delete, as in nimtable/iceberg-compaction#163."""
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.made.delete(DAY, range(20, 26))
    version = lake.replace(lake.live(), lake.made.written(DAY, rows))
    document = lake.audit()
    found = commits(document)[version]
    assert (document.outcome, found["verdict"]) == (Outcome.MISMATCH, "differs")
    assert (found["missing"], found["extra"], found["doubled"]) == (0, 6, 0)


def test_an_expiry_that_removes_live_files_is_found(lake: Lake) -> None:
    """apache/iceberg#14319: files go that retained versions need. The versions of the last audit stand, so that only
    the look for files finds it."""
    lake.compact()
    assert lake.audit().outcome is Outcome.VERIFIED
    for add in lake.live():
        (lake.made.folder / unquote(add["path"])).unlink()
    assert lake.audit().outcome is Outcome.UNCHANGED
    document = lake.audit(files=True)
    assert document.outcome is Outcome.MISMATCH and "1 missing" in str(document.reason)


def test_a_lost_update_is_named_with_what_it_held(lake: Lake) -> None:
    lake.compact()
    lake.audit()
    lake.made.append(DAY, range(50, 57))
    lake.compact()
    assert lake.audit().outcome is Outcome.VERIFIED
    # A writer with a stale listing writes over the newest two versions.
    gone = lake.made.version
    for version in (gone - 1, gone):
        (lake.log / f"{version:020d}.json").unlink()
    lake.made.append(OTHER, range(200, 203))
    document = lake.audit()
    assert document.outcome is Outcome.MISMATCH
    section: Any = document.extra["audit"]
    assert [each["version"] for each in section["vanished"]] == [gone - 1, gone]
    assert f"version {gone - 1}, WRITE" in str(document.reason) and "7 more rows" in str(document.reason)
    assert lake.audit().outcome is Outcome.UNCHANGED
