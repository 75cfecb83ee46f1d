"""Documents -> plain text of runs, plans and removals. Safe for a terminal: control characters become `?`."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from nightkeep.model import Operation, Outcome
from nightkeep.model.counted import counted
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.pages.bars import show_bytes, show_seconds
from nightkeep.pages.column_metrics import BeforeAfter, column_changes, delete_files, losers, show_share
from nightkeep.pages.html_pages import stage_names, tally
from nightkeep.pages.retention_section import leftovers
from nightkeep.pages.templating import unit_name
from nightkeep.pages.text_table import printable
from nightkeep.records.document import LOG_NOTE, PlanUnit, RunDocument

_LEFT = ("table", "operation", "outcome")
_CHANGES = {
    Operation.DELETE: "hidden in deletion vectors",
    Operation.UPDATE: "hidden in deletion vectors, and written anew as they are set",
}


def summary_text(documents: Sequence[RunDocument]) -> str:
    """Aligned columns, one row per document, then reasons, notes and totals. Ends without a newline."""
    stages = stage_names(documents)
    head = (*_LEFT, "files", "bytes", "rows proven", *(f"{stage} s" for stage in stages), "total s")
    rows = [head, *(_row(document, stages) for document in documents)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rule = "  ".join("-" * width for width in widths)
    lines = [_aligned(row, widths) for row in rows]
    reasons = [printable(f"{d.table}: {d.outcome}: {d.reason}") for d in documents if d.reason]
    reasons += [printable(f"{d.table}: check: {d.expectations.reason}") for d in documents if d.expectations.reason]
    reasons += [printable(f"{d.table}: {note}") for d in documents for note in notes_of(d)]
    # A table that cannot be opened has the same reason in each of its operations.
    notes = dict.fromkeys(reasons)
    return "\n".join([lines[0], rule, *lines[1:], *([""] if notes else []), *notes, "", tally(documents)])


def plans_text(documents: Sequence[RunDocument]) -> str:
    """The plans of several documents. Operations of a table without a plan for the same reason share a line."""
    plans: dict[tuple[str, ...], list[RunDocument]] = {}
    for document in documents:
        shared = (document.table, document.outcome, str(document.reason))
        own = (document.table, document.operation, document.run_id)
        plans.setdefault(shared if document.base_version is None else own, []).append(document)
    return "\n".join(_plan_of(alike) for alike in plans.values())


def _plan_of(alike: Sequence[RunDocument]) -> str:
    document, *others = alike
    if not others:
        return plan_text(document)
    operations = ", ".join(each.operation for each in alike)
    return printable(f"{document.table}: {operations} {document.outcome}: {document.reason}")


def plan_text(document: RunDocument) -> str:
    """The plan in one document: what would be done to each unit, and why. Ends without a newline."""
    units = [f"  {_unit(unit)}" for unit in document.plan.units]
    return "\n".join(map(printable, [plan_head(document), *units, *(f"  {line}" for line in plan_end(document))]))


def plan_head(document: RunDocument) -> str:
    """The table, the operation, and how many units there are, or why there is none."""
    if document.base_version is None:
        return f"{document.table}: {document.operation} {document.outcome}: {document.reason}"
    order = f", {document.plan.clustering}" if document.plan.clustering else ""
    units = document.plan.units
    found = f", {counted(len(units), 'unit')}" if units else f": {document.outcome}: {document.reason}"
    return f"{document.table}: {document.operation} of version {document.base_version}{order}{found}"


def plan_end(document: RunDocument) -> list[str]:
    """What is expected of the work, what is noted, and how many rows a condition selects."""
    if document.base_version is None:
        return []
    selected = document.plan.units and "matching_rows" in document.extra
    notes = (f"note: {note}" for note in document.plan.notes)
    return [*_expected(document), *notes, *([str(document.reason)] if selected else [])]


def _expected(document: RunDocument) -> Iterator[str]:
    """What the work would come to, in one line, if it was predicted."""
    found, metrics = document.metrics.predicted, document.metrics
    if found is not None:
        files = _change(metrics.files_before, found.files, "{:,}".format)
        size = _change(metrics.bytes_before, found.bytes, show_bytes)
        skips = "".join(f", {name} skips {show_share(share)}" for name, share in found.skipping.items())
        took = show_seconds(found.seconds)
        yield f"expected: {files} files, {size}, {took}{skips}; learned from {found.learned_from}"


def _unit(unit: PlanUnit) -> str:
    """One unit of the plan, in the same form as `Plan` prints it."""
    line = f"{unit_name(unit)}: {unit.reason}; {counted(len(unit.input_files), 'file')}, {unit.input_bytes:,} bytes in"
    if unit.estimate is None:
        return line
    return f"{line}; about {unit.estimate.written_bytes:,} bytes out; {unit.estimate.benefit}"


def notes_of(document: RunDocument) -> Iterator[str]:
    """What the columns do not show: several commits, delete files, the effect of clustering on each column, how to
    restore quarantined files."""
    if len(document.commits) > 1:
        first, last = document.commits[0].version, document.commits[-1].version
        yield f"{len(document.commits)} commits, versions {first} to {last}"
    if document.operation in _CHANGES and document.commits:
        yield f"{counted(document.metrics.deleted_rows_marked or 0, 'row')} {_CHANGES[document.operation]}"
        if document.go_back:
            yield f"to undo this commit and every later one: {document.go_back}"
    if expired := document.metrics.extra.get("rows_expired"):
        yield f"{counted(int(str(expired)), 'row')} expired"
    deletes = delete_files(document.metrics.extra)
    if deletes and document.commits:
        yield f"delete files: {deletes}"
    if document.plan.clustering and document.commits:
        changes = column_changes(document.metrics.extra)
        skipped = [f"{each.column} {_share(each.skipping)}" for each in changes if each.skipping]
        lost = losers(changes)
        notes = [f"files skipped: {', '.join(skipped)}"] if skipped else []
        notes += [f"fewer than before on {lost}"] if lost else []
        yield "; ".join([str(document.plan.clustering), *notes])
    yield from (str(note) for note in (document.extra.get(LOG_NOTE),) if note)
    left = leftovers(document)
    if left and left.brings_back:
        table, run = map(shlex.quote, left.brings_back)
        yield f"quarantined: {left.aside}; to restore: nightkeep restore {table} {run}"


def _share(change: BeforeAfter) -> str:
    return " -> ".join("-" if share is None else show_share(share) for share in (change.before, change.after))


def _row(document: RunDocument, stages: Sequence[str]) -> tuple[str, ...]:
    metrics = document.metrics
    spent = [f"{metrics.seconds[s]:.1f}" if s in metrics.seconds else "-" for s in stages]
    return (
        printable(document.table),
        document.operation,
        document.outcome,
        _change(metrics.files_before, metrics.files_after, "{:,}".format),
        _change(metrics.bytes_before, metrics.bytes_after, show_bytes),
        f"{document.rows_proven:,}" if document.operation.rewrites else "-",
        *spent,
        f"{document.total_seconds:.1f}",
    )


def _change(before: int | None, after: int | None, show: Callable[[int], str]) -> str:
    known = [show(value) for value in (before, after) if value is not None]
    return " -> ".join(dict.fromkeys(known)) or "-"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if i < len(_LEFT) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def removal_text(document: RunDocument) -> str:
    """The document of a sweep, an expiry or a restore."""
    return "\n".join(_removal_lines(document))


def _removal_lines(document: RunDocument) -> Iterator[str]:
    yield summary_text([document])
    extra = document.extra
    for title, key in (("kind", "by_kind"), ("age", "by_age")):
        yield from _tallies(title, extra.get(key))
    if extra.get("cutoff"):
        yield f"\nmodified before {extra['cutoff']}"
    if extra.get("orphans_file"):
        yield f"all of them: {extra['orphans_file']}"
    yield from _staying(document)
    yield from _next_steps(document)


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


def _tallies(title: str, value: object) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        return
    rows = [(name, f"{tally['files']:,}", f"{tally['bytes']:,}") for name, tally in value.items()]
    rows = [(title, "files", "bytes"), *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    yield ""
    for name, files, size in rows:
        yield f"{name.ljust(widths[0])}  {files.rjust(widths[1])}  {size.rjust(widths[2])}"


def _next_steps(document: RunDocument) -> Iterator[str]:
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
