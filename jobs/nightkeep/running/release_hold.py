"""The release of a table from its hold -> a document that names the runs of the hold, and how to go back."""

from __future__ import annotations

from functools import partial

from nightkeep.admission.reasons import Case
from nightkeep.model import Outcome
from nightkeep.records import Hold, RunDocument, Unreadable, held, require_writable
from nightkeep.records.releases import account, release_table
from nightkeep.running.plan_digest import digest_of_undo, require_expected
from nightkeep.running.run_log import RunLog


def release_hold(log: RunLog, case: Case) -> RunDocument:
    """Release the table, which is not opened. A dry run states what holds it.

    Raises EvidenceError if the hold cannot be removed or another one was written meanwhile, and before it is removed if
    the document cannot be stored. CorruptMetadata: a dry run cannot read the hold.
    """
    order = log.order
    if order.dry_run:
        hold = held(order.reports, log.table)
        if hold is None:
            return log.document(Outcome.UNCHANGED, "no hold")
        log.facts["go_back"] = hold.go_back
        _require_shown(log, hold)
        return log.document(Outcome.SKIPPED, f"dry run: {_named(hold)} would be released; {_why(hold)}")
    require_writable(order.reports, log.table)
    done = release_table(
        order.reports,
        log.table,
        user=order.release.user or account(),
        at=case.now,
        reason=order.release.reason,
        before=partial(_require_shown, log),
    )
    if done is None:
        return log.document(Outcome.UNCHANGED, "no hold")
    log.extra["released_by"] = done.released.user
    unkept = "" if done.unkept is None else f"; the history does not have it: {done.unkept}"
    why = f": {order.release.reason}" if order.release.reason else ""
    return log.document(Outcome.VERIFIED, f"{_named(done.hold)} released by {done.released.user}{why}{unkept}")


def _require_shown(log: RunLog, hold: Hold | Unreadable) -> None:
    what = [*hold.runs, hold.since.isoformat()] if isinstance(hold, Hold) else [str(hold)]
    require_expected(log, digest_of_undo(log, what))


def _named(hold: Hold | Unreadable) -> str:
    if isinstance(hold, Unreadable):
        return f"a hold that could not be read ({hold})"
    return f"hold of run {hold.runs[0]}" if len(hold.runs) == 1 else f"holds of runs {', '.join(hold.runs)}"


def _why(hold: Hold) -> str:
    back = "" if hold.go_back is None else f"; to go back: {hold.go_back}"
    return f"on hold since {hold.since:%Y-%m-%d %H:%M}: {hold.reason}{back}"
