"""Result files of the jobs and the documents of a run -> one Settled per table.

An entry is what a job reported at its end. Its document is the present state, as a check may have come later. Where no
entry arrived, because the job or its task died, the documents that the run stored count. What neither knows of counts
as failed, never as fine.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final, NotRequired, TypedDict

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.model.job_entry import JobEntry
from nightkeep.places import report_store
from nightkeep.records import RunDocument, documents_of_run, load_document
from nightkeep.records.bundles import bundles_of_run
from nightkeep.records.failure_outcomes import UNREPORTED, unreported_as_failed
from nightkeep.records.json_files import side_by_side
from nightkeep.records.store import why_not

NOT_LISTED: Final = ""
"""The operation of a table whose documents cannot be listed, as it is not known."""
_LEFT: Final = frozenset({Outcome.FAILED, Outcome.CONFLICTED})
"""Outcomes that a session tries again: it may run where the tables can be reached and a look does not."""
NOT_REPORTED: Final = "no job reported on this table; see the log of its group"


@dataclass(frozen=True, slots=True)
class JobResult:
    """A JobEntry with every key. `emitted`: the task that returns it has emitted the asset of its table."""

    table: str
    operation: str
    outcome: Outcome
    reason: str
    document: str | None
    committed_version: int | None = None
    checked: bool = False
    permanent: bool = False
    nightkeep: str = ""
    emitted: bool = False

    def __str__(self) -> str:
        return f"{self.table} {self.operation}: {self.outcome}" + (f" ({self.reason})" if self.reason else "")


@dataclass(frozen=True, slots=True)
class Settled:
    """How the run ended for one table: the worst of its operations, and every document about it. `published`: a
    version was."""

    table: str
    outcome: Outcome
    reason: str
    documents: tuple[str, ...]
    emitted: bool = False
    published: bool = False

    def __str__(self) -> str:
        return f"{self.table}: {self.outcome}" + (f" ({self.reason})" if self.reason else "")


class SettledEntry(TypedDict):
    """A Settled as JSON holds it."""

    table: str
    outcome: str
    reason: str
    documents: list[str]
    emitted: NotRequired[bool]
    published: NotRequired[bool]


def parse(text: str) -> tuple[JobResult, ...]:
    """Entries of a result file. Raises ValueError or KeyError for anything else."""
    return tuple(reported(entry) for entry in json.loads(text))


def reported(entry: JobEntry) -> JobResult:
    """An entry as JSON holds it: from a result file or from an XCom."""
    return JobResult(
        table=str(entry["table"]),
        operation=str(entry["operation"]),
        outcome=Outcome(str(entry["outcome"])),
        reason=entry.get("reason") or "",
        document=entry.get("document"),
        committed_version=entry.get("committed_version"),
        checked=entry.get("checked") is True,
        permanent=bool(entry.get("permanent")),
        nightkeep=entry.get("nightkeep") or "",
        emitted=entry.get("emitted") is True,
    )


def settled_result(entry: SettledEntry) -> Settled:
    """A Settled as an XCom holds it."""
    return Settled(
        entry["table"],
        Outcome(entry["outcome"]),
        entry["reason"],
        tuple(map(str, entry["documents"])),
        emitted=entry.get("emitted") is True,
        published=entry.get("published") is True,
    )


def awaits_check(entry: JobResult) -> bool:
    """Whether a version was published that no check has judged, by its document. In doubt, True."""
    document = _document(entry)
    return _awaits(entry) if document is None else document.awaits_check


def _awaits(entry: JobResult) -> bool:
    return entry.committed_version is not None and not entry.checked


def refresh_result(entry: JobResult, bundled: Mapping[str, RunDocument] | None = None) -> JobResult:
    """The entry updated from its document. A published version without a check counts as failed. `bundled`: documents
    that are known, by their addresses; a check that died may have judged what awaits one there."""
    known = (bundled or {}).get(entry.document or "")
    return _refreshed(entry, _document(entry) if known is None or known.awaits_check else known)


def _refreshed(entry: JobResult, document: RunDocument | None) -> JobResult:
    if document is not None:
        known = document if document.outcome is Outcome.VERIFIED else unreported_as_failed(document)
        version = known.committed_version
        entry = replace(entry, outcome=known.outcome, reason=known.reason or "", committed_version=version)
    unjudged = _awaits(entry) if document is None else document.awaits_check
    if entry.outcome is Outcome.VERIFIED and unjudged:
        return replace(entry, outcome=Outcome.FAILED, reason=UNREPORTED)
    return entry


def unreported_results(
    reports: str,
    prefix: str,
    tables: Iterable[str],
    arrived: Sequence[JobResult],
    stored: Mapping[str, Collection[Operation]] | None = None,
) -> Iterator[JobResult]:
    """Entries of what the run with this prefix stored of its tables, for the operations of which none arrived.

    `stored`: by table the operations of all that the run stored, where that is known. Of a table without any, nothing
    is known."""
    known = {(entry.table, entry.operation) for entry in arrived}
    known |= {(entry.table, NOT_LISTED) for entry in arrived}
    done = {table for table, each in (stored or {}).items() if each and {(table, str(one)) for one in each} <= known}
    left = [table for table in tables if table not in done]
    each = side_by_side(report_store(reports), partial(_stored, reports, prefix), left)
    return (entry for found in each for entry in found if (entry.table, entry.operation) not in known)


def _stored(reports: str, prefix: str, table: str) -> list[JobResult]:
    try:
        found = documents_of_run(reports, table, f"{prefix}:{table}")
    except OSError as failure:
        return [
            JobResult(table, NOT_LISTED, Outcome.FAILED, f"its documents cannot be listed: {why_not(failure)}", None)
        ]
    return [
        *(_of_document(document, address) for address, document in found.documents.items()),
        *(JobResult(table, each, Outcome.FAILED, str(file), file.path) for each, file in found.unreadable.items()),
    ]


def ended_without_session(looked: Iterable[JobResult]) -> list[JobResult]:
    """The entries of a look that stand. Of other tables nothing is known before a session has worked on them."""
    return [entry for entry in looked if entry.outcome not in _LEFT or entry.permanent]


def settle_results(tables: Sequence[str], cared: Iterable[JobResult]) -> list[Settled]:
    """One Settled for each of `tables`, in their order. Of several entries of one document, the last one counts."""
    last = {(r.table, r.operation, r.document): r for r in cared}
    return [_of_table(table, [r for r in last.values() if r.table == table]) for table in tables]


def settle_run(reports: str, prefix: str, tables: Sequence[str], arrived: Sequence[JobResult]) -> list[Settled]:
    """One Settled for each of the tables, from the entries that arrived and from what the run with this prefix stored.

    The bundles of its jobs hold most documents. Read from their files are large ones, those that await a check, and
    those of jobs that died."""
    bundled = bundles_of_run(reports, prefix)
    left = unreported_results(reports, prefix, tables, arrived, bundled.stored)
    return settle_results(tables, [*(refresh_result(each, bundled.documents) for each in arrived), *left])


def as_json(value: JobResult | Settled) -> dict[str, object]:
    """What an XCom carries: names and paths, never a document's content."""
    return asdict(value)


def _document(entry: JobResult) -> RunDocument | None:
    """The document of an entry; None if it cannot be read, so that the other tables are still settled."""
    if entry.document is None:
        return None
    try:
        return load_document(entry.document)
    except (CorruptMetadata, OSError):
        return None


def _of_document(document: RunDocument, address: str) -> JobResult:
    document = unreported_as_failed(document)
    return JobResult(
        document.table,
        document.operation,
        document.outcome,
        document.reason or "",
        address,
        document.committed_version,
        checked=not document.awaits_check,
    )


def _of_table(table: str, entries: Sequence[JobResult]) -> Settled:
    if not entries:
        return Settled(table, Outcome.FAILED, NOT_REPORTED, ())
    worst = Outcome.worst(r.outcome for r in entries)
    reasons = [
        f"{r.operation}: {r.reason}" if r.operation else r.reason for r in entries if r.outcome is worst and r.reason
    ]
    return Settled(
        table,
        worst,
        "; ".join(reasons),
        tuple(r.document for r in entries if r.document),
        emitted=any(r.emitted for r in entries),
        published=any(r.committed_version is not None for r in entries),
    )
