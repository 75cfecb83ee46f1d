"""nightkeep delete and update: the only commands that change rows, and only those that their options select."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nightkeep.api import runs as api
from nightkeep.commands import options
from nightkeep.commands.printing import show
from nightkeep.reports import plan_text, summary_text


def delete(
    table: options.Table,
    rows_where: Annotated[
        str | None, typer.Option("--rows-where", help="Condition in Spark SQL; rows for which it is NULL stay")
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys", help="Parquet, JSON Lines or CSV file of keys in columns of the table; null matches null"
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows; change nothing")] = False,
    writers: options.WritersOption = None, no_check: options.NoCheck = False,
    task_memory: options.TaskMemory = None, master: options.Master = "local[*]", run_id: options.RunId = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Hide the rows for which a condition is true, or that have one of the keys of a file, in deletion vectors, prove
    that no other row went, publish, check."""
    document = api.delete(
        table, rows_where=rows_where, keys=keys, dry_run=dry_run, writers=writers, no_check=no_check,
        task_memory=task_memory, master=master, run_id=run_id, policy=policy, reports=reports,
    )  # fmt: skip
    show([document], as_json=as_json, text=plan_text(document) if dry_run else summary_text([document]))


def update(
    table: options.Table,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help='"column = expression" in Spark SQL, of the row as it was; may be repeated'),
    ] = None,
    rows_where: Annotated[
        str | None, typer.Option("--rows-where", help="Condition in Spark SQL; rows for which it is NULL stay")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows; change nothing")] = False,
    writers: options.WritersOption = None, no_check: options.NoCheck = False,
    task_memory: options.TaskMemory = None, master: options.Master = "local[*]", run_id: options.RunId = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Set columns of the rows for which a condition is true: hide them in deletion vectors, write them anew, prove that
    no other row changed, publish, check."""
    document = api.update(
        table, set=set_, rows_where=rows_where, dry_run=dry_run, writers=writers, no_check=no_check,
        task_memory=task_memory, master=master, run_id=run_id, policy=policy, reports=reports,
    )  # fmt: skip
    show([document], as_json=as_json, text=plan_text(document) if dry_run else summary_text([document]))
