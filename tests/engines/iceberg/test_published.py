"""The same damage with the gate switched off: the check of the published snapshot catches it on its own.

Only the gate sees numbers that mislead the future alone: a sequence number that is too high while no delete came
since, the least one of a manifest, a file's size, deletes by keys that are kept though done with.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import sabotage as sabotage
from tests.formats.iceberg.catalog_world import address_of
from tests.formats.iceberg.runs import Kept, configured, opened
from tests.formats.iceberg.sabotage import Act, Staged, converted, filled, rewritten
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.checking.diff import diff
from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.model import (
    Candidate,
    Fingerprint,
    Operation,
    Outcome,
    Plan,
    TaskCost,
    UnitKey,
    UnitProof,
    Verified,
    VerifyLevel,
)
from nightkeep.model.check_values import CheckRequest, Evidence
from nightkeep.policy import load
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.records.check_report import CheckReport
from nightkeep.running.rewrites import run_operation
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline

pytestmark = pytest.mark.in_turn("kept")

DAYS = tuple(f"2026-11-{day:02d}" for day in range(1, 17))
_NUMBERS = count()
Make = Callable[..., tuple[Plan, Candidate]]

ROWS: tuple[Act, ...] = (
    sabotage.drop_a_row,
    sabotage.repeat_a_row,
    sabotage.repeat_one_row_and_drop_another,
    sabotage.change_a_value,
    sabotage.swap_values_of_two_rows,
    sabotage.swap_null_and_empty,
    sabotage.give_a_column_another_id,
    sabotage.write_rows_of_another_partition,
    sabotage.drop_a_new_file,
    sabotage.keep_an_old_file,
    sabotage.claim_an_older_number,
)
PROMISES: tuple[Act, ...] = (
    sabotage.miscount_rows,
    sabotage.raise_a_minimum,
    sabotage.lower_a_maximum,
    sabotage.miscount_nulls,
)
TRACKED: tuple[Act, ...] = (sabotage.lose_row_ids, sabotage.swap_row_ids, sabotage.lose_numbers_of_the_last_change)
DELETES: tuple[Act, ...] = (
    sabotage.hide_other_rows,
    sabotage.show_a_deleted_row,
    sabotage.hide_one_more_row,
    sabotage.lose_positions,
    sabotage.put_deletes_before_their_rows,
    sabotage.miscount_deleted_rows,
)


@pytest.fixture(scope="module", params=[2, 3])
def kept(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    warehouse = Warehouse(f"published{next(_NUMBERS)}", tmp_path_factory.mktemp("published"))
    with configured(warehouse):
        table = warehouse.table("shop.events")
        filled(iceberg_java, table, DAYS, version=request.param)
        yield Kept.of(table)


@pytest.fixture
def table(kept: Kept) -> Table:
    return kept.put_back()


def unit(number: int) -> UnitKey:
    return UnitKey(f"day={DAYS[number]}")


def published(table: Table, made: tuple[Plan, Candidate], *acts: Act) -> None:
    """The n-th act on the n-th day."""
    for number, act in enumerate(acts):
        act(Staged(opened(table), made[1], unit(number)))
    assert opened(table).commits.commit(made[1])


def checked(table: Table, spark: SparkSession, **request: Any) -> CheckReport:
    return check(CheckRequest(address_of(table), evidence=Evidence.ROWS, **request), spark=spark)


def failed(report: CheckReport) -> Mapping[str | None, set[str]]:
    """What fails, by unit."""
    wrong = [result for result in report.results if result.status is CheckStatus.FAILED]
    return {each.unit: {r.name for r in wrong if r.unit == each.unit} for each in wrong}


def version_of(table: Table) -> int:
    found: int = table.document()["format-version"]
    return found


def all_but_one(table: Table) -> tuple[Plan, Candidate]:
    return rewritten(opened(table), [unit(number) for number in range(len(DAYS) - 1)])


def test_what_nobody_damaged_passes(table: Table, spark: SparkSession) -> None:
    """Rows written anew, deletes of the last day converted, and the planned snapshot with what came of it."""
    planned = opened(table).snapshot().version
    published(table, all_but_one(table))
    report = checked(table, spark)
    assert report.status is CheckStatus.PASSED, str(report)
    assert report.coverage.startswith(f"{len(DAYS) - 1} of {len(DAYS) - 1} touched units compared")
    published(table, converted(opened(table)))
    report = checked(table, spark, base_version=planned)
    assert report.status is CheckStatus.PASSED, str(report)
    assert report.coverage.startswith("1 of 1 touched units compared")
    found = diff(address_of(table), planned, opened(table).snapshot().version, spark=spark)
    assert found.equal and len(found.units) == len(DAYS)


def test_every_unit_whose_rows_or_statistics_were_damaged_is_named(table: Table, spark: SparkSession) -> None:
    acts = (*ROWS, *PROMISES) if version_of(table) == 2 else (*ROWS, *TRACKED)
    published(table, all_but_one(table), *acts)
    report = checked(table, spark)
    assert report.status is CheckStatus.FAILED
    named = failed(report)
    lost = {act.__name__ for number, act in enumerate(acts) if str(unit(number)) not in named}
    assert not lost
    assert set(named) - {"table"} == {str(unit(number)) for number in range(len(acts))}
    strangers = acts.index(sabotage.write_rows_of_another_partition)
    assert "every row is live and stored under its own key" in named[str(unit(strangers))]
    misstated = [str(unit(acts.index(act))) for act in PROMISES if act in acts]
    assert all("statistics cover every value" in named[key] for key in misstated)


def test_every_unit_whose_deletes_were_damaged_is_named(table: Table, spark: SparkSession) -> None:
    acts = DELETES if version_of(table) == 2 else (*DELETES, sabotage.aim_at_another_file)
    published(table, converted(opened(table)), *acts)
    assert set(failed(checked(table, spark))) == {str(unit(number)) for number in range(len(acts))}


@pytest.mark.extended
def test_deletes_of_everything_that_go_with_one_day_bring_rows_back_elsewhere(
    table: Table, spark: SparkSession
) -> None:
    made = converted(opened(table), f"day = '{DAYS[0]}'")
    published(table, made, sabotage.remove_deletes_of_everything)
    report = checked(table, spark)
    assert set(failed(report)) == {str(unit(number)) for number in range(1, len(DAYS))}
    back = {row["id"] for found in report.differences for row in found.difference.extra_rows}
    assert back == {7}


@pytest.mark.extended
@pytest.mark.parametrize(
    "act", some_extended([sabotage.miscount_the_total, sabotage.drop_a_manifest], keep=1), ids=lambda act: act.__name__
)
def test_a_snapshot_that_counts_wrong_is_named(act: Act, table: Table, spark: SparkSession) -> None:
    published(table, all_but_one(table), act)
    assert "table" in failed(checked(table, spark))


BROKEN: Mapping[Act, str] = {
    sabotage.give_deletes_another_partition: "partition",
    sabotage.add_a_second_vector: "one deletion vector",
}


@pytest.mark.parametrize("act", BROKEN, ids=lambda act: act.__name__)
def test_a_table_that_no_reader_reads_is_reported_as_broken(act: Act, table: Table, spark: SparkSession) -> None:
    if act is sabotage.add_a_second_vector and version_of(table) == 2:
        pytest.skip("there are no vectors")
    published(table, converted(opened(table)), act)
    # The version is published: that it could not be judged is what the report says.
    report = checked(table, spark)
    assert report.status is CheckStatus.ERRORED and BROKEN[act] in str(report.reason)


def test_a_snapshot_that_may_change_rows_or_is_another_writers_is_not_judged(
    table: Table, spark: SparkSession, iceberg_java: IcebergJava
) -> None:
    published(table, all_but_one(table), sabotage.state_that_rows_changed)
    assert checked(table, spark).reason.endswith("may change rows: its operation is overwrite")  # type: ignore[union-attr]
    parent = opened(table).snapshot().parent_version
    iceberg_java.append(table, [[99, DAYS[0], 1.0, "late"]])
    report = checked(table, spark, commit_user="nightkeep-us")
    assert report.conflicted and "expected the commit of nightkeep-us" in (report.reason or "")
    published(table, converted(opened(table)))
    iceberg_java.expire(table, snapshots=[opened(table).snapshot().parent_version or 0, parent or 0])
    report = checked(table, spark)
    assert (report.status, report.reason and "does not exist any more" in report.reason) == (CheckStatus.SKIPPED, True)


def asleep(opened: Any, plan: Plan, rewrites: Any, candidate: Candidate, **options: Any) -> Verified:
    sabotage.hide_one_more_row(Staged(opened, candidate, candidate.units[0]))
    cost = TaskCost(0.0, 0.0, 0, "")
    proofs = tuple(UnitProof(key, Fingerprint(), Fingerprint(), (), cost) for key in candidate.units)
    return Verified(plan, candidate, rewrites, proofs, VerifyLevel.FULL)


@pytest.mark.extended
def test_a_night_checks_what_it_publishes_and_holds_what_is_wrong(
    table: Table, spark: SparkSession, iceberg_spark: IcebergSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged night holds the table, and its statement goes back in Spark; the next one passes."""
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    policy = load("tables.yaml", text="version: 1")
    name, reports = str(address_of(table)), str(table.warehouse.folder / f"reports{next(_NUMBERS)}")
    rows = iceberg_spark.read(table)

    def cared(prefix: str) -> RunDocument:
        group = TableGroup(policy, (name,), prefix, reports)
        with Engine(master="local[1]", task_memory_bytes=1 << 30) as engine:
            (found,) = run_group(group, (Operation.PERSIST_DELETES,), engine)
        return found.document

    with monkeypatch.context() as patch:
        patch.setattr(run_operation, "verify", asleep)
        document = cared("damaged")
    assert document.outcome is Outcome.MISMATCH, document.reason
    assert document.expectations.status is CheckStatus.FAILED
    assert len(iceberg_spark.read(table).rows) == len(rows.rows) - 1
    assert cared("held").outcome is not Outcome.VERIFIED
    assert document.go_back
    iceberg_spark.sql(document.go_back)
    assert iceberg_spark.read(table) == rows
