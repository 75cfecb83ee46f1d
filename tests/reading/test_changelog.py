"""Changelogs of a sample for people: which are shown, which columns, and what is refused."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.formats.paimon.gate.test_changes import with_options
from tests.formats.paimon.upgrade import upgrade

import nightkeep
from nightkeep.api.reading import reading_of
from nightkeep.errors import CorruptMetadata, RefusedTable, UsageError
from nightkeep.model import Address
from nightkeep.reading.changelog import plan_changelog
from nightkeep.reading.request import ReadRequest

SHOP = Path(__file__).parents[2] / "samples/paimon/shop.db"
KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Version 8 has a changelog, by our upgrade."""
    folder = tmp_path_factory.mktemp("shop") / "orders"
    table = with_options(Path(shutil.copytree(SHOP / "orders", folder)), {"changelog-producer": "lookup"})
    assert upgrade(table).committed_version == 8
    return f"paimon:{table}"


def test_all_kinds_are_shown_before_the_columns(orders: str) -> None:
    rows = nightkeep.read(orders, incremental="changelog", since=7).read_all()
    assert rows.column_names == ["_change_type", *nightkeep.read(orders).schema.names]
    assert {*rows.column("_change_type").to_pylist()} == {*KINDS}
    assert rows.num_rows == nightkeep.read(orders, incremental="changelog", since=0).read_all().num_rows


def test_a_row_before_comes_directly_before_the_row_after(orders: str) -> None:
    changes = nightkeep.read(orders, incremental="changelog", since=7, columns="dt,order_id").read_all().to_pylist()
    after = [at for at, change in enumerate(changes) if change["_change_type"] == "UPDATE_AFTER"]
    assert after
    for at in after:
        assert changes[at - 1] == {**changes[at], "_change_type": "UPDATE_BEFORE"}


def test_conditions_and_columns_are_of_the_changed_rows(orders: str) -> None:
    every = nightkeep.read(orders, incremental="changelog", since=7).read_all().to_pylist()
    found = nightkeep.read(
        orders, incremental="changelog", since=7, where="amount > 500 AND status = 'paid'", columns="order_id,status"
    ).read_all()
    wanted = [row for row in every if row["status"] == "paid" and row["amount"] > 500]
    assert 0 < len(wanted) < len(every)
    assert found.to_pylist() == [{name: row[name] for name in found.column_names} for row in wanted]
    assert found.column_names == ["_change_type", "order_id", "status"]


def test_versions_without_changes_show_none(orders: str) -> None:
    for since, version in ((1, 7), (8, 8), (0, 1)):
        found = nightkeep.read(orders, incremental="changelog", since=since, version=version)
        assert found.schema.names[0] == "_change_type"
        assert found.read_all().num_rows == 0


def test_parts_of_a_plan_are_all_of_it(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightkeep.reading.plan.SPLIT_BYTES", 1)
    address = Address("paimon", orders.removeprefix("paimon:"), "orders")
    plan = plan_changelog("orders", "paimon", reading_of(address), ReadRequest(), 7)
    parts = plan.divided()
    assert len(parts) > 1
    rows = [pa.Table.from_batches(each.batches(), plan.schema) for each in parts]
    assert pa.concat_tables(rows) == pa.Table.from_batches(plan.batches(), plan.schema)


def test_what_a_table_does_not_have_is_refused(orders: str) -> None:
    def changelog(table: str, **options: object) -> object:
        return nightkeep.read(table, incremental="changelog", **options)  # type: ignore[arg-type]

    with pytest.raises(RefusedTable, match="option changelog-producer = none writes no changelog; use incremental"):
        changelog(f"paimon:{SHOP}/orders", since=3)
    for since, version in ((-1, 8), (8, 7)):
        with pytest.raises(UsageError, match=f"expected versions after one from 0 to .*found {since} to {version}"):
            changelog(orders, since=since, version=version)
    with pytest.raises(UsageError, match="view: expected none with incremental = changelog, found raw"):
        changelog(orders, since=7, view="raw")
    with pytest.raises(UsageError, match="expected it with incremental, found none"):
        changelog(orders)


def test_an_unknown_kind_is_corrupt(orders: str) -> None:
    address = Address("paimon", orders.removeprefix("paimon:"), "orders")
    plan = plan_changelog("orders", "paimon", reading_of(address), ReadRequest(), 7)
    with pytest.raises(CorruptMetadata, match="kinds of changes"):
        plan._named(pa.array([0, 4], pa.int8()))
    assert plan._named(pa.array([3, 0], pa.int8())).to_pylist() == ["DELETE", "INSERT"]
