"""A failure that ended a run -> its document, with every version that the run has published all the same.

A version is published by one small write. Whatever fails after it, in reports, statistics or audits, the document names
the version and the reason, and the check is still to come: a check or a retry of the run does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from nightkeep.admission.order import Order
from nightkeep.admission.run_ids import stored_document
from nightkeep.errors import CorruptMetadata, NightkeepError, NotCreated, UsageError
from nightkeep.model import Committed, Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.records import Metrics, RunDocument, UnitResult, failure_outcome
from nightkeep.records.after_commit import AFTER_COMMIT, with_surprise
from nightkeep.running.run_log import RunLog
from nightkeep.running.run_summary import commits
from nightkeep.surprises import guarded, log_failure, sentence

UNKNOWN = "whether a version was published is not known; the same run, started again, looks for it"


def failed_document(log: RunLog, failure: Exception) -> RunDocument:
    """The document of a run that this failure ended. Raises UsageError again if nothing was published.

    A bug in the work on one table must not stop the others: it ends in the document too.
    """
    known = _of_published(log, failure)
    if known is not None:
        return known
    if isinstance(failure, UsageError):
        raise failure
    if not isinstance(failure, NightkeepError | OSError):
        log_failure(failure, log.table)
    return with_earlier(log, *_ending(log, failure))


def failed(policy: EffectivePolicy, order: Order, reason: str) -> RunDocument:
    """The document of an order that ended by a failure of which only the reason is known."""
    return with_earlier(RunLog(policy, order), Outcome.FAILED, reason)


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


def with_earlier(log: RunLog, outcome: Outcome, reason: str) -> RunDocument:
    """The document that this failure ends, or what an attempt of the run stored of its changes, with this failure as
    its reason."""
    stored = None
    with suppress(CorruptMetadata, OSError):
        stored = None if log.order.dry_run else stored_document(log.order, log.table)
    if stored is not None and stored.commits:
        both = with_surprise(stored.reason, AFTER_COMMIT, reason)
        return replace(stored, outcome=Outcome.FAILED, reason=both, finished_at=datetime.now(UTC))
    log.earlier = log.earlier or (stored if stored is not None and stored.extra.get("changed") else None)
    return log.document(outcome, reason)


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
        return failure_outcome(failure, log.table)
    return Outcome.FAILED, sentence(failure)
