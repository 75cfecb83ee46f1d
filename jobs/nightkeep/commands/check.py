"""nightkeep check and diff: arguments -> a comparison of versions by Spark SQL, as text or JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from nightkeep.api import checks as api
from nightkeep.commands import options
from nightkeep.commands.printing import put
from nightkeep.model import Outcome
from nightkeep.reports import CheckStatus

_STATUS = {CheckStatus.FAILED: Outcome.MISMATCH.exit_status, CheckStatus.ERRORED: Outcome.FAILED.exit_status}


def check(
    table: options.Table,
    version: Annotated[int | None, typer.Option("--version", help="The published version; else the latest")] = None,
    base: Annotated[int | None, typer.Option("--base", help="What it must equal; else the version before")] = None,
    reader: Annotated[
        str | None,
        typer.Option("--reader", help="One more engine, NAME or NAME=PYTHON: deltalake, duckdb, pyiceberg, pypaimon"),
    ] = None,
    policy: options.Policy = None, reports: options.Reports = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """A second opinion on a published version, by Spark SQL and Great Expectations."""
    report = api.check(
        table, version=version, base=base, policy=policy, reports=reports, reader=reader, master=master
    )  # fmt: skip
    put(report.to_json() if as_json else str(report), as_json=as_json)
    raise typer.Exit(_STATUS.get(CheckStatus(report.status), 0))


def diff(
    table: options.Table,
    version: Annotated[int, typer.Option("--version")], other: Annotated[int, typer.Option("--other")],
    policy: options.Policy = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Compare the content of two versions, row by row where it differs."""
    report = api.diff(table, version=version, other=other, policy=policy, master=master)
    put(report.to_json() if as_json else str(report), as_json=as_json)
    raise typer.Exit(0 if report.equal else Outcome.MISMATCH.exit_status)
