"""Branches by their own address: planned, worked on, checked, read; main and other branches stay as they are."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.runs import COLUMNS, DAYS, configured, row
from tests.formats.iceberg.sweeping import aged, listed, now_ms, swept

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.checking.check import check
from nightkeep.checking.diff import diff
from nightkeep.errors import AddressError, RefusedTable
from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Outcome, Request, Run
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.tasks import inline

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("version")]

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with configured(iceberg):
        yield iceberg


def branched(java: IcebergJava, warehouse: Warehouse, version: int) -> Table:
    """Main, the branch dev, which has more rows, and a tag of what both began with."""
    table = warehouse.table()
    java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=version))
    for start in (0, 100, 200):
        java.append(table, [row(day, number) for day in DAYS[:2] for number in range(start, start + 20)])
    first = table.document()["current-snapshot-id"]
    java.refs(
        table,
        {"change": "create_branch", "name": "dev", "snapshot": first},
        {"change": "create_branch", "name": "idle", "snapshot": first},
        {"change": "create_tag", "name": "began", "snapshot": first},
    )
    java.append(table, [row(DAYS[0], number) for number in range(300, 310)])
    return table


def address(table: Table, branch: str = "dev") -> Address:
    location = f"{table.warehouse.name}/{table.name}$branch_{branch}"
    return Address("iceberg", location, f"iceberg:{location}")


def night(table: Table, branch: str = "dev", run_id: str = "night", **settings: Any) -> RunDocument:
    policy = EffectivePolicy(address(table, branch), Settings().model_copy(update=settings), {})
    order = Order(Operation.OPTIMIZE, run_id, str(table.warehouse.folder / "reports"))
    return run_operation(policy, order, mapper=lambda: inline)


def shown(java: IcebergJava, table: Table, ref: str | None = None) -> Counter[Any]:
    return Counter(map(tuple, java.read(table, ref=ref).rows))


def refs(table: Table) -> dict[str, int]:
    return {name: ref["snapshot-id"] for name, ref in table.document()["refs"].items()}


@VERSIONS
def test_a_branch_is_packed_and_nothing_else_moves(
    iceberg_java: IcebergJava, warehouse: Warehouse, spark: SparkSession, version: int
) -> None:
    table = branched(iceberg_java, warehouse, version)
    before, dev, main = refs(table), shown(iceberg_java, table, "dev"), shown(iceberg_java, table)
    log = table.document()["snapshot-log"]
    done = night(table)
    assert done.outcome is Outcome.VERIFIED, done.reason
    after = refs(table)
    assert {name for name in after if after[name] != before[name]} == {"dev"}
    assert (shown(iceberg_java, table, "dev"), shown(iceberg_java, table)) == (dev, main)
    assert table.document()["current-snapshot-id"] == before["main"]
    assert table.document()["snapshot-log"] == log
    live = [each for each in iceberg_java.entries(table, ref="dev") if each["status"] != 2]
    assert len(live) == 2
    assert check(CheckRequest(address(table)), spark=spark).status is CheckStatus.PASSED
    assert night(table, run_id="next").outcome is Outcome.UNCHANGED
    # Main goes on, and its own night leaves the branch as it is.
    assert runs.care_for(table, run_id="main", operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    assert refs(table)["dev"] == after["dev"]
    assert (shown(iceberg_java, table, "dev"), shown(iceberg_java, table)) == (dev, main)


def test_a_branch_is_read_planned_and_compared(iceberg_java: IcebergJava, warehouse: Warehouse) -> None:
    table = branched(iceberg_java, warehouse, 2)
    name = f"iceberg:{table.warehouse.name}/{table.name}"
    whole = nightkeep.read(name).read_all()
    dev = nightkeep.read(f"{name}$branch_dev").read_all()
    assert (whole.num_rows, dev.num_rows) == (130, 120)
    assert Counter(map(repr, dev.to_pylist())) == Counter(
        map(repr, nightkeep.read(name, version=refs(table)["dev"]).read_all().to_pylist())
    )
    planned = nightkeep.plan(f"{name}$branch_dev")
    assert "6 files" in str(planned) or "3 files" in str(planned)


@VERSIONS
def test_a_run_of_one_branch_takes_no_commit_of_another(
    iceberg_java: IcebergJava, warehouse: Warehouse, version: int
) -> None:
    """The branch begins with main's commit of a run with the same id, which is not the branch's run."""
    table = branched(iceberg_java, warehouse, version)
    on_main = runs.care_for(table, run_id="night", operation=Operation.OPTIMIZE)
    assert on_main.outcome is Outcome.VERIFIED
    number = refs(table)["main"]
    iceberg_java.refs(table, {"change": "create_branch", "name": "late", "snapshot": number})
    again = night(table, "late")
    assert (again.outcome, again.commits) == (Outcome.UNCHANGED, ())
    done = night(table, "dev")
    assert done.outcome is Outcome.VERIFIED and done.committed_version == refs(table)["dev"]
    # A retry of each finds its own.
    assert night(table, "dev").committed_version == done.committed_version
    retried = runs.care_for(table, run_id="night", operation=Operation.OPTIMIZE)
    assert retried.committed_version == on_main.committed_version


@pytest.mark.parametrize("version", [2, 3])
def test_versions_of_a_branch_before_and_after_a_move_are_equal(
    iceberg_java: IcebergJava, warehouse: Warehouse, spark: SparkSession, version: int
) -> None:
    """Files of the branch move to another partition spec; main's stay where they are."""
    table = branched(iceberg_java, warehouse, version)
    iceberg_java.alter(table, {"change": "add_partition_field", "column": "id", "transform": "bucket[3]", "name": "by"})
    before, rows = refs(table), shown(iceberg_java, table, "dev")
    done = night(table, respec=True)
    assert done.outcome is Outcome.VERIFIED and done.committed_version == refs(table)["dev"], done.reason
    assert {each["spec_id"] for each in live(iceberg_java, table, "dev")} == {1}
    assert {each["spec_id"] for each in live(iceberg_java, table, "main")} == {0}
    assert shown(iceberg_java, table, "dev") == rows
    ends = (before["dev"], refs(table)["dev"])
    for first, second in (ends, ends[::-1]):
        found = diff(address(table), first, second, spark=spark)
        assert found.equal, found
    other = diff(address(table), before["main"], ends[1], spark=spark)
    assert not other.equal
    assert check(CheckRequest(address(table)), spark=spark).status is CheckStatus.PASSED


def live(java: IcebergJava, table: Table, branch: str) -> list[dict[str, Any]]:
    return [each for each in java.entries(table, ref=branch) if each["status"] != 2 and each["content"] == 0]


def test_spark_writes_to_the_branch_between_our_nights(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, warehouse: Warehouse
) -> None:
    table = branched(iceberg_java, warehouse, 2)
    iceberg_spark.attach(warehouse)
    for number in range(3):
        iceberg_spark.sql(f"INSERT INTO {table.sql}.branch_dev VALUES ({900 + number}, '{DAYS[0]}', 1.0, 'dev')")
        iceberg_spark.sql(f"DELETE FROM {table.sql}.branch_dev WHERE id = {number}")
        before = Counter(iceberg_spark.read(table, ref="dev").rows), Counter(iceberg_spark.read(table).rows)
        done = night(table, run_id=f"night {number}")
        assert done.outcome is Outcome.VERIFIED, done.reason
        assert before == (Counter(iceberg_spark.read(table, ref="dev").rows), Counter(iceberg_spark.read(table).rows))


def test_a_branch_that_moved_or_went_is_a_lost_race(iceberg_java: IcebergJava, warehouse: Warehouse) -> None:
    table = branched(iceberg_java, warehouse, 2)
    ours, run = open_table(address(table)), a_run()
    found = plan(ours, ours.snapshot(), Request(Operation.OPTIMIZE, run.now_ms))
    rewrites = list(execute(ours, found, run, mapper=inline))
    candidate = ours.commits.stage(ours.snapshot(), rewrites, run)
    iceberg_java.refs(table, {"change": "fast_forward", "name": "dev", "to": "main"})
    assert not ours.commits.commit(candidate)
    again = ours.commits.stage(ours.snapshot(), rewrites, run)
    iceberg_java.refs(table, {"change": "remove_branch", "name": "dev"})
    with pytest.raises(AddressError, match="expected a branch of the table among idle, main, found 'dev'"):
        ours.commits.commit(again)
    assert "dev" not in refs(table)


def test_expiry_and_sweep_keep_every_branch_and_tag(iceberg_java: IcebergJava, warehouse: Warehouse) -> None:
    table = branched(iceberg_java, warehouse, 2)
    night(table)
    runs.care_for(table, run_id="main", operation=Operation.OPTIMIZE)
    before = {ref: shown(iceberg_java, table, ref) for ref in ("dev", "idle", "began", "main")}
    properties = {"history.expire.max-snapshot-age-ms": "1"}
    iceberg_java.alter(table, {"change": "set_properties", "properties": properties})
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms() + 10**9, older_than_ms=0), Retention(now_ms(), 0))
    retention = runs.opened(table).retention
    run = Run("expiry", "0" * 16, "a", now_ms())
    expire_versions(retention, order, run, sets=MemorySets, before=lambda _: None)
    aged(runs.folder(table))
    swept(table, SweepMode.DELETE)
    assert {ref: shown(iceberg_java, table, ref) for ref in before} == before
    assert len(table.document()["snapshots"]) == 3


def test_a_branch_is_not_swept_or_expired_on_its_own(iceberg_java: IcebergJava, warehouse: Warehouse) -> None:
    table = branched(iceberg_java, warehouse, 2)
    before = listed(table)
    retention = open_table(address(table)).retention
    with pytest.raises(RefusedTable, match="branch dev is not swept, expired or restored on its own; name the table"):
        swept(table, SweepMode.DELETE, of=retention)
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms(), older_than_ms=0), Retention(now_ms(), 0))
    with pytest.raises(RefusedTable, match="branch dev is not swept, expired or restored on its own"):
        expire_versions(retention, order, Run("e", "0" * 16, "a", 1), sets=MemorySets, before=lambda _: None)
    assert listed(table) == before


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        ("gone", "expected a branch of the table among dev, idle, main, found 'gone'"),
        ("began", "expected a branch of the table among dev, idle, main, found 'began'"),
        ("", "expected the name of a branch after \\$branch_, found ''"),
    ],
)
def test_what_is_no_branch_is_named(iceberg_java: IcebergJava, warehouse: Warehouse, branch: str, message: str) -> None:
    table = branched(iceberg_java, warehouse, 2)
    with pytest.raises(AddressError, match=message):
        open_table(address(table, branch))


def test_the_way_back_names_the_branch(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, warehouse: Warehouse
) -> None:
    table = branched(iceberg_java, warehouse, 2)
    before = refs(table)
    night(table)
    iceberg_spark.attach(warehouse)
    iceberg_spark.sql(open_table(address(table)).commits.rollback(before["dev"]))
    assert refs(table) == before
