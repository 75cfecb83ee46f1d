"""nightkeep sweep, expire and restore: arguments -> files listed, quarantined, deleted or restored."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from nightkeep.api import files as api
from nightkeep.commands import options
from nightkeep.commands.printing import show
from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.reports import RunDocument, leftovers, summary_text

_OlderThan = Annotated[str | None, typer.Option("--older-than", help="Younger ones stay, such as 7d, 36h or 90m")]
_Quarantine = Annotated[bool, typer.Option("--quarantine", help="Put files aside, to be restored or purged later")]


def sweep(
    table: options.Table,
    older_than: _OlderThan = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete orphans; they cannot be brought back")] = False,
    quarantine: _Quarantine = False,
    below_floor: Annotated[
        bool, typer.Option("--below-floor", help="Allow an age at which writers may still be at work")
    ] = False,
    max_share: Annotated[
        float | None, typer.Option("--max-share", help="Of all files; where more would go, nothing goes: 0 to 1")
    ] = None,
    of_run: Annotated[str | None, typer.Option("--run", help="Only what this run left")] = None,
    run_id: options.RunId = None, no_check: options.NoCheck = False,
    policy: options.Policy = None, reports: options.Reports = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """List files that no retained version needs; quarantine or delete them on request.

    Lists the files unless --delete or --quarantine is given."""
    document = api.sweep(
        table, older_than=older_than, delete=delete, quarantine=quarantine, below_floor=below_floor,
        max_share=max_share, run=of_run, run_id=run_id, no_check=no_check, policy=policy, reports=reports,
        master=master,
    )  # fmt: skip
    _show(document, as_json=as_json)


def expire(
    table: options.Table,
    older_than: _OlderThan = None,
    retain_last: Annotated[
        int | None, typer.Option("--retain-last", min=1, help="So many of the latest versions stay, at least")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Expire the versions, and delete their files")] = False,
    quarantine: _Quarantine = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the versions, which is the default")] = False,
    run_id: options.RunId = None, no_check: options.NoCheck = False,
    policy: options.Policy = None, reports: options.Reports = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Expire versions past the table's retention, and delete the files only they need.

    Lists the versions unless --delete or --quarantine is given."""
    document = api.expire(
        table, older_than=older_than, retain_last=retain_last, delete=delete, quarantine=quarantine, dry_run=dry_run,
        run_id=run_id, no_check=no_check, policy=policy, reports=reports, master=master,
    )  # fmt: skip
    _show(document, as_json=as_json)


def restore(
    table: options.Table,
    run_id: Annotated[str, typer.Argument(help="The run that put files aside")],
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Bring back what a run put aside. Overwrites nothing."""
    _show(api.restore(table, run_id, policy=policy, reports=reports), as_json=as_json)


def _show(document: RunDocument, *, as_json: bool) -> None:
    show([document], as_json=as_json, text="\n".join(_text(document)))


# ---- what people read ----


def _text(document: RunDocument) -> Iterator[str]:
    yield summary_text([document])
    extra = document.extra
    for title, key in (("kind", "by_kind"), ("age", "by_age")):
        yield from _table(title, extra.get(key))
    if extra.get("cutoff"):
        yield f"\nmodified before {extra['cutoff']}"
    if extra.get("orphans_file"):
        yield f"all of them: {extra['orphans_file']}"
    yield from _staying(document)
    yield from _next(document)


def _staying(document: RunDocument) -> Iterator[str]:
    """The versions that an expiry keeps, each with the reason. Neighbours with the same reason are on one line."""
    left = leftovers(document)
    if left is None or not left.kept:
        return
    yield "\nversions that stay"
    for reason, group in itertools.groupby(left.kept, key=lambda each: each[1]):
        names = [name for name, _ in group]
        named = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names):,})"
        yield f"  {named}: {reason}"


def _table(title: str, value: object) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        return
    rows = [(name, f"{tally['files']:,}", f"{tally['bytes']:,}") for name, tally in value.items()]
    rows = [(title, "files", "bytes"), *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    yield ""
    for name, files, size in rows:
        yield f"{name.ljust(widths[0])}  {files.rjust(widths[1])}  {size.rjust(widths[2])}"


def _next(document: RunDocument) -> Iterator[str]:
    """What to do next about orphans that were only listed. The reason already says how to restore quarantined files."""
    dry = document.extra.get("mode") == SweepMode.DRY_RUN and document.outcome is Outcome.SKIPPED
    table = shlex.quote(document.table)
    if dry and document.operation is Operation.SWEEP:
        yield "files are only listed unless --quarantine or --delete is given"
        yield f"to quarantine them: nightkeep sweep {table} --quarantine; to delete them: the same with --delete"
    elif dry and document.operation is Operation.EXPIRE:
        yield "versions are only listed unless --delete or --quarantine is given"
        yield f"to expire them: nightkeep expire {table} --delete"
