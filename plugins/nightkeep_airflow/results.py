"""Result files of the jobs -> one Settled per table. What no job reported counts as failed, never as fine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nightkeep.model import Outcome

# Nothing of these was published under this run, unless a version says so.
_UNPUBLISHED = frozenset({Outcome.UNCHANGED, Outcome.SKIPPED, Outcome.REFUSED, Outcome.MISMATCH})


@dataclass(frozen=True, slots=True)
class Reported:
    """One entry of a job's result file; `document` is the path of what was written about it, if anything."""

    table: str
    operation: str
    outcome: Outcome
    reason: str
    document: str | None
    committed_version: int | None = None

    @property
    def may_have_published(self) -> bool:
        """Whether there may be a version to check: part of a run may be published before the rest goes wrong."""
        return self.committed_version is not None or self.outcome not in _UNPUBLISHED

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


def parse(text: str) -> tuple[Reported, ...]:
    """Entries of a result file. Raises ValueError or KeyError for anything else."""
    return tuple(reported(entry) for entry in json.loads(text))


def reported(entry: Mapping[str, Any]) -> Reported:
    """An entry as JSON holds it: from a result file or from an XCom."""
    return Reported(
        table=str(entry["table"]),
        operation=str(entry["operation"]),
        outcome=Outcome(str(entry["outcome"])),
        reason=entry.get("reason") or "",
        document=entry.get("document"),
        committed_version=entry.get("committed_version"),
    )


def settled_result(entry: Mapping[str, Any]) -> Settled:
    """A Settled as an XCom holds it."""
    return Settled(entry["table"], Outcome(entry["outcome"]), entry["reason"], tuple(map(str, entry["documents"])))


def settled(tables: Sequence[str], cared: Iterable[Reported], checked: Iterable[Reported]) -> list[Settled]:
    """One Settled for each of `tables`, in their order; a check's word replaces the care's."""
    last = {(r.table, r.operation): _unchecked(r) for r in cared}
    last |= {(r.table, r.operation): r for r in checked}
    return [_of_table(table, [r for r in last.values() if r.table == table]) for table in tables]


def as_json(value: Reported | Settled) -> dict[str, object]:
    """What an XCom carries: names and paths, never a document's content."""
    return asdict(value)


def _unchecked(care: Reported) -> Reported:
    """What care says of a table if its check never reports: a published version must not pass unchecked."""
    if care.outcome is not Outcome.VERIFIED:
        return care
    return Reported(
        care.table, care.operation, Outcome.FAILED, "published, but its check did not report", care.document
    )


def _of_table(table: str, found: Sequence[Reported]) -> Settled:
    if not found:
        return Settled(table, Outcome.FAILED, "no job reported on this table; see the log of its group", ())
    worst = Outcome.worst(r.outcome for r in found)
    reasons = [f"{r.operation}: {r.reason}" for r in found if r.outcome is worst and r.reason]
    return Settled(table, worst, "; ".join(reasons), tuple(r.document for r in found if r.document))
