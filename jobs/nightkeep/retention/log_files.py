"""A table's log, in an expiry: checkpoints that are due, and log files that have expired -> facts of the document.

The format decides both (`protocol.log_upkeep`). The table's rows are compared before and after, as for any removal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import NightkeepError, RefusedTable
from nightkeep.model import Outcome, Run
from nightkeep.model.counted import counted
from nightkeep.protocol.log_upkeep import LogPlan, LogRequest, LogResult, LogUpkeep
from nightkeep.protocol.table_files import ExpireRequest, OpenFiles
from nightkeep.records.audit_marks import audit_mark
from nightkeep.running.ended_early import store_unfinished
from nightkeep.running.run_log import RunLog

LISTED: Final = 1000
"""Log files that a document names; the others are counted."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """How the upkeep of the log ended."""

    outcome: Outcome = Outcome.UNCHANGED
    reason: str | None = None

    def after(self, outcome: Outcome, reason: str | None) -> tuple[Outcome, str | None]:
        """Both ends as one: of an expiry of files and of the log."""
        worst = Outcome.worst([outcome, self.outcome])
        if self.outcome is Outcome.UNCHANGED:
            return worst, reason
        others = None if outcome is Outcome.UNCHANGED else reason
        return worst, "; ".join(filter(None, [others, self.reason])) or None


@dataclass(frozen=True, slots=True)
class LogWork:
    """What is planned for one table's log. `removes`: whether it is carried out."""

    upkeep: LogUpkeep
    request: LogRequest
    plan: LogPlan

    @property
    def names(self) -> list[str]:
        """What identifies the removal in the digest of a plan."""
        if not self.plan.files:
            return []
        digest = hashlib.sha256("\n".join(name for name, _ in self.plan.files).encode()).hexdigest()[:32]
        return [f"log files before version {self.plan.oldest}: {digest}"]


def planned_log(log: RunLog, table: OpenFiles, request: ExpireRequest, *, removes: bool) -> LogWork | None:
    """The work on the log; None for a format without one. Raises what the format raises."""
    if table.log is None:
        return None
    mark = audit_mark(log.order.reports, log.table)
    # An audit goes on from the version that it judged last.
    kept = request.keep if mark is None else request.keep | {mark.newest.version}
    asked = LogRequest(request.now_ms, kept, request.older_than_ms, request.retain_last, removes=removes)
    return LogWork(table.log, asked, table.log.plan(asked))


def list_log(log: RunLog, work: LogWork | None) -> LogEnd:
    """A dry run: the document lists what would be done."""
    if work is None:
        return LogEnd()
    plan = work.plan
    result = LogResult(plan.checkpoints, plan.oldest, plan.files, notes=plan.notes)
    _record(log, result)
    if not plan:
        return LogEnd()
    return LogEnd(Outcome.SKIPPED, f"dry run: of the log, {_said(result)}; nothing was changed")


def tend_log(log: RunLog, work: LogWork | None, run: Run, *, remember: Callable[[], None]) -> LogEnd:
    """Do what is planned. `remember` is called before the first log file may go.

    What fails here undoes nothing of the expiry, so that it is a reason in its document.
    """
    if work is None:
        return LogEnd()
    if not work.plan:
        _record(log, LogResult(notes=work.plan.notes))
        return LogEnd()
    if work.plan.files:
        remember()
    log.extra |= {"changed": True, "finished": False}
    store_unfinished(log)
    try:
        result = work.upkeep.carry_out(work.request, run)
    except RefusedTable as refusal:
        _record(log, LogResult(notes=(f"the log stays as it is: {refusal}",)))
        return LogEnd()
    except (NightkeepError, OSError) as failure:
        return LogEnd(Outcome.FAILED, f"the log could not be tended: {failure}")
    log.extra["finished"] = not result.failed
    _record(log, result)
    if result.failed:
        name, why = result.failed[0]
        return LogEnd(
            Outcome.FAILED, f"log files could not be removed, such as {name}: {why}; the next expiry tries again"
        )
    return LogEnd(Outcome.VERIFIED) if result.checkpoints or result.removed else LogEnd()


def _record(log: RunLog, result: LogResult) -> None:
    log.extra["log"] = {
        "checkpoints": list(result.checkpoints),
        "oldest": result.oldest,
        "removed": {"files": len(result.removed), "bytes": result.bytes},
        "files": [name for name, _ in result.removed[:LISTED]],
    }
    notes = [*result.notes, *([f"log: {_said(result)}"] if result.checkpoints or result.removed else [])]
    held = log.extra.get("notes")
    log.extra["notes"] = [*(held if isinstance(held, list) else []), *notes]


def _said(result: LogResult) -> str:
    written = ", ".join(map(str, result.checkpoints))
    parts = [f"a checkpoint of version {written}"] if written else []
    if result.removed:
        parts.append(f"{counted(len(result.removed), 'file')} before version {result.oldest}, {result.bytes:,} bytes")
    return " and ".join(parts)
