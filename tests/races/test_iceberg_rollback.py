"""A branch that goes back, or a table created anew, while a run works: no row of before comes back, none is lost.

Iceberg's Java is the one that goes back and commits, by what the procedures of its Spark extensions call.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import COLUMNS, DAYS, care_for, configured, contents, opened, row, token

from nightkeep.formats.iceberg.catalog.sql_pointers import SqlPointers
from nightkeep.model import Outcome
from nightkeep.running.rewrites import run_operation as care_module

Meanwhile = Callable[[], object]


@pytest.fixture
def table(iceberg_java: IcebergJava, tmp_path: Any, request: pytest.FixtureRequest) -> Iterator[Table]:
    warehouse = Warehouse("rollbacks", tmp_path / "lake")
    with configured(warehouse):
        made = warehouse.table("shop.events")
        _create(iceberg_java, made)
        yield made


def _create(java: IcebergJava, table: Table, version: int = 2) -> None:
    java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=version))
    java.append(table, [row(DAYS[0], number) for number in range(40)])
    java.cdc(table, [("-D", row(DAYS[0], number)) for number in range(10)], keys=["id", "day"])
    java.cdc(table, [("-D", row(DAYS[0], number)) for number in range(10, 15)], keys=["id", "day"])


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Meanwhile], None]:
    """Do something once, right before a stage of the run, or before its catalog is asked to commit."""

    def plant(stage: str, act: Meanwhile) -> None:
        where, name = (SqlPointers, "swap") if stage == "swap" else (care_module, stage)
        work, pending = getattr(where, name), [act]

        def late(*arguments: Any, **named: Any) -> Any:
            while pending:
                pending.pop()()
            return work(*arguments, **named)

        monkeypatch.setattr(where, name, late)

    return plant


def assert_clean_loss(table: Table, document: Any, planned: int) -> None:
    assert (document.outcome, document.committed_version) == (Outcome.CONFLICTED, None), document.reason
    assert f"version {planned}, which was planned on, is gone" in str(document.units[0].reason)
    left = [name for name in contents(table) if f"nk-{token()}" in name]
    assert not left


@pytest.mark.few(1)
@pytest.mark.in_turn("stage")
@pytest.mark.parametrize("stage", ["execute", "verify", "publish", "swap"])
@pytest.mark.parametrize(("change", "commits"), [("rollback", 0), ("rollback", 1), ("set_current", 5)])
def test_a_branch_that_goes_back_meanwhile_is_a_conflict(
    iceberg_java: IcebergJava, table: Table, at: Callable[[str, Meanwhile], None], stage: str, change: str, commits: int
) -> None:
    planned, truth = opened(table).snapshot(), []

    def meanwhile() -> None:
        iceberg_java.refs(table, {"change": change, "snapshot": planned.parent_version})
        for number in range(commits):
            iceberg_java.append(table, [row(DAYS[0], 1000 + number)])
        truth.append(iceberg_java.read(table))

    at(stage, meanwhile)
    document = care_for(table)
    assert_clean_loss(table, document, planned.version)
    assert iceberg_java.read(table) == truth[0]
    assert care_for(table, run_id="next").outcome is Outcome.VERIFIED
    assert iceberg_java.read(table) == truth[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("stage", ["execute", "verify", "publish", "swap"])
def test_a_table_that_is_dropped_and_created_again_is_another_one(
    iceberg_java: IcebergJava, table: Table, at: Callable[[str, Meanwhile], None], stage: str
) -> None:
    planned, truth = opened(table).snapshot(), []

    def meanwhile() -> None:
        iceberg_java.drop(table)
        _create(iceberg_java, table)
        truth.append(iceberg_java.read(table))

    at(stage, meanwhile)
    document = care_for(table)
    assert_clean_loss(table, document, planned.version)
    assert iceberg_java.read(table) == truth[0]


def test_going_back_and_forth_leaves_what_was_planned_on(
    iceberg_java: IcebergJava, table: Table, at: Callable[[str, Meanwhile], None]
) -> None:
    """The branch has the very snapshot again: nothing has happened to its rows."""
    planned = opened(table).snapshot()

    def meanwhile() -> None:
        iceberg_java.refs(table, {"change": "rollback", "snapshot": planned.parent_version})
        iceberg_java.refs(table, {"change": "set_current", "snapshot": planned.version})

    truth = iceberg_java.read(table)
    at("publish", meanwhile)
    document = care_for(table)
    assert (document.outcome, document.parent_version) == (Outcome.VERIFIED, planned.version)
    assert iceberg_java.read(table) == truth


def test_a_harmless_append_leaves_the_identity(iceberg_java: IcebergJava, table: Table) -> None:
    """Though table metadata is at another place after it."""
    before = opened(table).snapshot()
    iceberg_java.append(table, [row(DAYS[1], 1)])
    again = opened(table).snapshot(before.version)
    assert again.identity == before.identity and again.metadata_location != before.metadata_location
    assert opened(table).digest(before.version) == before.identity.commit
    assert opened(table).snapshot().identity != before.identity
