"""nightkeep plan, run and sql: what a table needs, in words or done."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from nightkeep.commands import options
from nightkeep.commands.policy_place import Place, find_place, show
from nightkeep.errors import UsageError
from nightkeep.groups.run_group import care_for_table, check_table
from nightkeep.model import Clustering, Curve, Operation
from nightkeep.policy import EffectivePolicy, Overrides
from nightkeep.reports import CheckStatus, Expectations, RunDocument, plan_text, store_or_say, summary_text
from nightkeep.running.run_operation import Order, care
from nightkeep.spark.engine import Engine
from nightkeep.sql_text.statement import Statement, parse_statement


def plan(
    table: options.Table, operation: options.Operations = None, where: options.Where = None,
    zorder: options.Zorder = None, hilbert: options.Hilbert = None,
    full: options.Full = False,
    target_size: options.TargetSize = None, min_file_size: options.MinFileSize = None,
    max_deleted_ratio: options.MaxDeletedRatio = None,
    allow_compacting_writers: options.CompactingWriters = False, writers: options.WritersOption = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """What a run would do, and why. Reads metadata only."""
    place = find_place(policy, reports)
    said = Overrides(
        where=where, full=full, zorder=zorder, hilbert=hilbert, target_size=target_size, min_file_size=min_file_size,
        max_deleted_ratio=max_deleted_ratio, allow_compacting_writers=allow_compacting_writers, writers=writers,
    )  # fmt: skip
    chosen = place.effective(table, said)
    with Engine(master="local[*]", task_memory_bytes=chosen.settings.task_memory) as engine:
        documents = [
            care(chosen, Order(each, "plan", place.reports, dry_run=True), mapper=engine.mapper)
            for each in _operations(chosen, operation, said)
        ]
    show(documents, as_json=as_json, text="\n".join(plan_text(d) for d in documents))


def run(
    table: options.Table, operation: options.Operations = None, where: options.Where = None,
    zorder: options.Zorder = None, hilbert: options.Hilbert = None,
    full: options.Full = False,
    target_size: options.TargetSize = None, min_file_size: options.MinFileSize = None,
    max_deleted_ratio: options.MaxDeletedRatio = None,
    allow_compacting_writers: options.CompactingWriters = False, writers: options.WritersOption = None,
    verify: options.Verify = None, no_check: options.NoCheck = False,
    task_memory: options.TaskMemory = None, master: options.Master = "local[*]", run_id: options.RunId = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Plan, rewrite, prove, publish and check."""
    place = find_place(policy, reports)
    said = Overrides(
        where=where, full=full, zorder=zorder, hilbert=hilbert, target_size=target_size, min_file_size=min_file_size,
        max_deleted_ratio=max_deleted_ratio, allow_compacting_writers=allow_compacting_writers, writers=writers,
        verify=verify, task_memory=task_memory,
    )  # fmt: skip
    chosen = place.effective(table, said)
    how = _How(master, run_id, no_check=no_check, as_json=as_json, asked=said.asked())
    _run(place, chosen, _operations(chosen, operation, said), how)


def sql(
    statement: Annotated[
        str, typer.Argument(help="OPTIMIZE delta.`/path` WHERE day >= '2026-11-01' ZORDER BY (a, b)")
    ],
    target_size: options.TargetSize = None, min_file_size: options.MinFileSize = None,
    max_deleted_ratio: options.MaxDeletedRatio = None,
    allow_compacting_writers: options.CompactingWriters = False, writers: options.WritersOption = None,
    verify: options.Verify = None, no_check: options.NoCheck = False,
    task_memory: options.TaskMemory = None, master: options.Master = "local[*]", run_id: options.RunId = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Run an OPTIMIZE statement. What it can say comes from it alone, the rest from options and the policy."""
    asked = parse_statement(statement)
    place = find_place(policy, reports)
    said = Overrides(
        target_size=target_size, min_file_size=min_file_size, max_deleted_ratio=max_deleted_ratio,
        allow_compacting_writers=allow_compacting_writers, writers=writers, verify=verify, task_memory=task_memory,
    )  # fmt: skip
    chosen = _as_stated(place.effective(asked.table, said), asked)
    stated = {"where": asked.where, "zorder": ",".join(asked.columns), "full": asked.full}
    wanted = {**said.asked(), **{name: value for name, value in stated.items() if value}}
    how = _How(master, run_id, no_check=no_check, as_json=as_json, asked=wanted)
    _run(place, chosen, (Operation.OPTIMIZE,), how)


@dataclass(frozen=True, slots=True)
class _How:
    """What a command says of a run, and not of the table."""

    master: str
    run_id: str | None
    no_check: bool
    as_json: bool
    asked: Mapping[str, object]


def _operations(chosen: EffectivePolicy, asked: Sequence[Operation] | None, said: Overrides) -> tuple[Operation, ...]:
    operations = tuple(asked or chosen.operations)
    for operation in operations:
        if not operation.rewrites:
            rewriting = ", ".join(each for each in Operation if each.rewrites)
            raise UsageError(
                f"--operation: expected one of {rewriting}, found {operation}, which is a command of its own: "
                f"nightkeep {operation}"
            )
    said.require_use(operations)
    return operations


def _as_stated(policy: EffectivePolicy, asked: Statement) -> EffectivePolicy:
    """The policy's filter and clustering give way to the statement's also where that has none."""
    clustering = None
    if asked.columns:
        same = policy.settings.clustering or Clustering(asked.columns, Curve.Z)
        clustering = replace(same, columns=asked.columns, curve=Curve.Z)
    stated = {"where": asked.where, "full": asked.full, "clustering": clustering}
    return replace(policy, settings=policy.settings.model_copy(update=stated))


def _run(place: Place, chosen: EffectivePolicy, operations: Sequence[Operation], how: _How) -> None:
    name = how.run_id or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    checks = chosen.settings.check.enabled and not how.no_check
    with Engine(master=how.master, task_memory_bytes=chosen.settings.task_memory) as engine:
        orders = [Order(each, name, place.reports, asked=how.asked) for each in operations]
        documents = [run_one(chosen, order, engine, checks=checks) for order in orders]
    show(documents, as_json=how.as_json, text=summary_text(documents))


def run_one(chosen: EffectivePolicy, order: Order, engine: Engine, *, checks: bool) -> RunDocument:
    """Care for one table and store the document, then again with what the second opinion said."""
    document = care_for_table(chosen, order, engine)
    stored, _ = store_or_say(document, order.reports)
    if checks and document.committed_version is not None:
        stored, _ = store_or_say(check_table(document, chosen, order.reports, engine=engine), order.reports)
    elif document.awaits_check and document.expectations.status is CheckStatus.NOT_RUN:
        # Nobody is to wait for it: versions that are to be checked do not expire.
        why = "left out by --no-check" if chosen.settings.check.enabled else "the policy turns the check off"
        skipped = Expectations(CheckStatus.SKIPPED, reason=why)
        stored, _ = store_or_say(replace(document, expectations=skipped), order.reports)
    return stored
