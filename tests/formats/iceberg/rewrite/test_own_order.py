"""Tables with a sort order, which pyiceberg appends to: a night sorts their files, and the next one does nothing."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.table.sorting import NullOrder
from pyiceberg.transforms import IdentityTransform
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.optimized_lake import by as along
from tests.formats.iceberg.ordered_tables import Key, OrderedTable, by, rows

from nightkeep.clustering import sorting, wide_task
from nightkeep.formats.iceberg.rewrite.own_order import cluster_files, own_clustering
from nightkeep.model import Operation, Outcome, Request, Verified, VerifyLevel
from nightkeep.protocol import Wide
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

ORDERS: dict[str, tuple[Key, ...]] = {
    "id": (by("id"),),
    "id descending": (by("id", direction="desc", nulls="last"),),
    "nulls last": (by("small", nulls="last"), by("name", direction="desc")),
    "nulls first, descending": (by("small", direction="desc"), by("name", direction="desc", nulls="last")),
    "bucket": (by("name", "bucket[4]"), by("id", direction="desc")),
    "bucket of a decimal": (by("price", "bucket[7]"), by("price")),
    "bucket of bytes": (by("raw", "bucket[3]", "desc", "last"), by("raw", direction="desc", nulls="last")),
    "truncate": (by("name", "truncate[2]"), by("small", "truncate[3]", "desc"), by("price", "truncate[50]")),
    "times": (by("at", "year"), by("at", "month", "desc", "last"), by("at", "day"), by("at", "hour", "desc")),
    "day": (by("day", "month", "desc"), by("day")),
    "floats": (by("ratio", direction="desc"), by("flag", direction="desc", nulls="last")),
    "floats ascending": (by("flag"), by("ratio", nulls="last")),
    "decimals and bytes": (by("raw", direction="desc"), by("price", direction="desc")),
    "a field of a struct": (by("inner.text", direction="desc", nulls="last"), by("id")),
}


@pytest.fixture
def chance() -> random.Random:
    return random.Random(7)


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


@pytest.mark.parametrize("keys", ORDERS.values(), ids=list(ORDERS))
def test_a_night_sorts_the_files_of_each_partition(
    warehouse: Warehouse, keys: tuple[Key, ...], chance: random.Random
) -> None:
    lake = OrderedTable.create(warehouse.table(), *keys, partition="part")
    numbers = list(range(3000))
    chance.shuffle(numbers)
    lake.append(*(rows(numbers[n::3], chance, ["a", "b"]) for n in range(3)))
    target = sum(file.bytes for file in lake.files()) // 6
    done = lake.night(target_size=target)
    assert {file.sort_order_id for file in lake.files()} == {1}
    assert len(lake.files()) > 2
    lake.assert_sorted()
    assert lake.theirs.scan().to_arrow().num_rows == 3000
    assert str(done.plan.clustering).startswith("sort order 1: ")
    lake.night(Outcome.UNCHANGED, target_size=target)


@pytest.mark.parametrize("task_memory", [1, 2 << 30])
def test_rows_beyond_the_memory_of_a_task_are_sorted_too(
    warehouse: Warehouse, chance: random.Random, task_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightkeep.clustering.sorting.LEAST_BYTES", 1 << 16)
    # A value of half of the rows fills several buckets, and a few have most of the others.
    lake = OrderedTable.create(warehouse.table(), by("small", direction="desc", nulls="last"), by("name"))
    lake.append(*(rows(range(n, n + 4000), chance) for n in range(0, 12_000, 4000)))
    target = sum(file.bytes for file in lake.files()) // 5
    lake.night(target_size=target, task_memory=task_memory)
    assert len(lake.files()) > 3
    lake.assert_sorted()
    lake.night(Outcome.UNCHANGED, target_size=target)


def test_what_is_sorted_stays_until_enough_has_come(warehouse: Warehouse, chance: random.Random) -> None:
    lake = OrderedTable.create(warehouse.table(), by("at"))
    lake.append(rows(range(8000), chance))
    target = sum(file.bytes for file in lake.files()) // 6
    lake.night(target_size=target)
    first = {file.path for file in lake.files()}
    lake.append(rows(range(8000, 8600), chance))
    lake.night(target_size=target)
    assert first < {file.path for file in lake.files()}
    lake.append(rows(range(9000, 16_000), chance))
    lake.night(target_size=target)
    assert not first & {file.path for file in lake.files()}
    lake.assert_sorted()
    lake.night(Outcome.UNCHANGED, target_size=target)


def test_another_order_sorts_anew(warehouse: Warehouse, chance: random.Random) -> None:
    lake = OrderedTable.create(warehouse.table(), by("id"))
    lake.append(rows(range(500), chance), rows(range(500, 1000), chance))
    lake.night()
    with lake.theirs.update_sort_order() as update:
        update.desc("id", IdentityTransform(), NullOrder.NULLS_LAST)
    descending = OrderedTable(lake.table, (by("id", direction="desc", nulls="last"),))
    descending.night()
    assert {file.sort_order_id for file in lake.files()} == {2}
    descending.assert_sorted()
    descending.night(Outcome.UNCHANGED)


def test_a_clustering_that_the_policy_asks_for_goes_first(warehouse: Warehouse, chance: random.Random) -> None:
    lake = OrderedTable.create(warehouse.table(), by("id"))
    lake.append(rows(range(500), chance), rows(range(500, 1000), chance))
    done = lake.night(clustering=along("small", "day"))
    assert {file.sort_order_id for file in lake.files()} == {0}
    assert any("and not sorted by the table's sort order 1: id asc nulls first" in note for note in done.plan.notes)
    lake.night()
    lake.assert_sorted()


def test_full_sorts_all_files_anew(warehouse: Warehouse, chance: random.Random) -> None:
    lake = OrderedTable.create(warehouse.table(), by("id"))
    lake.append(rows(range(500), chance))
    lake.night()
    first = {file.path for file in lake.files()}
    lake.night(full=True)
    assert not first & {file.path for file in lake.files()}
    lake.assert_sorted()


@pytest.mark.parametrize("parts", [3, 7])
def test_rows_are_sorted_through_an_exchange_too(
    warehouse: Warehouse, chance: random.Random, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value of most rows fills several buckets."""
    monkeypatch.setattr(sorting, "LEAST_BYTES", 1 << 15)
    monkeypatch.setattr(wide_task, "SOURCE_BYTES", 1 << 15)
    monkeypatch.setattr(wide_task, "PIECE_BYTES", 1 << 13)
    lake = OrderedTable.create(warehouse.table(), by("flag", nulls="last"), by("small", direction="desc"))
    lake.append(*(rows(range(n, n + 2000), chance) for n in range(0, 6000, 2000)))
    table, run = runs.opened(lake.table), a_run()
    snapshot = table.snapshot()
    target = sum(file.bytes for file in lake.files()) // parts
    asked = Request(
        Operation.OPTIMIZE,
        run.now_ms,
        clustering=own_clustering(snapshot),
        target_bytes=target,
        task_bytes=1,
        wide_bytes=0,
    )
    found = plan(table, snapshot, asked)
    assert all(isinstance(task, Wide) for unit in found.units for task in unit.tasks)
    candidate = table.commits.stage(snapshot, execute(table, found, run, mapper=inline), run)
    checked = verify(table, found, (), candidate, level=VerifyLevel.FULL, mapper=inline)
    assert isinstance(checked, Verified), checked
    assert table.commits.commit(candidate)
    assert len(lake.files()) > 2
    lake.assert_sorted()


def test_files_that_others_sorted_stay(warehouse: Warehouse, chance: random.Random) -> None:
    """What Java's or Spark's sorted writes leave: files that state the order, without our marks in their names."""
    lake = OrderedTable.create(warehouse.table(), by("id"))
    lake.append(rows(range(4000), chance))
    target = sum(file.bytes for file in lake.files()) // 4
    lake.night(target_size=target)
    snapshot = runs.opened(lake.table).snapshot()
    (unit,) = snapshot.units
    names = [f"00000-{n}-of-spark.parquet" for n in range(len(unit.files))]
    theirs = tuple(replace(file, path=name, name=name) for file, name in zip(unit.files, names, strict=True))
    asked = Request(Operation.OPTIMIZE, 1, clustering=own_clustering(snapshot), target_bytes=target, min_bytes=1)
    assert cluster_files(snapshot, replace(unit, files=theirs), asked) is None
    doubled = (*theirs, *(replace(file, path=f"{file.path}-2", name=f"{file.name}-2") for file in theirs[:1]))
    work = cluster_files(snapshot, replace(unit, files=doubled), asked)
    assert work is not None
    assert len(work.input_files) >= 2
    small = replace(asked, min_bytes=1 << 40)
    work = cluster_files(snapshot, replace(unit, files=theirs), small)
    assert work is not None and len(work.input_files) == len(theirs)
    assert cluster_files(snapshot, replace(unit, files=theirs[:1]), small) is None
    unsorted = tuple(replace(file, sort_order_id=0) for file in theirs)
    work = cluster_files(snapshot, replace(unit, files=unsorted), asked)
    assert work is not None and len(work.input_files) == len(theirs)


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ({"transform": "zigzag"}, "its transform zigzag of column id is not handled"),
        ({"source-id": 99}, "field 99 is no column of the table that has an order"),
        ({"source-ids": [1, 3]}, "is of several columns"),
        ({"source-id": 2, "transform": "hour"}, "its transform hour of column part is not handled"),
    ],
)
def test_an_order_that_rows_cannot_be_sorted_by_is_named(
    warehouse: Warehouse, chance: random.Random, field: dict[str, Any], fault: str
) -> None:
    """Files are packed then, and state no order."""
    lake = OrderedTable.create(warehouse.table(), by("id"))
    lake.append(rows(range(50), chance), rows(range(50, 100), chance))
    document = lake.table.document()
    document["sort-orders"][-1]["fields"][0].update(field)
    lake.table.metadata.write_text(json.dumps(document))
    done = lake.night()
    assert any(fault in note for note in done.plan.notes), done.plan.notes
    assert [file.sort_order_id for file in lake.files()] == [0]
