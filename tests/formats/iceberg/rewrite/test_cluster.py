"""Tables that Iceberg Java wrote, along a curve: the same rows for Java, which then skips files."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Column, Warehouse, array, struct
from tests.formats.iceberg import runs
from tests.formats.iceberg.optimized_lake import OptimizedLake, by, request

from nightkeep.clustering.advise import advise
from nightkeep.clustering.layout_names import clustered_mark, cube_of, packed_mark, run_of
from nightkeep.commands.app import main
from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.model import Curve, Outcome, Run, UnitKey
from nightkeep.sql_text.queries import read_queries

pytestmark = pytest.mark.in_turn("version")

VERSIONS = pytest.mark.parametrize("version", [2, 3])
COLUMNS: Sequence[Column] = (("id", "long"), ("small", "int"), ("name", "string"), ("day", "date"))
ROWS = 16_000
FILES = 8


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[OptimizedLake]:
    with runs.configured(iceberg):
        yield OptimizedLake(iceberg_java, iceberg.table())


def rows(count: int, seed: int = 0) -> list[list[Any]]:
    """Small numbers, and texts of which the first bytes are all alike: by bytes, one of them outweighs the other."""
    chance, first = random.Random(seed), date(2026, 1, 1)
    return [
        [
            seed * 1_000_000 + n,
            chance.randrange(40),
            f"item-{chance.randrange(10_000):05d}",
            (first + timedelta(days=chance.randrange(300))).isoformat(),
        ]
        for n in range(count)
    ]


def filled(lake: OptimizedLake, version: int = 3, **layout: Any) -> int:
    """Files of rows at random; returns a target that makes more files than there were."""
    lake.create(COLUMNS, format_version=version, **layout)
    lake.append(rows(ROWS), rows_per_file=ROWS // FILES)
    return sum(each["file_size_in_bytes"] for each in lake.live()) // 20


def opened(lake: OptimizedLake, column: str, low: Any, high: Any) -> float:
    """The share of the files that Java opens for a range."""
    ends = [{"type": kind, "term": column, "value": value} for kind, value in (("gt-eq", low), ("lt-eq", high))]
    where = {"type": "and", "left": ends[0], "right": ends[1]}
    return len(lake.java.tasks(lake.table, where=where)) / len(lake.live())


@pytest.mark.few(1)
@VERSIONS
@pytest.mark.parametrize("curve", Curve)
def test_java_skips_files_by_every_column(lake: OptimizedLake, version: int, curve: Curve) -> None:
    target = filled(lake, version)
    paths = sorted(each["file_path"] for each in lake.live())
    lake.delete([[n] for n in range(0, 300, 3)], "id")
    positions = [(paths[0], n) for n in range(20)]
    if version == 3:
        lake.commit(lake.java.vectors(lake.table, positions))
    else:
        lake.commit(lake.java.position_deletes(lake.table, positions))
    ranges = [("small", 20, 21), ("name", "item-05000", "item-05100")]
    assert [opened(lake, *each) for each in ranges] == [1.0, 1.0]
    done = lake.night(clustering=by("small", "name", curve=curve), target_size=target)
    assert done.outcome is Outcome.VERIFIED
    assert all(opened(lake, *each) < 0.5 for each in ranges)
    assert len(lake.live()) >= 14 and lake.live(1, 2) == []
    skipping = done.metrics.extra["skipping"]
    assert all(skipping[name]["after"] > skipping[name]["before"] + 0.4 for name in ("small", "name"))
    assert lake.summary()["nightkeep.clustering"] == f"{curve} by small, name"
    assert lake.night(clustering=by("small", "name", curve=curve), target_size=target).outcome is Outcome.UNCHANGED


def test_what_is_clustered_stays_until_enough_has_come(lake: OptimizedLake) -> None:
    target, clustering = filled(lake), by("small", "name")
    lake.night(clustering=clustering, target_size=target)
    first = {each["file_path"] for each in lake.live()}
    lake.append(rows(ROWS // 10, seed=1), rows_per_file=ROWS // 80)
    lake.night(clustering=clustering, target_size=target)
    kept = {each["file_path"] for each in lake.live()} & first
    assert kept == first
    assert len(lake.live()) < len(first) + 8
    assert lake.night(clustering=clustering, target_size=target).outcome is Outcome.UNCHANGED
    # Another curve is another layout, and so are other columns; a column by its new name is the same one.
    (unit,) = lake.plan(clustering=by("small", "name", curve=Curve.HILBERT), target_bytes=target).units
    assert len(unit.input_files) == len(lake.live())
    assert lake.plan(clustering=by("name"), target_bytes=target).units
    lake.java.alter(lake.table, {"change": "rename_column", "name": "name", "to": "item"})
    assert not lake.plan(clustering=by("small", "item"), target_bytes=target).units
    lake.java.alter(
        lake.table, {"change": "drop_column", "name": "small"}, {"change": "add_column", "name": "small", "type": "int"}
    )
    assert lake.plan(clustering=by("small", "item"), target_bytes=target).units


def test_what_spark_states_of_the_snapshot_may_be_gone(lake: OptimizedLake) -> None:
    """Names tell what was clustered: snapshots with their summaries expire, manifests are written anew."""
    target, clustering = filled(lake, properties={"history.expire.min-snapshots-to-keep": "1"}), by("day")
    lake.night(clustering=clustering, target_size=target)
    lake.append(rows(1, seed=2))
    lake.java.rewrite_manifests(lake.table)
    lake.java.expire(lake.table, retain_last=1, older_than_millis=1 << 60)
    assert "nightkeep.clustering" not in lake.summary()
    (unit,) = lake.plan(clustering=clustering, target_bytes=target).units
    assert len(unit.input_files) == 1


def test_one_column_is_a_sort_by_any_curve(lake: OptimizedLake) -> None:
    target = filled(lake, 2)
    lake.night(clustering=by("day"), target_size=target)
    days = [lake.java.read(lake.table, where=None, columns=["day", "_file"]).rows]
    spans: dict[str, list[Any]] = {}
    for day, path in days[0]:
        spans.setdefault(path, []).append(day)
    ordered = sorted((min(each), max(each)) for each in spans.values())
    assert all(left[1] <= right[0] for left, right in pairwise(ordered))
    assert not lake.plan(clustering=by("day", curve=Curve.HILBERT), target_bytes=target).units


def test_columns_of_every_type(lake: OptimizedLake) -> None:
    kinds = (
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "decimal(9,2)",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "string",
        "uuid",
        "fixed[3]",
        "binary",
    )
    names = [kind.partition("(")[0].partition("[")[0] for kind in kinds]
    nested: Column = ("deep", struct(("x", "int"), ("y", "string")))
    lake.create([*zip(names, kinds, strict=True), nested], format_version=3)
    lake.append([typed(n) for n in range(600)], rows_per_file=150)
    clustering = by(*names[:8], "deep.x")
    assert lake.night(clustering=clustering, target_size=9_000).outcome is Outcome.VERIFIED
    assert lake.night(clustering=by(*names[8:], "DEEP.Y"), target_size=9_000).outcome is Outcome.VERIFIED
    assert lake.night(clustering=by(*names[8:], "deep.y"), target_size=9_000).outcome is Outcome.UNCHANGED


def typed(n: int) -> list[Any]:
    if n % 50 == 0:
        return [None] * 16
    mixed = n * 7919 % 600
    day = (date(2026, 1, 1) + timedelta(days=mixed)).isoformat()
    time = f"{mixed % 24:02d}:{n % 60:02d}:00"
    return [
        n % 2 == 0,
        mixed,
        mixed << 33,
        mixed / 4,
        mixed / 8,
        f"{mixed}.25",
        day,
        f"{time}.000000",
        f"{day}T{time}.000001",
        f"{day}T{time}.000001Z",
        f"{day}T{time}.000000001",
        f"some text {mixed}",
        f"00000000-0000-0000-0000-{mixed:012d}",
        f"{mixed % 256:02x}0102",
        f"{mixed:04x}",
        {"x": mixed, "y": f"y{mixed}"},
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("nowhere",), "the table has no such column"),
        (("day",), "it is a partition column, one value in every file"),
        (("many",), "has no order"),
        (("plain",), "it has no statistics, .*; set write.metadata.metrics.column.NAME to truncate"),
        (("id", "ID"), "one is there twice"),
    ],
)
def test_columns_that_do_not_help_are_named(lake: OptimizedLake, columns: tuple[str, ...], message: str) -> None:
    lake.create(
        (*COLUMNS, ("many", array("int")), ("plain", "int")),
        partition=(("day", "identity"), ("small", "bucket[4]")),
        properties={"write.metadata.metrics.column.plain": "counts"},
    )
    with pytest.raises(UsageError, match=message):
        lake.plan(clustering=by(*columns))
    assert not lake.plan(clustering=by("small")).units


def test_partitions_of_several_specs_each_stay_theirs(lake: OptimizedLake) -> None:
    """A column that partitions in one spec is one among others in another."""
    lake.create(COLUMNS)
    lake.append(rows(400), rows_per_file=100)
    lake.java.alter(lake.table, {"change": "add_partition_field", "column": "small", "transform": "bucket[2]"})
    lake.append(rows(400, seed=1), rows_per_file=100)
    target = min(each["file_size_in_bytes"] for each in lake.live())
    lake.night(clustering=by("small", "day"), target_size=target)
    files = lake.live()
    assert {each["spec_id"] for each in files} == {0, 1} and len(files) > 4
    assert lake.night(clustering=by("small", "day"), target_size=target).outcome is Outcome.UNCHANGED


def test_rows_of_which_none_is_left_leave_no_file(lake: OptimizedLake) -> None:
    lake.create(COLUMNS, partition=(("small", "identity"),))
    lake.append([[n, 1, "x", "2026-01-01"] for n in range(50)], rows_per_file=10)
    lake.append([[n, 2, "x", "2026-01-01"] for n in range(50)])
    lake.delete([[1]], "small", partition=[1])
    for settings in ({}, {"exchange_above": 0}):
        lake.night(clustering=by("id"), **settings)
        assert {each["partition"][0] for each in lake.live()} == {2}
        lake.append([[n, 1, "x", "2026-01-01"] for n in range(50)], rows_per_file=10)
        lake.delete([[1]], "small", partition=[1])


@VERSIONS
def test_the_exchange_gives_the_same_rows_and_skipping(lake: OptimizedLake, version: int) -> None:
    target = filled(lake, version)
    paths = [each["file_path"] for each in lake.live()]
    lake.delete([[n] for n in range(0, 300, 3)], "id")
    write = lake.java.vectors if version == 3 else lake.java.position_deletes
    lake.commit(write(lake.table, [(path, 5) for path in sorted(paths)]))
    settings: dict[str, Any] = {"clustering": by("small", "name"), "target_size": target}
    assert (
        "through Spark's exchange"
        in lake.plan(clustering=settings["clustering"], target_bytes=target, wide_bytes=0).units[0].reason
    )
    done = lake.night(exchange_above=0, **settings)
    assert done.outcome is Outcome.VERIFIED
    assert opened(lake, "small", 20, 21) < 0.5 and opened(lake, "name", "item-05000", "item-05100") < 0.5
    assert len(lake.live()) >= 14 and lake.live(1, 2) == []
    assert lake.night(exchange_above=0, **settings).outcome is Outcome.UNCHANGED


def test_advice_comes_true(lake: OptimizedLake) -> None:
    target = filled(lake)
    lake.delete([[n] for n in range(100)], "id")
    asked = read_queries("small between 3 and 4\nname like 'item-03%'", subject="queries")
    found = advise("events", lake.opened.layout, lake.snapshot, asked, target_bytes=target)
    assert found.clustering is not None and set(found.clustering.columns) == {"small", "name"}
    assert found.read_share_before > 0.9
    lake.night(clustering=found.clustering, target_size=target)
    after = advise("events", lake.opened.layout, lake.snapshot, asked, target_bytes=target)
    assert after.read_share_before == pytest.approx(found.read_share_after, abs=0.15)
    assert lake.opened.layout.target_bytes(lake.snapshot, request()) == 512 << 20


def test_the_command_advises(lake: OptimizedLake, capsys: pytest.CaptureFixture[str]) -> None:
    filled(lake)
    with pytest.raises(SystemExit) as ended:
        main(["advise", str(runs.address(lake.table)), "--target-size", "10KB", "--json"])
    assert ended.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == lake.snapshot.version
    assert found["clustering"]["columns"] and found["read_share_after"] < found["read_share_before"]


@pytest.mark.parametrize("partitioned", ["true", "false"])
def test_layouts_for_object_stores_keep_marks(lake: OptimizedLake, partitioned: str) -> None:
    target = filled(
        lake, properties={"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": partitioned}
    )
    clustering = by("small", "name")
    lake.night(clustering=clustering, target_size=target)
    assert not lake.plan(clustering=clustering, target_bytes=target).units


def test_a_mark_is_read_from_the_name_it_was_written_to() -> None:
    run, key = Run("r", "0123456789abcdef", "one-two", 0), UnitKey("day=1")
    clustered, packed = clustered_mark([3, 1], Curve.Z), packed_mark(1000)
    name = f"file:/lake/data/day=1/{IcebergNaming(run, key, mark=clustered).data()}"
    assert cube_of(name, clustered) == cube_of(IcebergNaming(run, key, mark=clustered).data(), clustered) is not None
    assert cube_of(IcebergNaming(run, UnitKey("day=2"), mark=clustered).data(), clustered) != cube_of(name, clustered)
    assert cube_of(name, clustered_mark([1, 3], Curve.Z)) is None
    assert cube_of(name, clustered_mark([3, 1], Curve.HILBERT)) is None and run_of(name, packed) is None
    assert clustered_mark([3], Curve.Z) == clustered_mark([3], Curve.HILBERT) != clustered_mark([4], Curve.Z)
    assert run_of(IcebergNaming(run, key, mark=packed).data(), packed) == run.token
    for other in (
        IcebergNaming(run, key).data(),
        "00000-1-ab-00001.parquet",
        f"{name}.crc",
        IcebergNaming(run, key).deletes(),
    ):
        assert cube_of(other, clustered) is None and run_of(other, packed) is None
