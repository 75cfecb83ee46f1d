"""A sweep's order, its policy and the mark of earlier sweeps -> whether it lists folders or reads the table's log.

A sweep from the log finds what the log names as removed. Files that no log names, such as those of killed writers, are
found by a listing alone. So folders are listed unless the order or the policy's interval allows the log, and whenever
the log does not go on from the mark.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from nightkeep.errors import RefusedTable
from nightkeep.model.sweep_rules import FoundBy, SweepMode
from nightkeep.policy.units import format_duration
from nightkeep.protocol.table_files import LogPoint, OpenFiles, RemovedByLog, SomeRoot
from nightkeep.records.sweep_marks import SweepMark, keep_sweep_mark, sweep_mark
from nightkeep.retention.orphans.sweep_request import SweepResult
from nightkeep.running.run_log import RunLog


@dataclass(frozen=True, slots=True)
class Search:
    """Where candidates of a sweep are from; of a log, what was removed after `since`, or ever without it.

    `mark`: that of earlier sweeps. `why`: why folders are listed although the policy asks for the log, None if nothing
    asks for it.
    """

    found_by: FoundBy = FoundBy.LISTING
    since: LogPoint | None = None
    mark: SweepMark | None = None
    why: str | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a document states of the search besides its facts."""
        return () if self.why is None else (f"the folders were listed: {self.why}",)


def search_of(log: RunLog, table: OpenFiles, *, now_ms: int) -> Search:
    """How this sweep finds candidates. Raises RefusedTable where the order asks for the log and it has a gap."""
    asked, every = log.order.removal.found_by, log.policy.settings.sweep.list_every
    mark = sweep_mark(log.order.reports, log.table)
    wants_log = asked is FoundBy.LOG or (asked is None and every is not None and log.order.removal.of_run is None)
    if table.by_log is None or not wants_log:
        # A sweep of a format without such a log refuses an order for it by name.
        return Search(asked or FoundBy.LISTING, mark=mark)
    if asked is None and every is not None and (why := _due(mark, every, now_ms)):
        return Search(mark=mark, why=why)
    since = None if mark is None else LogPoint(mark.table_id, mark.version, mark.digest)
    start, why = _start(table.by_log, since)
    if why is None:
        return Search(FoundBy.LOG, start, mark)
    if asked is FoundBy.LOG:
        raise RefusedTable(log.table, f"a sweep from the log: {why}", "sweep once by a listing")
    return Search(mark=mark, why=why)


def remember_search(log: RunLog, search: Search, result: SweepResult, *, now_ms: int) -> None:
    """Store how far the log was swept, once all of it is gone. Without it, the next sweep reads more than it must."""
    if log.order.mode_for(log.policy) is SweepMode.DRY_RUN or result.through is None:
        return
    at = datetime.fromtimestamp(now_ms / 1000, UTC)
    listed_at = at if search.found_by is FoundBy.LISTING else None if search.mark is None else search.mark.listed_at
    point = result.through
    mark = SweepMark(
        table=log.table,
        table_id=point.table_id,
        version=point.version,
        digest=point.digest,
        swept_at=at,
        listed_at=listed_at,
    )
    # The files are gone, whether or not that can be remembered.
    with suppress(OSError):
        keep_sweep_mark(log.order.reports, mark)


def search_facts(search: Search, result: SweepResult) -> dict[str, object]:
    """The document's facts about where candidates are from."""
    since = None if search.since is None else search.since.version
    through = None if result.through is None else result.through.version
    return {"found_by": str(search.found_by), "log_since": since, "log_through": through}


def _due(mark: SweepMark | None, every: int, now_ms: int) -> str | None:
    """Why a listing is due, or None."""
    listed = None if mark is None else mark.listed_at
    if listed is None:
        return "no earlier sweep is on record that listed them"
    passed = now_ms - int(listed.timestamp() * 1000)
    # A time ahead of ours is of a wrong clock.
    return None if 0 <= passed < every else f"they were listed {format_duration(every)} ago or earlier"


def _start(by_log: RemovedByLog[SomeRoot], since: LogPoint | None) -> tuple[LogPoint | None, str | None]:
    """The point after which the log names all that was removed, None for its first version; or why there is none."""
    gap = by_log.gap(since)
    if gap is None or since is None:
        return since, gap
    return None, None if by_log.gap(None) is None else gap
