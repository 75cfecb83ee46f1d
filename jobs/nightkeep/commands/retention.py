"""The document of a sweep, an expiry or a restore -> the text that people read."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping

from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.pages import leftovers, summary_text
from nightkeep.records import RunDocument


def removal_text(document: RunDocument) -> str:
    return "\n".join(_lines(document))


def _lines(document: RunDocument) -> Iterator[str]:
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
    """What to do next about orphans that were only listed. The reason already names how to restore quarantined
    files."""
    dry = document.extra.get("mode") == SweepMode.DRY_RUN and document.outcome is Outcome.SKIPPED
    table = shlex.quote(document.table)
    if dry and document.operation is Operation.SWEEP:
        yield "files are only listed unless --quarantine or --delete is given"
        yield f"to quarantine them: nightkeep sweep {table} --quarantine; to delete them: the same with --delete"
    elif dry and document.operation is Operation.EXPIRE:
        yield "versions are only listed unless --delete or --quarantine is given"
        yield f"to expire them: nightkeep expire {table} --delete"
