"""Stored documents -> what was done, run by run, as text of 80 columns. Pure. Safe for a terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nightkeep.model import Outcome
from nightkeep.model.counted import counted
from nightkeep.pages.bars import show_seconds
from nightkeep.pages.html_pages import tally
from nightkeep.pages.summary import notes_of
from nightkeep.pages.text_table import INDENT, aligned_lines, indented, printable
from nightkeep.records.document import RunDocument

_REASON_LINES: Final = 4
_LONGEST_VERSIONS: Final = 16
"""Snapshot ids of Iceberg are longer, and get a line of their own."""


def run_name(document: RunDocument) -> str:
    """What all documents of a run have in common: its id without the table."""
    return document.run_id.removesuffix(f":{document.table}")


def history_text(documents: Sequence[RunDocument]) -> str:
    """A paragraph for each run, oldest first, then totals. Documents are oldest first. Ends without a newline.

    Unchanged tables are counted, and runs that changed nothing share a line.
    """
    return "\n".join(map(printable, _lines(_runs(documents), tally(documents))))


def _runs(documents: Iterable[RunDocument]) -> list[list[RunDocument]]:
    """The documents by run, in the order of the first of each."""
    runs: dict[str, list[RunDocument]] = {}
    for document in documents:
        runs.setdefault(run_name(document), []).append(document)
    return list(runs.values())


def _lines(runs: Iterable[list[RunDocument]], totals: str) -> Iterator[str]:
    for is_quiet, some in itertools.groupby(runs, key=_is_quiet):
        together = list(some)
        if is_quiet and len(together) > 1:
            first, last = (_started(run) for run in (together[0], together[-1]))
            yield f"{counted(len(together), 'run')} with nothing to do"
            yield f"{INDENT}{first} to {last}, the last one {run_name(together[-1][0])}"
        else:
            for run in together:
                yield from _run(run)
    yield ""
    yield totals


def is_counted(document: RunDocument) -> bool:
    """Whether a document is only counted, as its run changed nothing."""
    return document.outcome is Outcome.UNCHANGED


def _is_quiet(run: Sequence[RunDocument]) -> bool:
    return all(map(is_counted, run))


def _run(run: Sequence[RunDocument]) -> Iterator[str]:
    listed = [document for document in run if not is_counted(document)]
    unchanged = len(run) - len(listed)
    yield f"{_started(run)}  {run_name(run[0])}" + (f", {unchanged} unchanged" if unchanged else "")
    versions = [_versions(document) for document in listed]
    apart = max(map(len, versions), default=0) > _LONGEST_VERSIONS
    rows = [
        (each.table, each.operation, each.outcome, "" if apart else moved, _took(each))
        for each, moved in zip(listed, versions, strict=True)
    ]
    for document, moved, line in zip(listed, versions, aligned_lines(rows), strict=True):
        yield f"  {line}".rstrip()
        if apart and moved:
            yield f"{INDENT}version {moved}"
        for reason in _reasons(document):
            yield from indented(reason, most=_REASON_LINES)
        # Statements in them are copied: they are not broken.
        yield from (f"{INDENT}{note}" for note in notes_of(document))


def _started(run: Sequence[RunDocument]) -> str:
    return f"{min(document.started_at for document in run):%Y-%m-%d %H:%M}"


def _versions(document: RunDocument) -> str:
    """What was published, and on top of which version."""
    if document.committed_version is None:
        return ""
    base = "" if document.base_version is None else f"{document.base_version} -> "
    return f"{base}{document.committed_version}"


def _took(document: RunDocument) -> str:
    return show_seconds(document.total_seconds)


def _reasons(document: RunDocument) -> Iterator[str]:
    if document.reason:
        yield document.reason
    if document.expectations.reason:
        yield f"check: {document.expectations.reason}"
