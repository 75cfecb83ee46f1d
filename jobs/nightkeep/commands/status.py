"""nightkeep status: arguments -> tables by health, the worst first."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nightkeep.api import status as api
from nightkeep.commands import options
from nightkeep.commands.printing import put
from nightkeep.model import Outcome
from nightkeep.model.counted import counted


def status(
    table: Annotated[str | None, typer.Argument(help="A table; else all")] = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """How tables are, the worst first, from metadata alone: what care would bring, and what it would cost."""
    found = api.status(table, policy=policy, reports=reports)
    put(found.to_json() if as_json else str(found), as_json=as_json)
    if found.unread is not None:
        listed = counted(len(found), "table")
        print(f"nightkeep: status: expected tables that can be read, found {listed} {found.unread}", file=sys.stderr)
    if found and not any(each.table for each in found):
        raise typer.Exit(Outcome.REFUSED.exit_status)
