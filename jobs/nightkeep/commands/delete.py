"""nightkeep delete: the one command that changes rows, and only those that it is told."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from nightkeep.commands import options
from nightkeep.commands.policy_place import find_place, show
from nightkeep.commands.run import run_one
from nightkeep.errors import UsageError
from nightkeep.model import Operation
from nightkeep.policy import Overrides
from nightkeep.reports import plan_text, summary_text
from nightkeep.running.run_operation import Order, care
from nightkeep.spark.engine import Engine


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
    if (rows_where is None) == (keys is None):
        found = "neither" if keys is None else "both"
        raise UsageError(f"the rows to delete: expected --rows-where or --keys, found {found}")
    place = find_place(policy, reports)
    chosen = place.effective(table, Overrides(task_memory=task_memory, writers=writers))
    name = run_id or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    asked = {"rows_where": rows_where} if keys is None else {"keys": _digest(keys)}
    order = Order(Operation.DELETE, name, place.reports, dry_run, rows=rows_where, keys=keys, asked=asked)
    checks = chosen.settings.check.enabled and not no_check
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        if dry_run:
            document = care(chosen, order, mapper=engine.mapper, exchange=engine.exchange)
        else:
            document = run_one(chosen, order, engine, checks=checks)
    text = plan_text(document) if dry_run else summary_text([document])
    show([document], as_json=as_json, text=text)


def _digest(keys: Path) -> str:
    """What stands for the content of a file of keys; its path where it cannot be read, which is told later."""
    try:
        with keys.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError:
        return str(keys)
