"""Tables that Iceberg Java wrote, packed: the same rows, ids and numbers for Java, in fewer files."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg import runs
from tests.formats.iceberg.optimized_lake import COLUMNS, OptimizedLake, by, grid, request

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.naming import RUN_PROPERTY
from nightkeep.formats.iceberg.rewrite.placed_files import placed_files
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Committed, Conflicted, Operation, Outcome, Run, Verified, VerifyLevel, run_token
from nightkeep.model.run_names import commit_user
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

pytestmark = pytest.mark.in_turn("version")

VERSIONS = pytest.mark.parametrize("version", [2, 3])
BY_K = {"partition": (("k", "identity"),)}


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[OptimizedLake]:
    with runs.configured(iceberg):
        yield OptimizedLake(iceberg_java, iceberg.table())


def with_every_delete(lake: OptimizedLake, version: int, **layout: Any) -> None:
    """Files with equality deletes, position deletes of one and of several files or vectors, and with none."""
    lake.create(format_version=version, **layout)
    lake.append(grid(0, 60), rows_per_file=20)
    lake.delete([[3], [33], [777]], "id", **({"partition": [3]} if layout else {}))
    lake.append(grid(60, 80))
    paths = [each["file_path"] for each in lake.live()]
    positions = [(path, 0) for path in paths]
    if version == 3:
        lake.commit(lake.java.vectors(lake.table, positions))
    else:
        lake.commit(lake.java.position_deletes(lake.table, positions[:3], granularity="partition"))
        lake.commit(lake.java.position_deletes(lake.table, positions[3:], granularity="file"))


@VERSIONS
@pytest.mark.parametrize("layout", [{}, BY_K], ids=["whole", "partitioned"])
def test_small_files_become_one_with_every_delete_applied(
    lake: OptimizedLake, version: int, layout: dict[str, Any]
) -> None:
    with_every_delete(lake, version, **layout)
    planned = lake.snapshot
    done = lake.night()
    assert done.outcome is Outcome.VERIFIED
    files = lake.live()
    assert len(files) == len(planned.units)
    assert {each["sequence_number"] for each in files} == {planned.sequence_number}
    assert lake.live(1, 2) == []
    assert all(not task["deletes"] for task in lake.java.tasks(lake.table))
    assert lake.snapshot.operation == "replace" and lake.summary()["nightkeep.operation"] == "optimize"
    version_before = lake.snapshot.version
    assert lake.night().outcome is Outcome.UNCHANGED
    assert lake.snapshot.version == version_before


def test_the_tables_own_target_decides(lake: OptimizedLake) -> None:
    lake.create(properties={"write.target-file-size-bytes": "4000"})
    lake.append(grid(0, 4000), rows_per_file=1000)
    sizes = sizes_of(lake.snapshot, request())
    assert (sizes.target, sizes.small, sizes.large) == (4000, 3000, 7200)
    assert sizes_of(lake.snapshot, request(target_bytes=1 << 20)).target == 1 << 20
    assert sizes_of(lake.snapshot, request(target_bytes=1000, min_bytes=10)).small == 10
    lake.night()
    assert len(lake.live()) > 3
    lake.java.alter(lake.table, {"change": "set_properties", "properties": {"write.target-file-size-bytes": "4 KB"}})
    with pytest.raises(RefusedTable, match=r"write.target-file-size-bytes is '4 KB', which is no size"):
        lake.plan()


def test_large_files_are_split(lake: OptimizedLake) -> None:
    lake.create()
    lake.append(grid(0, 20_000))
    (file,) = lake.live()
    lake.night(target_size=file["file_size_in_bytes"] // 4)
    sizes = [each["file_size_in_bytes"] for each in lake.live()]
    assert 3 <= len(sizes) <= 5
    assert lake.night(target_size=file["file_size_in_bytes"] // 4).outcome is Outcome.UNCHANGED


@VERSIONS
def test_worn_files_are_purged_and_empty_ones_removed(lake: OptimizedLake, version: int) -> None:
    lake.create(format_version=version)
    lake.append(grid(0, 3000), rows_per_file=1000)
    first, second, third = sorted(each["file_path"] for each in lake.live())
    positions = [(first, n) for n in range(40)] + [(second, n) for n in range(60)] + [(third, n) for n in range(1000)]
    write = lake.java.vectors if version == 3 else lake.java.position_deletes
    lake.commit(write(lake.table, positions, **({} if version == 3 else {"granularity": "file"})))
    least = min(each["file_size_in_bytes"] for each in lake.live())
    settings: dict[str, Any] = {"target_size": least, "min_file_size": least // 2}
    assert {each.name.rpartition("/")[2] for unit in lake.snapshot.units for each in placed_files(unit)} == {
        path.rpartition("/")[2] for path in (first, second, third)
    }
    (unit,) = lake.plan(target_bytes=least, min_bytes=least // 2).units
    assert len(unit.input_files) == 2
    assert "with more than 5% of rows deleted" in unit.reason
    lake.night(**settings)
    live = {each["file_path"]: each for each in lake.live()}
    assert first in live and second not in live and third not in live and len(live) == 2
    assert [len(task["deletes"]) for task in lake.java.tasks(lake.table)].count(1) == 1 == len(lake.live(1))
    assert lake.night(**settings).outcome is Outcome.UNCHANGED


def test_positions_that_are_reported_twice_do_not_empty_a_file(lake: OptimizedLake) -> None:
    lake.create()
    lake.append(grid(0, 10))
    (path,) = (each["file_path"] for each in lake.live())
    for _ in range(2):
        lake.commit(lake.java.position_deletes(lake.table, [(path, n) for n in range(6)], granularity="file"))
    (placed,) = (each for unit in lake.snapshot.units for each in placed_files(unit))
    assert (placed.rows, placed.deleted_rows, placed.deletes) == (10, 9, 2)
    lake.night()
    assert [each["record_count"] for each in lake.live()] == [4] and lake.live(1) == []


def test_a_partition_of_which_nothing_is_left_goes(lake: OptimizedLake) -> None:
    """By keys: no metadata states that nothing is left."""
    lake.create(**BY_K)
    lake.append(grid(0, 28), rows_per_file=2)
    lake.delete([[3]], "k", partition=[3])
    lake.night()
    assert {each["partition"][0] for each in lake.live()} == {0, 1, 2, 4, 5, 6}
    assert lake.live(2) == []


@VERSIONS
def test_without_work_nothing_is_written(lake: OptimizedLake, version: int) -> None:
    lake.create(format_version=version)
    assert lake.night().outcome is Outcome.UNCHANGED
    lake.append(grid(0, 10))
    lake.delete([[1]], "id")
    before = runs.contents(lake.table)
    assert lake.night().outcome is Outcome.UNCHANGED
    assert runs.contents(lake.table) == before
    # All files were asked for: the one that has deletes is written anew.
    assert lake.night(full=True).outcome is Outcome.VERIFIED
    assert lake.live(2) == []
    assert lake.night(full=True).outcome is Outcome.UNCHANGED


def test_a_second_run_takes_what_has_come_since(lake: OptimizedLake) -> None:
    lake.create()
    sizes = []
    for n in range(3):
        lake.append(grid(1000 * n, 1000 * n + 600))
        sizes.append(lake.live()[0]["file_size_in_bytes"])
    # Two fit into one file, three do not.
    target = int(2.5 * max(sizes))
    assert lake.night(target_size=target).outcome is Outcome.VERIFIED
    packed = {each["file_path"] for each in lake.live()}
    assert len(packed) == 2
    assert lake.night(target_size=target).outcome is Outcome.UNCHANGED
    lake.append(grid(9000, 9010))
    (unit,) = lake.plan(target_bytes=target).units
    assert len(unit.input_files) == 2
    lake.night(target_size=target)
    assert len({each["file_path"] for each in lake.live()} & packed) == 1


@VERSIONS
def test_every_spec_keeps_its_files(lake: OptimizedLake, version: int) -> None:
    lake.create(format_version=version)
    lake.append(grid(0, 20), rows_per_file=7)
    lake.java.alter(lake.table, {"change": "add_partition_field", "column": "k", "transform": "identity"})
    lake.append(grid(20, 40), rows_per_file=2)
    lake.java.alter(
        lake.table,
        {"change": "remove_partition_field", "name": "k"},
        {"change": "add_partition_field", "column": "id", "transform": "bucket[2]"},
    )
    lake.append(grid(40, 60), rows_per_file=4)
    lake.append(grid(60, 80), rows_per_file=4)
    # One that holds everywhere, one that holds in a partition of its spec.
    lake.delete([[5], [25], [45]], "id", spec_id=0)
    lake.delete([[22], [43]], "id", spec_id=1, partition=[1])
    lake.night()
    files = lake.live()
    assert sorted({each["spec_id"] for each in files}) == [0, 1, 2]
    assert len(files) == len({(each["spec_id"], tuple(each["partition"])) for each in files})
    # A partition of one file was left alone: what holds everywhere holds for it.
    assert [each["spec_id"] for each in lake.live(2)] == [0]


def test_a_filter_selects_partitions(lake: OptimizedLake) -> None:
    lake.create(**BY_K)
    lake.append(grid(0, 28), rows_per_file=2)
    before = {each["file_path"]: each["partition"][0] for each in lake.live()}
    lake.night(where="k = 3 or k = 4")
    kept = {each["file_path"] for each in lake.live()} & before.keys()
    assert kept == {path for path, k in before.items() if k not in (3, 4)}
    assert lake.summary()["nightkeep.where"] == "k = 3 or k = 4"


@VERSIONS
def test_several_commits_of_one_run(lake: OptimizedLake, version: int) -> None:
    """A delete that holds everywhere goes with the last file that is older than it."""
    lake.create(format_version=version, **BY_K)
    lake.append(grid(0, 28), rows_per_file=2)
    lake.java.alter(lake.table, {"change": "remove_partition_field", "name": "k"})
    lake.delete([[5], [6], [7]], "id")
    done = lake.night(commit_size=1)
    assert len(done.commits) == 7
    held = [
        sum(e["content"] == 2 and e["status"] != 2 for e in lake.java.entries(lake.table, snapshot=each.version))
        for each in done.commits
    ]
    assert held == [1] * 6 + [0]


def test_schema_changes_are_followed(lake: OptimizedLake) -> None:
    """Renamed, promoted, added with a default, dropped."""
    lake.create(format_version=3)
    lake.append(grid(0, 20))
    lake.delete([[4, 4]], "id", "k")
    lake.java.alter(
        lake.table,
        {"change": "drop_column", "name": "v"},
        {"change": "rename_column", "name": "k", "to": "kind"},
        {"change": "change_type", "name": "kind", "type": "long"},
        {"change": "add_column", "name": "more", "type": "int", "default": 7},
    )
    lake.append([[n, n, n] for n in range(20, 30)])
    lake.night()
    assert len(lake.live()) == 1 and lake.live(2) == []
    rows = lake.java.read(lake.table, columns=["more"]).rows
    assert sorted(row[0] for row in rows) == sorted([7] * 19 + list(range(20, 30)))


def test_an_upgraded_table_keeps_its_rows_and_gets_ids(lake: OptimizedLake) -> None:
    lake.create(format_version=2)
    lake.append(grid(0, 20), rows_per_file=10)
    paths = [each["file_path"] for each in lake.live()]
    lake.commit(lake.java.position_deletes(lake.table, [(path, 1) for path in paths], granularity="partition"))
    lake.java.alter(lake.table, {"change": "set_properties", "properties": {"format-version": "3"}})
    before = lake.java.read(lake.table).rows
    done = runs.care_for(lake.table, run_id="upgraded", operation=Operation.OPTIMIZE)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert lake.java.read(lake.table).rows == before
    ids = [row[0] for row in lake.java.read(lake.table, columns=["_row_id"]).rows]
    assert len(set(ids)) == 18 and None not in ids
    lake.night(full=True)


@VERSIONS
def test_a_concurrent_delete_holds_for_the_new_files(lake: OptimizedLake, version: int) -> None:
    """Planned before, committed after, of all files of the table: what Java's own compaction loses (#10312)."""
    lake.create(format_version=version)
    lake.append(grid(0, 20), rows_per_file=5)
    lake.delete([[1]], "id")
    done = published_over(lake, lambda: lake.delete([[2], [17]], "id"))
    assert isinstance(done, Committed)
    assert lake.summary()[RUN_PROPERTY] == commit_user(run_token("over", Operation.OPTIMIZE))
    assert {row[0] for row in lake.java.read(lake.table).rows} == {*range(20)} - {1, 2, 17}
    assert len(lake.live()) == 1 and len(lake.live(2)) == 1
    lake.append([[2, 2, "again"]])
    assert len(lake.java.read(lake.table).rows) == 18
    lake.night()
    assert lake.live(2) == []


def test_concurrent_upserts_hold_for_the_new_files(lake: OptimizedLake) -> None:
    lake.create(format_version=3, **BY_K)
    lake.append(grid(0, 70), rows_per_file=5)
    changes = [("+U", [n, n % 7, "changed"]) for n in range(0, 70, 3)] + [("-D", [1, 1, ""])]
    assert isinstance(published_over(lake, lambda: lake.java.cdc(lake.table, changes, keys=["id", "k"])), Committed)
    rows = lake.java.read(lake.table).rows
    assert len(rows) == 69 and sum(row[2] == "changed" for row in rows) == 24
    lake.night()


def published_over(lake: OptimizedLake, meanwhile: Callable[[], Any]) -> Committed | Conflicted:
    """A run that plans and stages, then others commit, then it proves and publishes: Java sees what it saw before."""
    table, run = lake.opened, Run("over", run_token("over", Operation.OPTIMIZE), "1", 1_795_000_000_000)
    found = plan(table, table.snapshot(), request())
    rewrites = execute(table, found, run, mapper=inline)
    candidate = table.commits.stage(table.snapshot(found.version), rewrites, run)
    meanwhile()
    expected = lake.shown()
    checked = verify(table, found, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
    assert isinstance(checked, Verified), checked
    done = publish(table, checked, run)
    assert lake.shown() == expected
    return done


@VERSIONS
def test_javas_compaction_and_ours_never_both_win(lake: OptimizedLake, version: int) -> None:
    lake.create(format_version=version)
    lake.append(grid(0, 20), rows_per_file=5)
    theirs = lake.java.begin_rewrite(lake.table, options={"rewrite-all": "true"})
    lake.delete([[3]], "id")
    lake.night()
    before = lake.shown()
    with pytest.raises(EngineError, match="Missing required files to delete"):
        lake.java.commit_rewrite(lake.table, theirs)
    assert lake.shown() == before
    lake.append(grid(20, 30))
    done = published_over(
        lake,
        lambda: lake.java.commit_rewrite(
            lake.table, lake.java.begin_rewrite(lake.table, options={"rewrite-all": "true"})
        ),
    )
    assert isinstance(done, Conflicted)


def test_positions_by_others_cost_the_unit(lake: OptimizedLake) -> None:
    lake.create(format_version=3)
    lake.append(grid(0, 20), rows_per_file=5)
    path = lake.live()[0]["file_path"]
    done = published_over(lake, lambda: lake.commit(lake.java.vectors(lake.table, [(path, 1)])))
    assert isinstance(done, Conflicted)
    assert lake.night().outcome is Outcome.VERIFIED


def test_a_sort_order_is_claimed_where_files_are_sorted_by_it(lake: OptimizedLake) -> None:
    lake.create(sort=("id",))
    lake.append(grid(0, 20)[::-1], rows_per_file=5)
    lake.night()
    assert [each["sort_order_id"] for each in lake.live()] == [1]
    lake.night(clustering=by("k"))
    assert [each["sort_order_id"] for each in lake.live()] == [0]


def test_what_we_cannot_do_is_refused_before_any_work(lake: OptimizedLake) -> None:
    lake.create((*COLUMNS, ("price", "double")), properties={"write.parquet.compression-codec": "lzo"})
    with pytest.raises(RefusedTable, match="compression lzo is not handled"):
        lake.plan()


@VERSIONS
def test_many_manifests_become_few(lake: OptimizedLake, version: int) -> None:
    """With the files, and alone."""
    properties = {"commit.manifest.min-count-to-merge": "5", "commit.manifest-merge.enabled": "false"}
    lake.create(format_version=version, properties=properties, **BY_K)
    for n in range(6):
        lake.append(grid(7 * n, 7 * n + 7))
    assert len(lake.java.manifests(lake.table)) == 6
    (lone,) = lake.plan(min_bytes=1).units
    assert "6 small manifests" in lone.reason
    done = lake.night(min_file_size=1)
    assert done.outcome is Outcome.VERIFIED
    assert len(lake.java.manifests(lake.table)) == 1 and len(lake.live()) == 42
    assert lake.night(min_file_size=1).outcome is Outcome.UNCHANGED
    assert not lake.plan(min_bytes=1, where="k = 3").units
    for n in range(6, 12):
        lake.append(grid(7 * n, 7 * n + 7))
    assert len(lake.java.manifests(lake.table)) == 7
    lake.night(where="k < 3")
    assert len(lake.java.manifests(lake.table)) == 2


def test_spark_sees_the_same(lake: OptimizedLake, iceberg_spark: IcebergSpark) -> None:
    with_every_delete(lake, 3, **BY_K)
    query = f"SELECT *, _row_id, _last_updated_sequence_number FROM {lake.table.sql} ORDER BY id"
    iceberg_spark.attach(lake.table.warehouse)
    before = iceberg_spark.sql(query).rows
    lake.night()
    assert iceberg_spark.sql(query).rows == before
    lake.night(clustering=by("id", "v"))
    assert iceberg_spark.sql(query).rows == before
