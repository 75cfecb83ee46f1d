"""A failure or a signal that ends a run -> its document, with what the run has published or removed all the same.

A version is published by one small write. Whatever fails after it, in reports, statistics or audits, the document names
the version and the reason, and the check is still to come: a check or a retry of the run does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.admission.run_ids import stored_document
from nightkeep.errors import CorruptMetadata, NightkeepError, NotCreated, UsageError, add_stop
from nightkeep.model import Committed, Operation, Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.records import Metrics, RunDocument, UnitResult, failure_outcome, secure, store_or_note
from nightkeep.records.failure_outcomes import AFTER_COMMIT, UNFINISHED, UNKNOWN, unjudged, with_surprise
from nightkeep.running.run_log import RunLog, commits
from nightkeep.surprises import guarded, log_failure, sentence


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


_NEXT: Final = {
    Operation.SWEEP: "the same run finishes it when it is run again, and restore undoes it",
    Operation.EXPIRE: "a sweep finds what is left of the versions that went",
}


def store_unfinished(log: RunLog) -> None:
    """Store the document before anything is staged or removed. Raises EvidenceError if that fails: then nothing may be
    changed."""
    secure(_unfinished(log), log.order.reports)


def report_interrupted(log: RunLog, stop: BaseException) -> None:
    """Add to the exception what the run has done. A document that names no commit yet is stored anew with them."""
    order = log.order
    add_stop(stop, f"{log.table} {order.operation}: {_done(log)}", order.run_id)
    if log.facts.get("commits"):
        store_or_note(_unfinished(log), order.reports)


def report_unchecked(document: RunDocument, stop: BaseException) -> None:
    """As `report_interrupted`, once the document of the run is known."""
    if not document.operation.rewrites:
        text, left = f"{document.reason or document.outcome}", "; the check of what remains is left"
    else:
        published = document.committed_version
        text = "nothing was published" if published is None else f"version {published} was published and is proven"
        left = "; its check is left"
    left = left if unjudged(document) else ""
    add_stop(stop, f"{document.table} {document.operation}: {text}{left}", document.run_id)


def _unfinished(log: RunLog) -> RunDocument:
    then = _NEXT.get(log.order.operation, "the same run, started again, looks for what it published")
    return log.document(Outcome.FAILED, f"{UNFINISHED}; {then}")


def _done(log: RunLog) -> str:
    if log.order.operation is Operation.AUDIT:
        return "an audit changes nothing"
    if not log.order.operation.rewrites:
        listed = log.extra.get("orphans_file")
        named = "" if listed is None else f", which are listed in {listed}"
        return f"some of its files may be gone{named}" if log.extra.get("changed") else "nothing was removed"
    published = [f"{commit.version}" for commit in log.facts.get("commits", ())]
    if log.order.dry_run:
        return "a dry run changes nothing"
    if log.publishes:
        return "it was publishing a version, which is there as a whole or not at all"
    if published:
        return f"version {', '.join(published)} was published and is proven; its check is left"
    if "units" in log.facts:
        return "nothing was published; a sweep removes the files that it has written"
    return "nothing was published"
