"""Differences of two versions: what two full reads differ by, for every format."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from samples.iceberg_places import CATALOG, place
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs

import nightkeep
from nightkeep.api.reading import reading_of
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.model import Address
from nightkeep.reading.changes import plan_diff
from nightkeep.reading.request import ReadRequest

SAMPLES = Path(__file__).parents[2] / "samples"
ORDERS, CLICKS = f"paimon:{SAMPLES}/paimon/shop.db/orders", f"delta:{SAMPLES}/delta/shop.db/clicks"


def counted(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


def expected(table: str, since: int, version: int, options: Mapping[str, Any]) -> tuple[Counter[str], Counter[str]]:
    after, before = (
        counted(nightkeep.read(table, version=number, **options).read_all()) for number in (version, since)
    )
    return after - before, before - after


def found(table: str, since: int, version: int, options: Mapping[str, Any]) -> tuple[Counter[str], Counter[str]]:
    rows = nightkeep.read(table, incremental="diff", since=since, version=version, **options).read_all()
    assert rows.column_names[0] == "_change_type"
    kinds = rows.column(0).to_pylist()
    sides = (rows.filter(pa.array([kind == each for kind in kinds], pa.bool_())) for each in ("INSERT", "DELETE"))
    added, removed = (counted(side.drop_columns(["_change_type"])) for side in sides)
    assert added.total() + removed.total() == rows.num_rows
    return added, removed


@pytest.mark.in_turn("view")
@pytest.mark.parametrize("view", ["merge-on-read", "raw"])
@pytest.mark.parametrize(("since", "version"), [(1, 7), (3, 4), (4, 7), (7, 2), (5, 5)])
def test_a_difference_of_paimon_versions(since: int, version: int, view: str) -> None:
    assert found(ORDERS, since, version, {"view": view}) == expected(ORDERS, since, version, {"view": view})


@pytest.mark.few(1)
@pytest.mark.parametrize(("since", "version"), [(3, 9), (10, 15), (15, 12)])
def test_a_difference_of_delta_versions(since: int, version: int) -> None:
    assert found(CLICKS, since, version, {}) == expected(CLICKS, since, version, {})


def test_a_difference_of_iceberg_snapshots(tmp_path: Path) -> None:
    place(SAMPLES / "iceberg", tmp_path / "lake")
    warehouse = Warehouse(CATALOG, tmp_path / "lake")
    with runs.configured(warehouse):
        table = f"iceberg:{CATALOG}/shop.orders"
        log = [each["snapshot-id"] for each in warehouse.table("shop.orders").document()["snapshots"]]
        for since, version in ((log[0], log[-1]), (log[-3], log[-2])):
            added, removed = found(table, since, version, {})
            assert (added, removed) == expected(table, since, version, {})
            assert added or removed


def test_conditions_and_columns_are_of_the_changed_rows() -> None:
    options = {"where": "status = 'paid'"}
    assert found(ORDERS, 3, 7, options) == expected(ORDERS, 3, 7, {**options, "view": "merge-on-read"})
    rows = nightkeep.read(ORDERS, incremental="diff", since=3, version=7, columns="amount,order_id").read_all()
    assert rows.column_names == ["_change_type", "amount", "order_id"]
    assert rows.num_rows == nightkeep.read(ORDERS, incremental="diff", since=3, version=7).read_all().num_rows


def test_files_that_both_versions_show_are_not_read() -> None:
    """The commit appends a file to each of four days."""
    reading = reading_of(Address("delta", f"{SAMPLES}/delta/shop.db/clicks", "clicks"))
    plan = plan_diff("clicks", "delta", reading, ReadRequest(version=3), 2)
    assert (plan.before.plan.files, plan.after.plan.files) == (0, 4)
    assert nightkeep.read_plan(CLICKS, version=3).files > 4


def test_what_is_not_built_is_refused_by_name() -> None:
    with pytest.raises(RefusedTable, match="incremental = changelog of delta tables is not handled"):
        nightkeep.read(CLICKS, incremental="changelog", since=3)
    with pytest.raises(UsageError, match="incremental: expected one of diff, changelog, found 'delta'"):
        nightkeep.read(ORDERS, incremental="delta", since=3)
    with pytest.raises(UsageError, match="since: expected it with incremental, found none"):
        nightkeep.read(ORDERS, incremental="diff")
    with pytest.raises(UsageError, match="incremental: expected it with since, found none"):
        nightkeep.read(ORDERS, since=3)
    with pytest.raises(UsageError, match="expected a version from 1 to 7, found 99"):
        nightkeep.read(ORDERS, incremental="diff", since=99)
