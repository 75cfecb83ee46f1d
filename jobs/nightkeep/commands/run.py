"""nightkeep plan, run and sql: arguments -> a plan, or the documents of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from nightkeep.api import runs as api
from nightkeep.commands import options
from nightkeep.commands.printing import show
from nightkeep.reports import summary_text


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
    runs = api.plan(
        table, operation=operation, where=where, zorder=zorder, hilbert=hilbert, full=full, target_size=target_size,
        min_file_size=min_file_size, max_deleted_ratio=max_deleted_ratio,
        allow_compacting_writers=allow_compacting_writers, writers=writers, policy=policy, reports=reports,
    )  # fmt: skip
    show(runs.documents, as_json=as_json, text=str(runs))


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
    runs = api.run(
        table, operation=operation, where=where, zorder=zorder, hilbert=hilbert, full=full, target_size=target_size,
        min_file_size=min_file_size, max_deleted_ratio=max_deleted_ratio,
        allow_compacting_writers=allow_compacting_writers, writers=writers, verify=verify, no_check=no_check,
        task_memory=task_memory, master=master, run_id=run_id, policy=policy, reports=reports,
    )  # fmt: skip
    show(runs.documents, as_json=as_json, text=str(runs))


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
    document = api.sql(
        statement, target_size=target_size, min_file_size=min_file_size, max_deleted_ratio=max_deleted_ratio,
        allow_compacting_writers=allow_compacting_writers, writers=writers, verify=verify, no_check=no_check,
        task_memory=task_memory, master=master, run_id=run_id, policy=policy, reports=reports,
    )  # fmt: skip
    show([document], as_json=as_json, text=summary_text([document]))
