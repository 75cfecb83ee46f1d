"""nightkeep delete: the one command that changes rows, and only those that it is told."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated

import typer

from nightkeep.care import Order
from nightkeep.commands import options
from nightkeep.commands.care import run_one
from nightkeep.commands.place import find_place, show
from nightkeep.engine import Engine
from nightkeep.model import Operation
from nightkeep.policy import Overrides
from nightkeep.report import summary_text


def delete(
    table: options.Table,
    rows_where: Annotated[
        str, typer.Option("--rows-where", help="Condition in Spark SQL; rows for which it is NULL stay")
    ],
    no_check: options.NoCheck = False,
    task_memory: options.TaskMemory = None, master: options.Master = "local[*]", run_id: options.RunId = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Hide the rows for which a condition is true in deletion vectors, prove that no other row went, publish, check."""
    place = find_place(policy, reports)
    chosen = place.effective(table, Overrides(task_memory=task_memory))
    name = run_id or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    order = Order(Operation.DELETE, name, place.reports, rows=rows_where)
    checks = chosen.settings.check.enabled and not no_check
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        document = run_one(chosen, order, engine, checks=checks)
    show([document], as_json=as_json, text=summary_text([document]))
