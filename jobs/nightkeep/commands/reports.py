"""nightkeep explain, history, report and release: arguments -> policies, documents, pages and holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from nightkeep.api import stored as api
from nightkeep.commands import options
from nightkeep.commands.printing import put
from nightkeep.reports import Unreadable


def explain(table: options.Table, policy: options.Policy = None, as_json: options.AsJson = False) -> None:
    """The policy in force for a table, the line each value comes from, and what is refused of the table."""
    explained = api.explain(table, policy=policy)
    put(explained.to_json() if as_json else str(explained), as_json=as_json)


def history(
    table: Annotated[str | None, typer.Argument(help="A table; else all")] = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """What was done, oldest first."""
    past = api.history(table, policy=policy, reports=reports)
    put(past.to_json() if as_json else str(past), as_json=as_json)
    _say_unreadable(past.unreadable)


def release(
    table: options.Table, policy: options.Policy = None, reports: options.Reports = None,
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Release a table from the hold that a failed check put on it."""
    released = api.release(table, policy=policy, reports=reports)
    put(released.to_json() if as_json else str(released), as_json=as_json)


def report(
    policy: options.Policy = None, reports: options.Reports = None,
    out: Annotated[str | None, typer.Option("--out", help="Where pages go; else beside the documents")] = None,
    data_docs: Annotated[
        bool, typer.Option("--data-docs", help="Also the Data Docs of Great Expectations, which load nothing")
    ] = False,
    forget: Annotated[
        str | None, typer.Option("--forget", help="Remove results of Great Expectations older than this, such as 90d")
    ] = None,
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Write the page of every run and the index over them."""
    pages = api.report(policy=policy, reports=reports, out=out, data_docs=data_docs, forget=forget)
    put(pages.to_json() if as_json else str(pages), as_json=as_json)
    _say_unreadable(pages.unreadable)


def _say_unreadable(unreadable: Sequence[Unreadable]) -> None:
    """Print one line per unreadable file to stderr. The readable ones are shown as usual."""
    for each in unreadable:
        print(f"nightkeep: {each}", file=sys.stderr)
