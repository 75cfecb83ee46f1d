"""An order and the work of its kind -> admission, the work, and a document, however it ends.

The order of things is the same for every operation. First comes what an earlier attempt of the run has left: a removal
and an audit know it from their document, a rewrite from the table, where its versions carry the run's token. Then
`admission` decides whether the table may be worked on, as far as that is known without opening it. The work opens the
table, asks again with what it found, and acts. Nothing is changed before the document of an unfinished run is stored,
so that a crash at any point leaves a document whose reason states what is left to do, or a version that its retry
finds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nightkeep.admission.order import Order
from nightkeep.admission.reasons import Case, case_of, reason_to_skip, reason_to_stay_closed
from nightkeep.admission.run_ids import require_same_options, stored_document
from nightkeep.errors import STOPS
from nightkeep.model import Operation, Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.progress import in_stage
from nightkeep.records import RunDocument
from nightkeep.running.ended_early import failed_document, report_interrupted
from nightkeep.running.run_log import RunLog
from nightkeep.surprises import guarded

Do = Callable[[RunLog, Case], RunDocument]
"""The work of one kind of operation: it opens the table, and ends in a document."""


def carry_out(policy: EffectivePolicy, order: Order, do: Do) -> RunDocument:
    """Carry out one operation on one table. Checks and stores nothing afterwards.

    Raises UsageError for a request that cannot be understood, unless a version was published. Everything else ends in
    the document.
    """
    log = RunLog(policy, order)
    try:
        return guarded(partial(_admitted, log, do), partial(failed_document, log), log.table)
    except STOPS as stop:
        report_interrupted(log, stop)
        raise


def _admitted(log: RunLog, do: Do) -> RunDocument:
    order, rewrites = log.order, log.order.operation.rewrites
    log.earlier = None if rewrites else _earlier_attempt(log)
    if log.earlier is not None and _is_finished(log.earlier):
        return log.earlier
    case = case_of(log.policy, order, log.started)
    waiting = reason_to_skip(case)
    # What an earlier attempt has published is looked for all the same: it still needs a check and a report.
    if waiting is not None and (not rewrites or reason_to_stay_closed(case)):
        return log.earlier or log.document(Outcome.SKIPPED, waiting)
    if not rewrites:
        return do(log, case)
    # A rewrite enters its later stages from within: what is watched as a plan ends when the first of them begins.
    with in_stage(log.progress("plan")):
        return do(log, case)


def _earlier_attempt(log: RunLog) -> RunDocument | None:
    """The document of an earlier attempt of this run; None if there is none, or if it left nothing that counts: a
    removal that changed nothing, or an audit without a verdict.

    Raises UsageError if the earlier attempt had other options.
    """
    if log.order.operation in (Operation.RESTORE, Operation.RELEASE):
        return None
    document = stored_document(log.order, log.table)
    if document is None or not (document.extra.get("changed") or _has_verdict(document)):
        return None
    require_same_options(document, log.order.options(log.policy))
    return document


def _is_finished(document: RunDocument) -> bool:
    return bool(document.extra.get("finished")) or _has_verdict(document)


def _has_verdict(document: RunDocument) -> bool:
    """Whether it is of an audit that has judged something. Its mark has moved: another one would find nothing new."""
    return document.operation is Operation.AUDIT and document.outcome in (Outcome.VERIFIED, Outcome.MISMATCH)
