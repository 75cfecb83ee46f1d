"""nightkeep explain, history, report and release: what was said, done and held."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from nightkeep import reports as reporting
from nightkeep.commands import options
from nightkeep.commands.policy_place import find_place, put
from nightkeep.errors import UsageError
from nightkeep.policy import explain_text
from nightkeep.reports import (
    History,
    RunDocument,
    Unreadable,
    read_history,
    render_index,
    render_run,
    summary_text,
    write_page,
)  # fmt: skip


def explain(table: options.Table, policy: options.Policy = None) -> None:
    """The policy in force for a table, and the line each value comes from."""
    print(explain_text(find_place(policy, None).policy.effective(table)))


def history(
    table: Annotated[str | None, typer.Argument(help="A table; else all")] = None,
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """What was done, oldest first."""
    place = find_place(policy, reports)
    name = None if table is None else place.policy.effective(table).address.name
    documents = read_history(place.reports, name)
    put([d.to_json() for d in documents.documents] if as_json else summary_text(documents.documents), as_json=as_json)
    _say_unreadable(documents)


def release(table: options.Table, policy: options.Policy = None, reports: options.Reports = None) -> None:
    """Lift the hold that a failed check put on a table."""
    place = find_place(policy, reports)
    name = place.policy.effective(table).address.name
    lifted = reporting.release(place.reports, name)
    if isinstance(lifted, Unreadable):
        print(f"{name}: hold that could not be read lifted; {lifted}")
    else:
        print(f"{name}: no hold" if lifted is None else f"{name}: hold of run {lifted.run_id} lifted")


def report(
    policy: options.Policy = None, reports: options.Reports = None,
    out: Annotated[str | None, typer.Option("--out", help="Where pages go; else beside the documents")] = None,
) -> None:  # fmt: skip
    """Write the page of every run and the index over them."""
    place, now = find_place(policy, reports), datetime.now(UTC)
    if not Path(place.reports).is_dir():
        raise UsageError(f"{place.reports}: expected a folder of reports, found none")
    history = read_history(place.reports)
    documents, folder = history.documents, out or place.reports
    pages: dict[str, str] = {}
    for name in dict.fromkeys(map(_run_name, documents)):
        mine = [document for document in documents if _run_name(document) == name]
        pages[name] = write_page(folder, name, render_run(mine, title=name, generated_at=now)).name
    index = render_index(
        documents, title="Nightkeep", generated_at=now, page_of=lambda d: pages.get(_run_name(d)),
        unreadable=history.unreadable,
    )  # fmt: skip
    print(write_page(folder, "index", index))
    _say_unreadable(history)


def _say_unreadable(documents: History) -> None:
    """One line each on stderr: what is there is told all the same."""
    for each in documents.unreadable:
        print(f"nightkeep: {each}", file=sys.stderr)


def _run_name(document: RunDocument) -> str:
    """What the documents of one run over several tables have in common: run ids of a night end in the table."""
    return document.run_id.removesuffix(f":{document.table}")
