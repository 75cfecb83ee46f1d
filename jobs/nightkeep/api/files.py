"""nightkeep.sweep, expire and restore: a table -> its files listed, quarantined, deleted or restored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.api.call_context import (
    CallContext,
    find_context,
    name_run,
    parse_duration_option,
    refuse_others,
    start_engine,
)
from nightkeep.api.newest_document import newest_quarantine
from nightkeep.api.night import WholeRun, sweep_all
from nightkeep.api.notices import notify_of_documents
from nightkeep.errors import UsageError
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Operation
from nightkeep.model.sweep_rules import FoundBy, SweepMode
from nightkeep.records import RunDocument
from nightkeep.records.kept_index import indexed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@overload
def sweep(
    table: str,
    *,
    all: Literal[False] = False,
    older_than: str | None = None,
    delete: bool = False,
    quarantine: bool = False,
    below_floor: bool = False,
    max_share: float | None = None,
    run: str | None = None,
    find: str | None = None,
    run_id: str | None = None,
    no_check: bool = False,
    expect_plan: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> RunDocument: ...


@overload
def sweep(
    table: None = None,
    *,
    all: Literal[True],
    run_id: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> WholeRun: ...


def sweep(
    table: str | None = None,
    *,
    all: bool = False,
    older_than: str | None = None,
    delete: bool = False,
    quarantine: bool = False,
    below_floor: bool = False,
    max_share: float | None = None,
    run: str | None = None,
    find: str | None = None,
    run_id: str | None = None,
    no_check: bool = False,
    expect_plan: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> RunDocument | WholeRun:
    """List the orphan files of a table. With `quarantine` or `delete`, also move them to quarantine or delete them.

    `find`: "listing" lists the table's folders, "log" takes what the log of a Delta table names as removed.
    With `all`, what the weekly DAG does: expire and sweep every table of the policy, each as its policy states.
    Raises UsageError for invalid arguments. Every other failure is the document's outcome.
    """
    if all:
        of_one = {
            "TABLE": table,
            "--older-than": older_than,
            "--delete": delete or None,
            "--quarantine": quarantine or None,
            "--below-floor": below_floor or None,
            "--max-share": max_share,
            "--run": run,
            "--find": find,
            "--no-check": no_check or None,
            "--expect-plan": expect_plan,
        }
        refuse_others("--all", "nothing but what the policy states of each table", of_one)
        return sweep_all(policy=policy, reports=reports, master=master, run_id=run_id, spark=spark)
    if table is None:
        raise UsageError("TABLE: expected the name or address of a table, or --all, found neither")
    removal = RemovalOptions(
        mode=_mode(delete=delete, quarantine=quarantine),
        older_than_ms=_duration("--older-than", older_than),
        max_share=_share(max_share),
        below_floor=below_floor,
        of_run=run,
        found_by=_found_by(find, run),
    )
    context = find_context(policy, reports)
    order = Order(
        Operation.SWEEP,
        name_run(run_id),
        context.reports,
        removal=removal,
        checks=not no_check,
        expected_plan=expect_plan,
    )
    return _carry_out(context, table, order, master=master, spark=spark)


def expire(
    table: str,
    *,
    older_than: str | None = None,
    retain_last: int | None = None,
    delete: bool = False,
    quarantine: bool = False,
    dry_run: bool = False,
    run_id: str | None = None,
    no_check: bool = False,
    expect_plan: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> RunDocument:
    """List the versions past the table's retention. With `delete` or `quarantine`, also expire them.

    `delete` deletes the files that only they need, `quarantine` moves them to quarantine. `dry_run` only lists, which
    is the default. Raises UsageError for invalid arguments. Every other failure is the document's outcome.
    """
    mode = _mode(delete=delete, quarantine=quarantine)
    if dry_run and mode is not SweepMode.DRY_RUN:
        raise UsageError(f"--dry-run and --{mode}: expected one of the two, found both")
    if retain_last is not None and retain_last < 1:
        raise UsageError(f"--retain-last: expected at least 1, found {retain_last}")
    context = find_context(policy, reports)
    order = Order(
        Operation.EXPIRE,
        name_run(run_id),
        context.reports,
        removal=RemovalOptions(mode=mode, older_than_ms=_duration("--older-than", older_than), retain_last=retain_last),
        checks=not no_check,
        expected_plan=expect_plan,
    )
    return _carry_out(context, table, order, master=master, spark=spark)


def restore(
    table: str,
    run_id: str | None = None,
    *,
    last: bool = False,
    dry_run: bool = False,
    expect_plan: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    spark: SparkSession | None = None,
) -> RunDocument:
    """Restore the files that the run `run_id` moved to quarantine, or the `last` run that did so. Overwrites nothing. A
    `dry_run` lists them alone.

    `expect_plan`: nothing is done unless the files are those of the dry run with this `plan_digest`."""
    if last is (run_id is not None):
        raise UsageError("RUN_ID and --last: expected one of the two, found " + ("both" if last else "none"))
    context = find_context(policy, reports)
    of_run = newest_quarantine(context, table).run_id if run_id is None else run_id
    order = Order(Operation.RESTORE, of_run, context.reports, dry_run=dry_run, expected_plan=expect_plan)
    return _carry_out(context, table, order, master="local[*]", spark=spark)


def _mode(*, delete: bool, quarantine: bool) -> SweepMode:
    """Files are only listed unless the caller asks for more."""
    if delete and quarantine:
        raise UsageError("--delete and --quarantine: expected one of the two, found both")
    return SweepMode.DELETE if delete else SweepMode.QUARANTINE if quarantine else SweepMode.DRY_RUN


def _share(share: float | None) -> float | None:
    if share is not None and not 0 <= share <= 1:
        raise UsageError(f"--max-share: expected a share from 0 to 1, found {share}")
    return share


def _found_by(text: str | None, of_run: str | None) -> FoundBy | None:
    if text is None:
        return None
    if text not in [*FoundBy]:
        raise UsageError(f"--find: expected {' or '.join(FoundBy)}, found {text!r}")
    if text == FoundBy.LOG and of_run is not None:
        raise UsageError("--find log and --run: expected one of the two: no log names files that a run left")
    return FoundBy(text)


def _carry_out(
    context: CallContext, table: str, order: Order, *, master: str, spark: SparkSession | None
) -> RunDocument:
    chosen = context.chosen(table)
    runs = [(chosen.address.name, order.run_id)]
    with start_engine(chosen, master, spark) as engine, indexed(order.reports, order.run_id, runs):
        document = run_one(chosen, order, engine).document
    notify_of_documents(chosen, [document], order.reports)
    return document


def _duration(option: str, text: str | None) -> int | None:
    return None if text is None else parse_duration_option(option, text)
