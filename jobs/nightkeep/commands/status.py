"""nightkeep status: arguments -> tables by health, the worst first."""

from __future__ import annotations

from typing import Annotated

import typer

from nightkeep.api import status as api
from nightkeep.commands import options
from nightkeep.commands.printing import put


def status(
    table: Annotated[str | None, typer.Argument(help="A table; else all")] = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """How tables are, the worst first, from metadata alone: what care would bring, and what it would cost."""
    found = api.status(table, policy=policy, reports=reports)
    put(found.to_json() if as_json else str(found), as_json=as_json)
