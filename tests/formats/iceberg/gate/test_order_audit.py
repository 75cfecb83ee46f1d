"""Staged files that name a sort order: the gate names rows out of it, files that overlap, and another id."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table.sorting import NullOrder
from pyiceberg.transforms import IdentityTransform
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.ordered_tables import OrderedTable, by, rows
from tests.formats.iceberg.sabotage import METRICS, Act, Item, Staged

from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.iceberg.metadata.content_files import NewFile
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.rewrite.own_order import own_clustering
from nightkeep.model import Candidate, Mismatch, Operation, Plan, Request, Verified, VerifyLevel
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline


@pytest.fixture
def lake(iceberg: Warehouse) -> Iterator[OrderedTable]:
    with runs.configured(iceberg):
        yield filled(iceberg.table())


def filled(table: Table) -> OrderedTable:
    """Unsorted files of a table that had another order in between."""
    chance = random.Random(3)
    lake = OrderedTable.create(table, by("small", direction="desc", nulls="last"), by("id"))
    lake.append(*(rows(range(n, n + 400), chance) for n in range(0, 1200, 400)))
    with lake.theirs.update_sort_order() as update:
        update.asc("id", IdentityTransform(), NullOrder.NULLS_FIRST)
    with lake.theirs.update_sort_order() as update:
        update.desc("small", IdentityTransform(), NullOrder.NULLS_LAST)
        update.asc("id", IdentityTransform(), NullOrder.NULLS_FIRST)
    return lake


def staged(table: IcebergTable, *, into: int = 3) -> tuple[Plan, Candidate]:
    snapshot, run = table.snapshot(), a_run()
    clustering = own_clustering(snapshot)
    assert clustering is not None and clustering.order is not None
    target = sum(file.bytes for unit in snapshot.units for file in unit.files) // into
    asked = Request(Operation.OPTIMIZE, run.now_ms, clustering=clustering, target_bytes=target)
    found = plan(table, snapshot, asked)
    return found, table.commits.stage(snapshot, execute(table, found, run, mapper=inline), run)


def swap_two_rows(acted: Staged) -> None:
    acted.rewrite(lambda held: held.take([*range(50), 51, 50, *range(52, held.num_rows)]))


def swap_the_first_row_for_the_last(acted: Staged) -> None:
    def swapped(held: pa.Table) -> pa.Table:
        end = held.num_rows - 1
        return held.take([end, *range(1, end), 0])

    acted.rewrite(swapped)


def name_no_order(acted: Staged) -> None:
    acted.describe(sort_order_id=0)


def name_another_order(acted: Staged) -> None:
    acted.describe(sort_order_id=2)


def name_an_order_that_is_not_there(acted: Staged) -> None:
    acted.describe(sort_order_id=9)


def exchange_rows_of_two_files(acted: Staged) -> None:
    """The last row of a file for the first of the next one: each file is sorted as before."""
    files = {file.path: pq.read_table(f"/{file.name}") for file in acted.snapshot.units[0].files}
    lower, upper = sorted(files, key=lambda path: place(files[path].slice(0, 1)))[:2]
    one, other = files[lower], files[upper]
    anew = {
        lower: pa.concat_tables([one.slice(0, one.num_rows - 1), other.slice(0, 1)]),
        upper: pa.concat_tables([one.slice(one.num_rows - 1), other.slice(1)]),
    }

    def exchanged(item: Item) -> list[Item]:
        if not isinstance(item, NewFile) or item.path not in anew:
            return [item]
        path = Path("/", storage_name(item.path))
        pq.write_table(anew[item.path], path, store_schema=False)
        stated = dict.fromkeys(METRICS)
        return [replace(item, raw={**item.raw, **stated, "file_size_in_bytes": path.stat().st_size})]

    acted.edit(exchanged)


def place(row: pa.Table) -> tuple[bool, int, int]:
    (small,), (number,) = (row.column(name).to_pylist() for name in ("small", "id"))
    return (small is None, 0 if small is None else -small, number)


ACTS: dict[Act, str] = {
    swap_two_rows: r"row 51 sorts before the one above it by sort order 1: small desc nulls last, id asc nulls first",
    swap_the_first_row_for_the_last: "begins before .* ends by sort order 1|sorts before the one above it",
    name_no_order: "sort order 0, expected 1, as its snapshot states",
    name_another_order: "sorts before the one above it by sort order 2: id asc nulls first",
    name_an_order_that_is_not_there: r"sort order 9, expected one of the table's, \[1, 2\]",
    exchange_rows_of_two_files: "begins before .* ends by sort order 1",
}


def faults(checked: Any) -> str:
    assert isinstance(checked, Mismatch)
    return "\n".join([*checked.faults, *(fault for proof in checked.proofs for fault in proof.faults)])


@pytest.mark.parametrize("level", VerifyLevel)
def test_what_nobody_damaged_is_proven(lake: OrderedTable, level: VerifyLevel) -> None:
    table = runs.opened(lake.table)
    made = staged(table)
    assert isinstance(verify(table, made[0], (), made[1], level=level, mapper=inline), Verified)


@pytest.mark.parametrize("level", VerifyLevel)
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_the_gate_names(lake: OrderedTable, act: Act, level: VerifyLevel) -> None:
    table = runs.opened(lake.table)
    found, candidate = staged(table)
    act(Staged(table, candidate, candidate.units[0]))
    said = faults(verify(table, found, (), candidate, level=level, mapper=inline))
    assert re.search(ACTS[act], said)
    assert act is not exchange_rows_of_two_files or "sorts before the one above it" not in said
