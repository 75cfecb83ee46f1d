"""nightkeep check and diff: what Spark SQL says of versions that are there."""

from __future__ import annotations

from typing import Annotated

import typer

from nightkeep.commands import options
from nightkeep.commands.place import find_place, put
from nightkeep.engine import Engine
from nightkeep.model import Outcome
from nightkeep.report import CheckStatus

_STATUS = {CheckStatus.FAILED: Outcome.MISMATCH.exit_status, CheckStatus.ERRORED: Outcome.FAILED.exit_status}


def check(
    table: options.Table,
    version: Annotated[int | None, typer.Option("--version", help="The published version; else the latest")] = None,
    base: Annotated[int | None, typer.Option("--base", help="What it must equal; else the version before")] = None,
    policy: options.Policy = None, reports: options.Reports = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """A second opinion on a published version, by Spark SQL and Great Expectations."""
    chosen = find_place(policy, reports).policy.effective(table)
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        checker = engine.checker()
        found = checker.check(
            checker.CheckRequest(
                address=chosen.address, version=version, base_version=base,
                byte_budget=chosen.settings.check.byte_budget, commit_user=None,
            ),
            spark=engine.spark(),
        )  # fmt: skip
    put(found.to_json() if as_json else str(found), as_json=as_json)
    raise typer.Exit(_STATUS.get(CheckStatus(found.status), 0))


def diff(
    table: options.Table,
    version: Annotated[int, typer.Option("--version")], other: Annotated[int, typer.Option("--other")],
    policy: options.Policy = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Compare the content of two versions, row by row where it differs."""
    chosen = find_place(policy, None).policy.effective(table)
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        found = engine.differ().diff(chosen.address, version, other, spark=engine.spark())
    put(found.to_json() if as_json else str(found), as_json=as_json)
    raise typer.Exit(0 if found.equal else Outcome.MISMATCH.exit_status)
