"""nightkeep check and diff: what Spark SQL says of versions that are there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import typer

from nightkeep.commands import options
from nightkeep.commands.policy_place import find_place, put
from nightkeep.errors import EvidenceError, RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.model import Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.policy import EffectivePolicy
from nightkeep.reports import CheckStatus
from nightkeep.spark.engine import Engine

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
    _require_versions(chosen, {"--version": version, "--base": base})
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        checked = engine.checker().check(
            CheckRequest(
                address=chosen.address, version=version, base_version=base,
                byte_budget=chosen.settings.check.byte_budget, commit_user=None,
            ),
            spark=engine.spark(),
        )  # fmt: skip
    put(checked.to_json() if as_json else str(checked), as_json=as_json)
    raise typer.Exit(_STATUS.get(CheckStatus(checked.status), 0))


def diff(
    table: options.Table,
    version: Annotated[int, typer.Option("--version")], other: Annotated[int, typer.Option("--other")],
    policy: options.Policy = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Compare the content of two versions, row by row where it differs."""
    chosen = find_place(policy, None).policy.effective(table)
    _require_versions(chosen, {"--version": version, "--other": other})
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        compared = engine.differ().diff(chosen.address, version, other, spark=engine.spark())
    put(compared.to_json() if as_json else str(compared), as_json=as_json)
    raise typer.Exit(0 if compared.equal else Outcome.MISMATCH.exit_status)


def _require_versions(chosen: EffectivePolicy, asked: Mapping[str, int | None]) -> None:
    """Raise UsageError for a version that is not there: starting Spark to find that out costs seconds."""
    named = {option: number for option, number in asked.items() if number is not None}
    table = open_table(chosen.address) if named else None
    for option, number in named.items():
        try:
            # What is refused has its version; the checker says why it is not compared.
            with suppress(RefusedTable):
                _ = table and table.snapshot(number)
        except (EvidenceError, FileNotFoundError) as failure:
            name = chosen.address.name
            raise UsageError(f"{option}: expected a version that {name} has, found {number} ({failure})") from failure
