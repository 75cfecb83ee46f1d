"""One operation on one table: admission, work, check -> its document, stored, whatever happens.

`KINDS` has the work and the check of every operation; a new operation is an entry there and its own module.

What a run published or removed is checked at once, in the same session. Its document is stored before the check and
again after it. If the process dies in between, the stored document is failed without a result of a check, and the next
process checks: a retry of the run, which finds its commit, `check_group`, or a later night (`session.left_checks`). A
check that failed to run is repeated in the same way; a finished one is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.auditing.audit import audit_table
from nightkeep.causes import failure_text
from nightkeep.checking.post_commit_check import check_after_commit
from nightkeep.errors import STOPS, UsageError
from nightkeep.groups.reads import Reads
from nightkeep.groups.stored_document import StoredDocument, permanent
from nightkeep.model import Operation
from nightkeep.model.operations import REWRITE_STAGES
from nightkeep.pages import plan_text
from nightkeep.policy import EffectivePolicy
from nightkeep.progress import Stage, in_stage
from nightkeep.records import SESSION_SECONDS, RunDocument, store_or_note
from nightkeep.records.failure_outcomes import unfinished_check, unjudged, unreported_as_failed, without_check
from nightkeep.retention.check_afterwards import check_after_removal
from nightkeep.retention.expire import expire_table
from nightkeep.retention.remove import Removing, remove
from nightkeep.retention.restore import restore_run
from nightkeep.retention.sweep import sweep_orphans
from nightkeep.running.carry_out import Do, carry_out
from nightkeep.running.ended_early import report_unchecked
from nightkeep.running.release_hold import release_hold
from nightkeep.running.rewrites.run_operation import rewrite
from nightkeep.spark.engine import Engine
from nightkeep.surprises import guarded, log_failure

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """How operations of a kind are done. `work` makes what `carry_out` calls. `check` returns the document with the
    result, and puts a table on hold that fails."""

    work: Callable[[Engine, Reads], Do]
    check: Callable[[RunDocument, EffectivePolicy, Order, Engine], RunDocument]


def removal(removing: Removing) -> Kind:
    """The kind of what removes files, or restores them."""
    return Kind(
        lambda engine, reads: partial(remove, removing=removing, engine=engine, first=reads.metadata),
        check_after_removal,
    )


_REWRITE: Final = Kind(
    lambda engine, reads: partial(rewrite, workers=engine, reader=reads.table),
    lambda document, policy, order, engine: check_after_commit(document, policy, order.reports, engine=engine),
)
_AUDIT: Final = Kind(
    lambda engine, reads: partial(audit_table, engine=engine),
    # An audit publishes nothing that could be checked.
    lambda document, policy, order, engine: document,
)
KINDS: Final[Mapping[Operation, Kind]] = {
    Operation.UPGRADE: _REWRITE,
    Operation.PERSIST_DELETES: _REWRITE,
    Operation.OPTIMIZE: _REWRITE,
    Operation.DELETE: _REWRITE,
    Operation.UPDATE: _REWRITE,
    Operation.EXPIRE: removal(expire_table),
    Operation.SWEEP: removal(sweep_orphans),
    Operation.RESTORE: removal(lambda log, files, run, _: restore_run(log, files, run)),
    # It changes nothing of the table.
    Operation.RELEASE: Kind(lambda engine, reads: release_hold, lambda document, policy, order, engine: document),
    Operation.AUDIT: _AUDIT,
}


def run_one(
    policy: EffectivePolicy,
    order: Order,
    engine: Engine,
    reads: Reads | None = None,
    *,
    share: Callable[[], float] | None = None,
) -> StoredDocument:
    """Carry out the order, and check what it changed. `share` is as in `check_and_store`.

    Raises UsageError for a request that cannot be understood. Every other ending is in the document.
    """
    document = carry_out(policy, order, KINDS[order.operation].work(engine, reads or Reads(engine)))
    log_plan(document)
    return check_and_store(document, policy, order, engine, share=share)


def log_plan(document: RunDocument) -> None:
    """Log the plan of a rewrite, before its check."""
    if document.operation.rewrites:
        _log.info("plan of %s", plan_text(document))


def check_and_store(
    document: RunDocument,
    policy: EffectivePolicy,
    order: Order,
    engine: Engine,
    *,
    share: Callable[[], float] | None = None,
) -> StoredDocument:
    """Check what is left to check, store the document and return it. `share`: the part of the time until then that was
    this table's own, where other tables were at work beside it."""
    try:
        if unjudged(document) and order.checked(policy):
            stored(unreported_as_failed(document), order.reports)
            document = _checked(document, policy, order, engine)
        elif document.awaits_check:
            # The document must state that no check will follow: versions that wait for a check do not expire.
            why = "left out by --no-check" if policy.settings.check.enabled else "the policy turns the check off"
            document = without_check(document, why)
        return stored(document if share is None else _with_own_seconds(document, share()), order.reports)
    except STOPS as stop:
        report_unchecked(document, stop)
        raise


def stored(document: RunDocument, reports: str) -> StoredDocument:
    """The document as it is stored."""
    return StoredDocument(*store_or_note(document, reports))


def _checked(document: RunDocument, policy: EffectivePolicy, order: Order, engine: Engine) -> RunDocument:
    """The document with the check of what the run changed, or with the failure of that check."""

    def unfinished(failure: Exception) -> RunDocument:
        if isinstance(failure, UsageError):
            return permanent(unfinished_check(document, str(failure)))
        log_failure(failure, document.table)
        return unfinished_check(document, failure_text(failure))

    check, predicted = KINDS[document.operation].check, document.metrics.predicted
    number = len(REWRITE_STAGES) if document.operation.rewrites else None
    stage = Stage(
        document.table,
        document.operation,
        "check",
        number,
        number,
        document.total_seconds,
        None if predicted is None else predicted.seconds,
    )
    with in_stage(stage):
        return guarded(lambda: check(document, policy, order, engine), unfinished, document.table)


def _with_own_seconds(document: RunDocument, share: float) -> RunDocument:
    """The document with the seconds that were its own, if it published and has none yet."""
    metrics = document.metrics
    if not document.commits or SESSION_SECONDS in metrics.extra:
        return document
    own = {SESSION_SECONDS: round(document.total_seconds * share, 3)}
    return replace(document, metrics=replace(metrics, extra={**metrics.extra, **own}))
