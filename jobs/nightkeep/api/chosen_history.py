"""Stored documents and releases -> those that a caller asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from nightkeep.api.call_context import choose
from nightkeep.errors import UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.pages import run_name
from nightkeep.policy import parse_duration
from nightkeep.records import CheckStatus, RunDocument

_BAD: Final = frozenset({Outcome.MISMATCH, Outcome.FAILED, Outcome.CONFLICTED})
_BAD_CHECK: Final = frozenset({CheckStatus.FAILED, CheckStatus.ERRORED})


@dataclass(frozen=True, slots=True)
class HistoryChoice:
    """Which documents are asked for. `since`: those that ended at this time or later. `last`: those of so many of the
    newest runs. `failed`: those that ended in mismatch, failed or conflicted, or whose check did not pass. `limit`: as
    `last`, where nobody has asked for a number."""

    since: datetime | None = None
    last: int | None = None
    failed: bool = False
    operation: Operation | None = None
    limit: int | None = None

    @property
    def is_of_few(self) -> bool:
        """Whether the newest are asked for, or those that ended badly, and not all."""
        return self._runs is not None or self.since is not None or self.failed

    @property
    def _runs(self) -> int | None:
        return self.last or self.limit

    def bound(self, chosen: Sequence[RunDocument]) -> datetime | None:
        """The time since which all that suits is among these; None where older documents may suit too."""
        if self.since is not None:
            return self.since
        is_full = self._runs is not None and len({*map(run_name, chosen)}) == self._runs
        return min(each.started_at for each in chosen) if is_full else None

    def of(self, documents: Iterable[RunDocument]) -> tuple[RunDocument, ...]:
        """The documents that are asked for, in their order, which is oldest first."""
        chosen = [each for each in documents if self._has(each)]
        if self._runs is None:
            return tuple(chosen)
        runs = {*list(dict.fromkeys(map(run_name, reversed(chosen))))[: self._runs]}
        return tuple(each for each in chosen if run_name(each) in runs)

    def has_releases_of(self, time: datetime) -> bool:
        """Whether releases of this time are asked for. A choice of runs by anything but time leaves all releases
        out."""
        chooses_runs = self.last is not None or self.failed or self.operation is not None
        return not chooses_runs and (self.since is None or time >= self.since)

    def _has(self, document: RunDocument) -> bool:
        if self.since is not None and document.finished_at < self.since:
            return False
        if self.operation is not None and document.operation is not self.operation:
            return False
        return not self.failed or document.outcome in _BAD or document.expectations.status in _BAD_CHECK


def parse_choice(
    since: str | None, last: int | None, operation: str | None, *, failed: bool, now: datetime
) -> HistoryChoice:
    """Options of a call -> the choice. Raises UsageError."""
    if last is not None and last < 1:
        raise UsageError(f"--last: expected a number of runs of at least 1, found {last}")
    return HistoryChoice(
        since=None if since is None else _time(since, now),
        last=last,
        failed=failed,
        operation=choose("--operation", Operation, operation),
    )


def _time(text: str, now: datetime) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        pass
    try:
        return now - timedelta(milliseconds=parse_duration(text))
    except (ValueError, OverflowError) as failure:
        raise UsageError(
            f"--since: expected a date such as 2026-11-20, or an age such as 7d, found {text!r}"
        ) from failure
