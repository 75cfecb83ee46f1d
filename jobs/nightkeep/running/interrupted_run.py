"""A run that a signal ends -> what it has published, in its document and in the notes of the exception."""

from __future__ import annotations

from typing import Final

from nightkeep.errors import add_stop
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, store_or_say
from nightkeep.running.run_log import RunLog

_NEXT: Final = {
    Operation.SWEEP: "the same run finishes it when it is run again, and restore undoes it",
    Operation.EXPIRE: "a sweep finds what is left of the versions that went",
}


def unfinished_reason(operation: Operation) -> str:
    """The reason in the document that is stored before anything is staged or removed."""
    then = _NEXT.get(operation, "the same run, started again, looks for what it published")
    return f"ended before it was done; {then}"


def say_interrupted(log: RunLog, stop: BaseException) -> None:
    """Add to the exception what the run has published. A document that names no commit yet is stored anew with them."""
    order, name = log.order, f"{log.policy.address.name} {log.order.operation}"
    done = [f"{commit.version}" for commit in log.facts.get("commits", ())]
    if order.dry_run:
        said = "a dry run changes nothing"
    elif log.publishes:
        said = "it was publishing a version, which is there as a whole or not at all"
    elif done:
        said = f"version {', '.join(done)} was published and is proven; its check is left"
    elif "units" in log.facts:
        said = "nothing was published; a sweep removes the files that it has written"
    else:
        said = "nothing was published"
    add_stop(stop, f"{name}: {said}", order.run_id)
    if done:
        store_or_say(log.document(Outcome.FAILED, unfinished_reason(order.operation)), order.reports)


def say_unchecked(document: RunDocument, stop: BaseException) -> None:
    """As `say_interrupted`, once the document of the run is known."""
    published = document.committed_version
    said = "nothing was published" if published is None else f"version {published} was published and is proven"
    left = "; its check is left" if document.awaits_check else ""
    add_stop(stop, f"{document.table} {document.operation}: {said}{left}", document.run_id)
