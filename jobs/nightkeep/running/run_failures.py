"""A failure that ended a run -> its document, with every version that the run has published all the same.

A version is published by one small write. Whatever fails after it, in reports, statistics or audits, the document names
the version and the reason, and the check is still to come: a check or a retry of the run does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from nightkeep.errors import CorruptMetadata, NightkeepError, NotCreated, UsageError
from nightkeep.model import Committed, Outcome
from nightkeep.records import Metrics, RunDocument, UnitResult, document_path, failure_outcome, load_document
from nightkeep.records.after_commit import AFTER_COMMIT, with_surprise
from nightkeep.running.run_log import RunLog
from nightkeep.running.run_summary import commits
from nightkeep.surprises import guarded, sentence

UNKNOWN = "whether a version was published is not known; the same run, started again, looks for it"


def failed_document(log: RunLog, failure: Exception) -> RunDocument:
    """The document of a run that this failure ended. Raises UsageError and bugs again if nothing was published."""
    known = _of_published(log, failure)
    if known is not None:
        return known
    if isinstance(failure, UsageError) or not isinstance(failure, NightkeepError | OSError):
        raise failure
    return as_stored_before(log, log.document(*_ending(log, failure)))


def _of_published(log: RunLog, failure: Exception) -> RunDocument | None:
    """The document of a run that published something; None if it has published nothing, as far as is known."""
    done, (outcome, named) = _published(log), _ending(log, failure)
    if done is None:
        return None if isinstance(failure, NotCreated) else log.document(Outcome.FAILED, f"{named}; {UNKNOWN}")
    known = {commit.version for commit in log.facts.get("commits", ())}
    if not done and not known:
        return None
    if {commit.version for commit in done} > known:
        log.facts |= commits(done)
    units = tuple(_as_published(unit, done) for unit in log.facts.get("units", ()))
    if any(unit.outcome is Outcome.FAILED for unit in units):
        # It ended before it was done with all units: that is the failure, whatever the check finds.
        return log.document(outcome, named, units=units)
    measured = log.facts.get("metrics", Metrics())
    metrics = replace(measured, extra={**measured.extra, "unmeasured": named})
    reason = with_surprise(None, AFTER_COMMIT, named)
    return log.document(Outcome.FAILED, reason, units=units, metrics=metrics)


def as_stored_before(log: RunLog, document: RunDocument) -> RunDocument:
    """The document, or what an earlier attempt of the run stored of its commits, with this failure as its reason."""
    order = log.order
    path = document_path(order.reports, document.table, run_id=order.run_id, operation=order.operation)
    with suppress(CorruptMetadata, OSError):
        stored = load_document(path)
        if stored.commits and not order.dry_run:
            reason = with_surprise(stored.reason, AFTER_COMMIT, document.reason or "it failed")
            return replace(stored, outcome=Outcome.FAILED, reason=reason, finished_at=document.finished_at)
    return document


def _published(log: RunLog) -> Sequence[Committed] | None:
    """What the run has published, by the table itself; None if it may have and the table does not answer."""
    if log.committed is None:
        return ()
    unknown = () if log.facts.get("commits") else None
    return guarded(log.committed, lambda _: unknown, f"what run {log.order.run_id} has published")


def _as_published(unit: UnitResult, done: Sequence[Committed]) -> UnitResult:
    mine = {(key.partition, key.bucket) for commit in done for key in commit.units}
    if unit.outcome is not Outcome.FAILED or (unit.partition, unit.bucket) not in mine:
        return unit
    return replace(unit, outcome=Outcome.VERIFIED, reason=None)


def _ending(log: RunLog, failure: Exception) -> tuple[Outcome, str]:
    if isinstance(failure, NightkeepError | OSError):
        return failure_outcome(failure, log.policy.address.name)
    return Outcome.FAILED, sentence(failure)
