"""What others paid for, case by case: each test is named after what must not happen to a table of ours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg import runs
from tests.formats.iceberg.breaking import breaking
from tests.formats.iceberg.catalog_world import address_of
from tests.formats.iceberg.nights import Nights
from tests.formats.iceberg.optimized_lake import grid
from tests.support.faulty_store import Fuse, Moment, fail

from nightkeep.api.changes import Workers, apply_batch
from nightkeep.formats.iceberg.upsert.batch import ChangeBatch, ChangeMode
from nightkeep.model import Committed, Conflicted, Operation, Outcome, Request, Run, Verified, VerifyLevel, run_token
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

pytestmark = pytest.mark.in_turn("version")

ALL = {"rewrite-all": "true"}
UUIDS = [str(UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)) for number in range(1, 9)]
"""All over the range, of both signs."""
ADD_K = {"change": "add_partition_field", "column": "k", "transform": "identity"}
VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Nights]:
    with runs.configured(iceberg):
        yield Nights(iceberg_java, iceberg.table())


def proven(lake: Nights, run_id: str) -> tuple[Run, Verified]:
    """A conversion that waits for nothing but its commit."""
    token = run_token(run_id, Operation.PERSIST_DELETES)
    table, run = lake.opened, Run(run_id, token, "1", 1_795_000_000_000)
    base = table.snapshot()
    found = plan(table, base, Request(Operation.PERSIST_DELETES, run.now_ms))
    rewrites = execute(table, found, run, mapper=inline)
    candidate = table.commits.stage(base, rewrites, run)
    checked = verify(table, found, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
    assert isinstance(checked, Verified), checked
    return run, checked


# Uuids, which Java orders as signed numbers and everybody else as bytes


@VERSIONS
def test_rows_are_found_by_their_uuid_after_an_optimize(lake: Nights, version: int) -> None:
    """By bounds from 0123.. to f79c.. Java skips the file: its own writer loses such rows, and so would ours."""
    lake.create((("u", "uuid"), ("id", "long")), format_version=version)
    for number, each in enumerate(UUIDS):
        lake.append([[each, number]])
    assert lake.night(full=True).outcome is Outcome.VERIFIED
    assert len(lake.java.tasks(lake.table)) == 1
    for number, each in enumerate(UUIDS):
        assert lake.java.read(lake.table, where={"type": "eq", "term": "u", "value": each}).rows == ((each, number),)


@VERSIONS
def test_an_upsert_by_uuid_doubles_no_row(lake: Nights, version: int, tmp_path: Path) -> None:
    lake.create((("u", "uuid", True), ("id", "long")), format_version=version)
    lake.append([[each, number] for number, each in enumerate(UUIDS)])
    changes = pa.table({"u": [UUID(each).bytes for each in UUIDS], "id": range(100, 100 + len(UUIDS))})
    pq.write_table(changes, tmp_path / "changes.parquet")
    batch = ChangeBatch("b", (str(tmp_path / "changes.parquet"),), ChangeMode.UPSERT, keys=("u",))
    apply_batch(address_of(lake.table), batch, Workers())
    assert sorted(row[1] for row in lake.rows.rows) == [100 + number for number in range(len(UUIDS))]
    before = lake.rows
    assert lake.persist().outcome is Outcome.VERIFIED
    assert lake.rows == before


# Conversions of Iceberg's own


@VERSIONS
def test_deletes_of_no_partition_reach_every_partition_of_every_spec(lake: Nights, version: int) -> None:
    """apache/iceberg #17018, and the review of #15996: one key, live under several specs."""
    lake.create(format_version=version)
    lake.append(grid(0, 14))
    lake.alter(ADD_K)
    lake.append(grid(0, 21))
    lake.alter({"change": "add_partition_field", "column": "id", "transform": "bucket[2]"})
    lake.append(grid(7, 28))
    lake.delete([[0], [8], [20], [27], [99]], "id", spec_id=0)
    assert {row[0] for row in lake.rows.rows} == set(range(28)) - {0, 8, 20, 27}
    assert lake.persist().outcome is Outcome.VERIFIED
    lake.require_positions_only()
    held = [task for task in lake.java.tasks(lake.table) if task["deletes"]]
    assert sorted({task["spec_id"] for task in held}) == [0, 1, 2]
    assert sum(task["deletes"][0]["record_count"] for task in held) == 8


@VERSIONS
def test_data_from_before_the_first_delete_is_found(lake: Nights, version: int) -> None:
    """Review of #15996: what came before the first equality delete was never indexed."""
    lake.create(format_version=version)
    lake.append(grid(0, 10), rows_per_file=4)
    assert lake.persist().outcome is Outcome.UNCHANGED
    lake.append(grid(10, 12))
    assert lake.persist().outcome is Outcome.UNCHANGED
    lake.delete([[0], [9], [11]], "id")
    assert lake.persist().outcome is Outcome.VERIFIED
    lake.require_positions_only()
    assert {row[0] for row in lake.rows.rows} == {*range(1, 9), 10}


@VERSIONS
def test_two_conversions_of_one_snapshot_are_not_both_done(lake: Nights, version: int) -> None:
    """apache/iceberg #17038: a lock let go too early. Changes by keys come between the two."""
    lake.create(format_version=version)
    lake.append(grid(0, 30), rows_per_file=10)
    lake.delete([[1], [12]], "id")
    (first, one), (second, other) = proven(lake, "first"), proven(lake, "second")
    assert isinstance(publish(lake.opened, one, first), Committed)
    lake.java.cdc(lake.table, [("-D", [2, 2, "row 2"]), ("+U", [13, 6, "late"])], keys=["id"])
    shown = lake.shown()
    assert isinstance(publish(lake.opened, other, second), Conflicted)
    assert lake.shown() == shown
    assert lake.persist().outcome is Outcome.VERIFIED
    lake.require_positions_only()
    assert len(lake.rows.rows) == 27


@VERSIONS
def test_files_of_converted_deletes_are_gone_from_the_table_and_may_be_deleted(lake: Nights, version: int) -> None:
    """apache/iceberg #17189: converted files were still listed, and applied, for ever."""
    lake.create(format_version=version)
    lake.append(grid(0, 20))
    lake.delete([[1], [7]], "id")
    (file,) = (Path(each["file_path"].removeprefix("file:")) for each in lake.live(2))
    lake.persist()
    assert lake.live(2) == []
    assert [each["status"] for each in lake.java.entries(lake.table) if each["content"] == 2] == [2]
    lake.append([[1, 1, "again"]])
    assert [each for each in lake.java.entries(lake.table) if each["content"] == 2] == []
    shown = lake.shown()
    assert file.exists()
    deleted = lake.java.expire(lake.table, older_than_millis=2**45, retain_last=1)
    assert str(file) in {path.removeprefix("file:").replace("//", "/") for path in deleted} and not file.exists()
    assert lake.shown() == shown and len(shown) == 19


@pytest.mark.few(1)
@VERSIONS
@pytest.mark.parametrize("end", ["parquet or puffin", "avro", "json"])
def test_positions_of_a_failed_cycle_are_found_by_the_next(lake: Nights, version: int, end: str) -> None:
    """apache/iceberg #17630: the failed cycle had used up what it knew, the retry left rows visible.

    It fails before the positions are written, when a manifest is, and when the snapshot is; others go on meanwhile.
    """
    lake.create(format_version=version, partition=(("k", "identity"),))
    lake.append(grid(0, 21), rows_per_file=7)
    changes = [("-D", [1, 1, ""]), ("+U", [9, 2, "new"]), ("+U", [9, 2, "newer"])]
    lake.java.cdc(lake.table, changes, keys=["id", "k"])
    shown = lake.shown()
    assert failed_at(lake, "puffin parquet" if end.startswith("parquet") else end)
    assert lake.shown() == shown
    lake.java.cdc(lake.table, [("-D", [15, 1, ""]), ("+U", [1, 1, "again"])], keys=["id", "k"])
    shown = lake.shown()
    again = runs.care_for(lake.table, run_id="cycle")
    assert again.outcome is Outcome.VERIFIED, again.reason
    assert lake.shown() == shown
    lake.require_positions_only()
    assert {row[0]: row[2] for row in lake.rows.rows} == {
        **{n: f"row {n}" for n in range(21) if n != 15},
        9: "newer",
        1: "again",
    }


def failed_at(lake: Nights, ends: str) -> bool:
    """Whether a run failed at its first write of a file with one of these endings."""

    class Burning(Fuse):
        def pass_on(self, point: Any) -> None:
            if point.moment is Moment.HALFWAY and point.name.rpartition(".")[2] in ends.split():
                fail(point)

    with breaking(Burning()):
        document = runs.care_for(lake.table, run_id="cycle")
    return document.outcome is Outcome.FAILED


# Deletes that compactions lose


@VERSIONS
def test_a_compaction_of_everything_loses_deletes_that_conversions_would_have_kept(lake: Nights, version: int) -> None:
    """apache/iceberg #10312: Java's commit drops equality deletes that are younger than what it compacted.

    Once they are positions, Java rejects its compaction; and one that begins after the conversion has nothing to lose.
    """
    lake.create(format_version=version)
    lake.append(grid(0, 10), rows_per_file=4)
    begun = lake.java.begin_rewrite(lake.table, options=ALL)
    lake.delete([[2], [8]], "id")
    lake.append([[100, 0, "after"]])
    assert lake.persist().outcome is Outcome.VERIFIED
    with pytest.raises(EngineError):
        lake.java.commit_rewrite(lake.table, begun)
    assert {row[0] for row in lake.rows.rows} == {0, 1, 3, 4, 5, 6, 7, 9, 100}
    lake.java.commit_rewrite(lake.table, lake.java.begin_rewrite(lake.table, options=ALL))
    assert {row[0] for row in lake.rows.rows} == {0, 1, 3, 4, 5, 6, 7, 9, 100}


def test_java_still_loses_deletes_without_a_conversion(lake: Nights) -> None:
    """apache/iceberg #10312 as it is in 1.12.0: once this fails, the notes on it in our code are to be looked at."""
    lake.create()
    lake.append(grid(0, 10), rows_per_file=4)
    begun = lake.java.begin_rewrite(lake.table, options=ALL)
    lake.delete([[2], [8]], "id")
    lake.append([[100, 0, "after"]])
    lake.java.commit_rewrite(lake.table, begun)
    assert {row[0] for row in lake.rows.rows} == {*range(10), 100}, "2 and 8 are back"


@VERSIONS
def test_deletes_outlive_our_compaction_and_every_commit_of_java_after_it(lake: Nights, version: int) -> None:
    """apache/iceberg #10312: Java drops deletes by the least sequence number that our manifests say they have."""
    lake.create(format_version=version)
    lake.append(grid(0, 10), rows_per_file=4)
    table, run = lake.opened, Run("pack", run_token("pack", Operation.OPTIMIZE), "1", 1_795_000_000_000)
    found = plan(table, table.snapshot(), Request(Operation.OPTIMIZE, run.now_ms))
    rewrites = execute(table, found, run, mapper=inline)
    candidate = table.commits.stage(table.snapshot(found.version), rewrites, run)
    lake.delete([[2]], "id")
    lake.delete([[8]], "id")
    checked = verify(table, found, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
    assert isinstance(checked, Verified), checked
    assert isinstance(publish(table, checked, run), Committed)
    expected = {0, 1, 3, 4, 5, 6, 7, 9}
    assert {row[0] for row in lake.rows.rows} == expected
    lake.java.rewrite_manifests(lake.table)
    assert {row[0] for row in lake.rows.rows} == expected
    late = lake.java.begin_rewrite(lake.table, options=ALL)
    lake.java.cdc(lake.table, [("+U", [200, 0, "late"])], keys=["id"])
    assert {row[0] for row in lake.rows.rows} == expected | {200}
    lake.persist()
    lake.require_positions_only()
    with pytest.raises(EngineError):
        lake.java.commit_rewrite(lake.table, late)
    assert {row[0] for row in lake.rows.rows} == expected | {200}
