"""nightkeep sweep, expire and restore: files that no version needs, told, put aside, deleted, brought back."""

from __future__ import annotations

import itertools
import shlex
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from nightkeep.commands import options
from nightkeep.commands.policy_place import Place, find_place, show
from nightkeep.errors import UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.policy import parse_duration
from nightkeep.reports import RunDocument, leftovers, summary_text
from nightkeep.retention import UpkeepOrder, upkept
from nightkeep.retention.orphans.sweep_request import Mode
from nightkeep.spark.engine import Engine

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
    """Files of a table that nothing needs: told, unless asked to put them aside or to delete them."""
    if delete and quarantine:
        raise UsageError("--delete and --quarantine: expected one of the two, found both")
    if max_share is not None and not 0 <= max_share <= 1:
        raise UsageError(f"--max-share: expected a share from 0 to 1, found {max_share}")
    place = find_place(policy, reports)
    order = UpkeepOrder(
        operation=Operation.SWEEP, run_id=_named(run_id), reports=place.reports,
        mode=Mode.DELETE if delete else Mode.QUARANTINE if quarantine else Mode.DRY_RUN,
        older_than_ms=_duration("--older-than", older_than), max_share=max_share,
        below_floor=below_floor, of_run=of_run, checks=not no_check,
    )  # fmt: skip
    _carry_out(place, table, order, master=master, as_json=as_json)


def expire(
    table: options.Table,
    older_than: _OlderThan = None,
    retain_last: Annotated[
        int | None, typer.Option("--retain-last", min=1, help="So many of the latest versions stay, at least")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell which versions would go")] = False,
    quarantine: _Quarantine = False,
    run_id: options.RunId = None, no_check: options.NoCheck = False,
    policy: options.Policy = None, reports: options.Reports = None, master: options.Master = "local[*]",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Let versions go that the table's own options no longer retain, and the files that only they need."""
    if dry_run and quarantine:
        raise UsageError("--dry-run and --quarantine: expected one of the two, found both")
    place = find_place(policy, reports)
    order = UpkeepOrder(
        operation=Operation.EXPIRE, run_id=_named(run_id), reports=place.reports,
        mode=Mode.DRY_RUN if dry_run else Mode.QUARANTINE if quarantine else Mode.DELETE,
        older_than_ms=_duration("--older-than", older_than), retain_last=retain_last, checks=not no_check,
    )  # fmt: skip
    _carry_out(place, table, order, master=master, as_json=as_json)


def restore(
    table: options.Table,
    run_id: Annotated[str, typer.Argument(help="The run that put files aside")],
    policy: options.Policy = None, reports: options.Reports = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Bring back what a run put aside. Overwrites nothing."""
    place = find_place(policy, reports)
    order = UpkeepOrder(operation=Operation.RESTORE, run_id=run_id, reports=place.reports)
    _carry_out(place, table, order, master="local[*]", as_json=as_json)


def _carry_out(place: Place, table: str, order: UpkeepOrder, *, master: str, as_json: bool) -> None:
    chosen = place.policy.effective(table)
    with Engine(master=master, task_memory_bytes=chosen.settings.task_memory) as engine:
        document = upkept(chosen, order, engine)
    show([document], as_json=as_json, text="\n".join(_text(document)))


def _named(run_id: str | None) -> str:
    return run_id or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


def _duration(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as failure:
        raise UsageError(f"{option}: expected {failure.args[0]}, found {text!r}") from failure


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
    """Versions that an expiry leaves, each with its reason; neighbours with one reason on one line."""
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
    """What to do about what was only told; how to bring back what was put aside is among the reasons above."""
    dry = document.extra.get("mode") == Mode.DRY_RUN and document.outcome is Outcome.SKIPPED
    table = shlex.quote(document.table)
    if dry and document.operation is Operation.SWEEP:
        yield f"to put them aside: nightkeep sweep {table} --quarantine; to delete them: the same with --delete"
    elif dry and document.operation is Operation.EXPIRE:
        yield f"to let them go: nightkeep expire {table}"
