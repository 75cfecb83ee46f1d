"""What was reported of Iceberg's engines, made again with the engine or forged as the report has it, and found."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.auditing.iceberg_audits import audited
from tests.auditing.iceberg_forgeries import point_to
from tests.drivers.iceberg_java import IcebergJava, Layout, Written
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import COLUMNS, configured, row

from nightkeep.model import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("version")]

DAY = "2026-11-01"
VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture
def table(iceberg: Warehouse) -> Iterator[Table]:
    with configured(iceberg):
        yield iceberg.table("shop.events")


def written(java: IcebergJava, table: Table, *, version: int) -> int:
    """Three files of ten rows, in one partition."""
    java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=version))
    for start in (0, 10, 20):
        snapshot = java.append(table, [row(DAY, number) for number in range(start, start + 10)])
    return snapshot


def data_paths(java: IcebergJava, table: Table) -> list[str]:
    live = [each for each in java.entries(table) if each["status"] != 2 and each["content"] == 0]
    return [each["file_path"] for each in live]


def rewritten(java: IcebergJava, table: Table, new: Written, *, remove: list[str]) -> int:
    """By Java's RewriteFiles, as a compaction calls it that does not look at commits since its plan."""
    newest = table.document()["current-snapshot-id"]
    return java.commit(table, new, kind="rewrite", remove=remove, base=newest)


@VERSIONS
def test_a_rewrite_beside_equality_deletes_brings_rows_back(
    version: int, iceberg_java: IcebergJava, table: Table
) -> None:
    """apache/iceberg#10312: the new files get the number of their commit, and deletes since the plan pass them over."""
    planned = written(iceberg_java, table, version=version)
    paths = data_paths(iceberg_java, table)
    rows = iceberg_java.rows(table, [row(DAY, number) for number in range(30)])
    iceberg_java.cdc(table, [("-D", row(DAY, number)) for number in (3, 14, 25)], keys=["id", "day"])
    broken = rewritten(iceberg_java, table, rows, remove=paths)
    assert len(iceberg_java.read(table).rows) == 30
    found = audited(table, since=planned)
    assert found.outcome is Outcome.MISMATCH
    assert [*found.wrong] == [broken] and found.wrong[broken]["verdict"] == "differs"
    assert found.wrong[broken]["kind"] == "replace"
    if version == 2:
        assert found.rows_of(broken) == (0, 3, 0)
    else:
        # The new files have no row ids either: each row is another one.
        assert found.rows_of(broken) == (27, 30, 0)


def test_javas_own_compaction_beside_equality_deletes_is_proven(iceberg_java: IcebergJava, table: Table) -> None:
    """It keeps the number of its start (use-starting-sequence-number)."""
    planned = written(iceberg_java, table, version=2)
    begun = iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"})
    iceberg_java.cdc(table, [("-D", row(DAY, number)) for number in (3, 14, 25)], keys=["id", "day"])
    kept = iceberg_java.commit_rewrite(table, begun)
    assert audited(table, since=planned).require_sound().verdicts[kept] == "proven"


@VERSIONS
def test_a_compaction_that_leaves_deletes_out_brings_rows_back(
    version: int, iceberg_java: IcebergJava, table: Table
) -> None:
    """nimtable/iceberg-compaction#163: it reads data files without their deletes, and removes both."""
    written(iceberg_java, table, version=version)
    deleted = [(path, 0) for path in data_paths(iceberg_java, table)]
    if version == 3:
        positions = iceberg_java.vectors(table, deleted)
    else:
        positions = iceberg_java.position_deletes(table, deleted, granularity="file")
    parent = iceberg_java.commit(table, positions)
    assert len(iceberg_java.read(table).rows) == 27
    paths = [each["file_path"] for each in iceberg_java.entries(table) if each["status"] != 2]
    broken = rewritten(iceberg_java, table, iceberg_java.rows(table, [row(DAY, n) for n in range(30)]), remove=paths)
    found = audited(table, since=parent)
    assert found.outcome is Outcome.MISMATCH
    assert [*found.wrong] == [broken]
    assert found.rows_of(broken) == ((0, 3, 0) if version == 2 else (27, 30, 0))


def test_rows_that_change_at_an_equal_count(iceberg_java: IcebergJava, table: Table) -> None:
    """ClickHouse#118951: an OPTIMIZE after which as many rows are there, some with other values."""
    parent = written(iceberg_java, table, version=2)
    rows = [row(DAY, number, "changed" if number in (4, 5) else "as written") for number in range(30)]
    broken = rewritten(iceberg_java, table, iceberg_java.rows(table, rows), remove=data_paths(iceberg_java, table))
    found = audited(table, since=parent, settings={})
    assert found.outcome is Outcome.MISMATCH
    assert [*found.wrong] == [broken] and found.rows_of(broken) == (2, 2, 0)
    unit = next(each for each in found.document.units if each.extra["verdict"] == "differs")
    difference: Any = unit.extra["difference"]
    assert difference["columns"] == ["note"]


@VERSIONS
def test_a_compaction_on_a_stale_pointer_loses_versions(version: int, iceberg_java: IcebergJava, table: Table) -> None:
    """ClickHouse#120165: it goes on from metadata that is not the newest, and what was committed since is gone."""
    written(iceberg_java, table, version=version)
    stale = table.metadata
    lost = [iceberg_java.append(table, [row(DAY, number)]) for number in (50, 51)]
    audited(table).require_sound()
    point_to(table, stale)
    iceberg_java.commit_rewrite(table, iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"}))
    found = audited(table)
    assert found.outcome is Outcome.MISMATCH
    assert [(each["version"], each["rolled_back"]) for each in found.section["vanished"]] == [
        (version, False) for version in lost
    ]
    assert "which stated 1 more rows, is gone, and no rollback is recorded" in (found.document.reason or "")
    assert not found.wrong, "the compaction itself keeps the rows of the version that it is built on"
    audited(table).require_sound()


@pytest.mark.parametrize("expires", [False, True], ids=["kept", "expired"])
def test_a_rollback_is_recorded(expires: bool, iceberg_java: IcebergJava, table: Table) -> None:
    """Also where the versions that were undone have expired since, and by whoever committed after it."""
    stays = written(iceberg_java, table, version=2)
    gone = iceberg_java.append(table, [row(DAY, 50)])
    audited(table).require_sound()
    iceberg_java.refs(table, {"change": "rollback", "snapshot": stays})
    iceberg_java.append(table, [row(DAY, 51)])
    if expires:
        iceberg_java.expire(table, snapshots=[gone])
    found = audited(table)
    assert found.outcome is not Outcome.MISMATCH
    assert [(each["version"], each["rolled_back"]) for each in found.section["vanished"]] == [(gone, True)]
    assert "was rolled back, as metadata records" in (found.document.reason or "")


def test_an_expiry_that_removed_live_files(iceberg_java: IcebergJava, table: Table) -> None:
    """apache/iceberg#14319: found by the look for files, and by what must read them."""
    written(iceberg_java, table, version=2)
    audited(table, files=True).require_sound()
    path = Path(data_paths(iceberg_java, table)[0].removeprefix("file:"))
    path.unlink()
    found = audited(table, files=True)
    assert found.outcome is Outcome.MISMATCH
    assert "1 missing" in (found.document.reason or "")
    kept = iceberg_java.rewrite_manifests(table)
    assert audited(table).verdicts == {kept: "proven"}, "its manifests list the same files, which are not read"


def test_a_file_of_another_size(iceberg_java: IcebergJava, table: Table) -> None:
    written(iceberg_java, table, version=2)
    path = Path(data_paths(iceberg_java, table)[0].removeprefix("file:"))
    path.write_bytes(path.read_bytes() + b"PAR1")
    found = audited(table, files=True)
    assert found.outcome is Outcome.MISMATCH
    assert "1 of another size" in (found.document.reason or "")


def test_a_manifest_rewrite_that_loses_a_file(iceberg_java: IcebergJava, table: Table) -> None:
    """A `replace` of manifests alone is held to the same."""
    written(iceberg_java, table, version=2)
    parent = iceberg_java.commit(table, iceberg_java.rows(table, [row(DAY, 60)]), kind="append")
    lost = iceberg_java.commit(table, kind="rewrite", remove=data_paths(iceberg_java, table)[:1])
    found = audited(table, since=parent)
    assert [*found.wrong] == [lost] and found.wrong[lost]["verdict"] == "differs"
    missing, extra, doubled = found.rows_of(lost)
    assert missing in (1, 10) and (extra, doubled) == (0, 0)


def test_evidence_has_no_values_by_default(iceberg_java: IcebergJava, table: Table) -> None:
    parent = written(iceberg_java, table, version=2)
    rows = [row(DAY, number, "secret text" if number == 4 else "as written") for number in range(30)]
    rewritten(iceberg_java, table, iceberg_java.rows(table, rows), remove=data_paths(iceberg_java, table))
    found = audited(table, since=parent)
    assert found.outcome is Outcome.MISMATCH
    assert "secret text" not in json.dumps(found.section)
    assert all("secret text" not in json.dumps(dict(each.extra), default=str) for each in found.document.units)
