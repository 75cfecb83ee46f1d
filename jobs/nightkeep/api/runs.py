"""nightkeep.plan, run, sql, delete and update: a table and options -> the documents of its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from nightkeep.admission.order import Order
from nightkeep.admission.suited_operations import suited_operations
from nightkeep.api.asked_rows import rows_to_delete, rows_to_update
from nightkeep.api.call_context import CallContext, find_context, name_run, start_engine
from nightkeep.api.notices import notify_of_documents
from nightkeep.api.options import FileOptions, LayoutOptions, overrides_of, takes
from nightkeep.api.results import Runs
from nightkeep.errors import UsageError
from nightkeep.groups.one_operation import run_one
from nightkeep.model import RUN_OPERATIONS, Clustering, Curve, Operation
from nightkeep.policy import EffectivePolicy, Overrides
from nightkeep.records import RunDocument
from nightkeep.records.kept_index import indexed
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.running.rewrites.table_reading import OneVersion
from nightkeep.sql_text.statement import Statement, parse_statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFFERED: Final = ", ".join(RUN_OPERATIONS)
"""The operations of `nightkeep run`, as messages and help list them."""


@takes(LayoutOptions)
def plan(
    table: str,
    *,
    operation: str | Sequence[str] | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    spark: SparkSession | None = None,
    **options: Unpack[LayoutOptions],
) -> Runs:
    """Plan a run: one document per operation states what it would do, and why. Reads only metadata and stores nothing.

    Raises UsageError for invalid arguments.
    """
    context = find_context(policy, reports)
    overrides = overrides_of(LayoutOptions, options)
    chosen = context.effective(table, overrides)
    reader = OneVersion()
    with start_engine(chosen, "local[*]", spark) as engine:
        documents = tuple(
            run_operation(
                chosen,
                Order(each, "plan", context.reports, dry_run=True, named=bool(operation)),
                mapper=engine.mapper,
                reader=reader,
            )
            for each in _operations(chosen, operation, overrides)
        )
    return Runs(documents, is_plan=True)


@takes(LayoutOptions)
def run(
    table: str,
    *,
    operation: str | Sequence[str] | None = None,
    verify: str | None = None,
    no_check: bool = False,
    expect_plan: str | None = None,
    task_memory: str | None = None,
    master: str = "local[*]",
    run_id: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    spark: SparkSession | None = None,
    **options: Unpack[LayoutOptions],
) -> Runs:
    """Plan, rewrite, prove, publish and check: one document per operation, which is also stored.

    `expect_plan`: the digest of the only plan that may be carried out, as a document of `plan` has it. Raises
    UsageError for invalid arguments. Every other failure is a document's outcome.
    """
    context = find_context(policy, reports)
    overrides = overrides_of(LayoutOptions, options, verify=verify, task_memory=task_memory)
    chosen = context.effective(table, overrides)
    how = _How(
        master, run_id, spark, no_check=no_check, named=bool(operation), asked=overrides.asked(), plan=expect_plan
    )
    return Runs(_run(context, chosen, _operations(chosen, operation, overrides), how))


@takes(FileOptions)
def sql(
    statement: str,
    *,
    verify: str | None = None,
    no_check: bool = False,
    task_memory: str | None = None,
    master: str = "local[*]",
    run_id: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    spark: SparkSession | None = None,
    **options: Unpack[FileOptions],
) -> RunDocument:
    """Run an OPTIMIZE statement. The filter and the clustering come only from the statement, all else from options and
    the policy."""
    parsed = parse_statement(statement)
    context = find_context(policy, reports)
    overrides = overrides_of(FileOptions, options, verify=verify, task_memory=task_memory)
    chosen = _as_stated(context.effective(parsed.table, overrides), parsed)
    stated = {"where": parsed.where, "zorder": ",".join(parsed.columns), "full": parsed.full}
    arguments = {**overrides.asked(), **{name: value for name, value in stated.items() if value}}
    how = _How(master, run_id, spark, no_check=no_check, named=True, asked=arguments)
    (document,) = _run(context, chosen, (Operation.OPTIMIZE,), how)
    return document


def delete(
    table: str,
    *,
    rows_where: str | None = None,
    keys: str | Path | None = None,
    dry_run: bool = False,
    writers: str | None = None,
    no_check: bool = False,
    expect_plan: str | None = None,
    task_memory: str | None = None,
    master: str = "local[*]",
    run_id: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    spark: SparkSession | None = None,
) -> RunDocument:
    """Delete the rows for which a condition is true, or that have one of the keys of a file, by deletion vectors.

    Proves that no other row is deleted, publishes and checks."""
    call, context = rows_to_delete(rows_where, keys), find_context(policy, reports)
    chosen = context.effective(table, overrides_of(FileOptions, {"writers": writers}, task_memory=task_memory))
    order = call.order(
        Operation.DELETE,
        name_run(run_id),
        context.reports,
        dry_run=dry_run,
        checks=not no_check,
        expected_plan=expect_plan,
    )
    return _changed(chosen, order, master, spark)


def update(
    table: str,
    *,
    set: str | Sequence[str] | None = None,
    rows_where: str | None = None,
    dry_run: bool = False,
    writers: str | None = None,
    no_check: bool = False,
    expect_plan: str | None = None,
    task_memory: str | None = None,
    master: str = "local[*]",
    run_id: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    spark: SparkSession | None = None,
) -> RunDocument:
    """Set columns to expressions, "column = expression", in the rows for which a condition is true.

    Proves that no other row is changed, and these as asked, publishes in one commit and checks."""
    call = rows_to_update((set,) if isinstance(set, str) else tuple(set or ()), rows_where)
    context = find_context(policy, reports)
    chosen = context.effective(table, overrides_of(FileOptions, {"writers": writers}, task_memory=task_memory))
    order = call.order(
        Operation.UPDATE,
        name_run(run_id),
        context.reports,
        dry_run=dry_run,
        checks=not no_check,
        expected_plan=expect_plan,
    )
    return _changed(chosen, order, master, spark)


def _changed(chosen: EffectivePolicy, order: Order, master: str, spark: SparkSession | None) -> RunDocument:
    with start_engine(chosen, master, spark, checks=order.checked(chosen) and not order.dry_run) as engine:
        if order.dry_run:
            return run_operation(chosen, order, mapper=engine.mapper, exchange=engine.exchange)
        with indexed(order.reports, order.run_id, [(chosen.address.name, order.run_id)]):
            document = run_one(chosen, order, engine).document
    notify_of_documents(chosen, [document], order.reports)
    return document


@dataclass(frozen=True, slots=True)
class _How:
    """The options of a call that concern the run and not the table."""

    master: str
    run_id: str | None
    spark: SparkSession | None
    no_check: bool
    named: bool
    asked: Mapping[str, object]
    plan: str | None = None


def _operations(
    chosen: EffectivePolicy, choice: str | Sequence[str] | None, overrides: Overrides
) -> tuple[Operation, ...]:
    names = (choice,) if isinstance(choice, str) else tuple(choice or ())
    operations = tuple(map(_operation, names))
    operations = operations or suited_operations(chosen)
    for operation in operations:
        if operation.has_command:
            raise UsageError(
                f"--operation: expected one of {OFFERED}, found {operation}, which is a command of its own: "
                f"nightkeep {operation}"
            )
    overrides.require_use(operations)
    return operations


def _operation(name: str) -> Operation:
    if name not in tuple(Operation):
        raise UsageError(f"--operation: expected one of {OFFERED}, found {name!r}")
    return Operation(name)


def _as_stated(policy: EffectivePolicy, statement: Statement) -> EffectivePolicy:
    """The policy with the statement's filter and clustering, even if the statement has none."""
    clustering = None
    if statement.columns:
        same = policy.settings.clustering or Clustering(statement.columns, Curve.Z)
        clustering = replace(same, columns=statement.columns, curve=Curve.Z)
    stated = {"where": statement.where, "full": statement.full, "clustering": clustering}
    return policy.overridden(stated)


def _run(
    context: CallContext, chosen: EffectivePolicy, operations: Sequence[Operation], how: _How
) -> tuple[RunDocument, ...]:
    name = name_run(how.run_id)
    orders = [
        Order(
            each,
            name,
            context.reports,
            named=how.named,
            asked=how.asked,
            checks=not how.no_check,
            expected_plan=how.plan,
        )
        for each in operations
    ]
    checks = any(order.checked(chosen) for order in orders)
    documents: list[RunDocument] = []
    with (
        start_engine(chosen, how.master, how.spark, checks=checks) as engine,
        indexed(context.reports, name, [(chosen.address.name, name)]),
    ):
        for order in orders:
            documents.append(run_one(chosen, order, engine).document)
    notify_of_documents(chosen, documents, context.reports)
    return tuple(documents)
