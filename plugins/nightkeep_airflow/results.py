"""Result files of the jobs -> one Settled per table. What no job reported counts as failed, never as fine.

An entry is what a job reported at its end. Its document is the present state, as a check may have come later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypedDict

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Outcome
from nightkeep.model.job_entry import JobEntry
from nightkeep.records import RunDocument, load_document


@dataclass(frozen=True, slots=True)
class JobResult:
    """A JobEntry with every key."""

    table: str
    operation: str
    outcome: Outcome
    reason: str
    document: str | None
    committed_version: int | None = None
    checked: bool = False
    permanent: bool = False

    def __str__(self) -> str:
        return f"{self.table} {self.operation}: {self.outcome}" + (f" ({self.reason})" if self.reason else "")


@dataclass(frozen=True, slots=True)
class Settled:
    """How the run ended for one table: the worst of its operations, and every document about it."""

    table: str
    outcome: Outcome
    reason: str
    documents: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}: {self.outcome}" + (f" ({self.reason})" if self.reason else "")


class SettledEntry(TypedDict):
    """A Settled as JSON holds it."""

    table: str
    outcome: str
    reason: str
    documents: list[str]


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
    )


def settled_result(entry: SettledEntry) -> Settled:
    """A Settled as an XCom holds it."""
    return Settled(entry["table"], Outcome(entry["outcome"]), entry["reason"], tuple(map(str, entry["documents"])))


def awaits_check(entry: JobResult) -> bool:
    """Whether a version was published that no check has judged, by its document. In doubt, True."""
    document = _document(entry)
    if document is None:
        return entry.committed_version is not None and not entry.checked
    return document.awaits_check


def refresh_result(entry: JobResult) -> JobResult:
    """The entry updated from its document. A published version without a check counts as failed."""
    document = _document(entry)
    if document is not None:
        version = document.committed_version
        entry = replace(entry, outcome=document.outcome, reason=document.reason or "", committed_version=version)
    if entry.outcome is Outcome.VERIFIED and awaits_check(entry):
        return replace(entry, outcome=Outcome.FAILED, reason="published, but its check did not report")
    return entry


def settle_results(tables: Sequence[str], cared: Iterable[JobResult]) -> list[Settled]:
    """One Settled for each of `tables`, in their order."""
    last = {(r.table, r.operation): r for r in cared}
    return [_of_table(table, [r for r in last.values() if r.table == table]) for table in tables]


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


def _of_table(table: str, entries: Sequence[JobResult]) -> Settled:
    if not entries:
        return Settled(table, Outcome.FAILED, "no job reported on this table; see the log of its group", ())
    worst = Outcome.worst(r.outcome for r in entries)
    reasons = [f"{r.operation}: {r.reason}" for r in entries if r.outcome is worst and r.reason]
    return Settled(table, worst, "; ".join(reasons), tuple(r.document for r in entries if r.document))
