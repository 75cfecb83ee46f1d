"""A run that a signal ends -> what it has published or removed, in its document and in the notes of the exception."""

from __future__ import annotations

from typing import Final

from nightkeep.errors import add_stop
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, secure, store_or_say
from nightkeep.records.after_commit import unjudged
from nightkeep.running.run_log import RunLog

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
        store_or_say(_unfinished(log), order.reports)


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
    return log.document(Outcome.FAILED, f"ended before it was done; {then}")


def _done(log: RunLog) -> str:
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
