"""nightkeep tables and validate: arguments -> the tables that there are, and what is wrong with the policy."""

from __future__ import annotations

from typing import Annotated

import typer

from nightkeep.api import tables as api
from nightkeep.commands import options
from nightkeep.commands.printing import put


def tables(
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False
) -> None:  # fmt: skip
    """Every table that the policy lists or that is discovered, and what covers it."""
    found = api.tables(policy=policy, reports=reports)
    put(found.to_json() if as_json else str(found), as_json=as_json)


def validate(
    tables: Annotated[bool, typer.Option("--tables", help="Open the tables too: columns, filters, metrics")] = False,
    policy: options.Policy = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Check the policy and the files that it imports. Exits with 2 if there is a fault."""
    found = api.validate(tables=tables, policy=policy)
    put(found.to_json() if as_json else str(found), as_json=as_json)
    raise typer.Exit(2 if found.faults else 0)
