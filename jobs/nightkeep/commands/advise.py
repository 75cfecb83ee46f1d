"""nightkeep advise: what a table would be best clustered by, or that nothing should be done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nightkeep.api import advice as api
from nightkeep.commands import options
from nightkeep.commands.printing import put


def advise(
    table: options.Table,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="SQL queries or conditions; else 1 % ranges of every column")
    ] = None,
    target_size: options.TargetSize = None,
    policy: options.Policy = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Which columns to cluster by, judged by the files that queries skip on a sample; it may say to do nothing."""
    advice = api.advise(table, queries=queries, target_size=target_size, policy=policy)
    put(advice.to_json() if as_json else str(advice), as_json=as_json)
