"""A retention order -> its work -> a document. Expected endings are outcomes; wrong usage is raised."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from nightkeep.admission.owner_says import owner_of, owner_says
from nightkeep.admission.reasons import Act, Case, Opened, case_of, reason_to_skip
from nightkeep.admission.run_ids import require_same_options
from nightkeep.errors import STOPS, NightkeepError, UsageError, add_stop
from nightkeep.formats import open_table
from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument, document_path, failure_outcome, load_document, store_or_say
from nightkeep.records.after_commit import unjudged
from nightkeep.retention.check_afterwards import check_after_removal
from nightkeep.retention.expire import expire_table
from nightkeep.retention.order import Log, RetentionOrder, retained_files
from nightkeep.retention.restore import restore_run
from nightkeep.retention.sweep import sweep_orphans
from nightkeep.spark.engine import Engine


def run_retention(policy: EffectivePolicy, order: RetentionOrder, engine: Engine) -> RunDocument:
    """Carry out the order and store its document. If a check follows, store the document again with its result."""
    document = apply_order(policy, order, engine=engine)
    try:
        stored, _ = store_or_say(document, order.reports)
        if order.checked(policy) and unjudged(document):
            stored, _ = store_or_say(check_after_removal(document, policy, order, engine=engine), order.reports)
        return stored
    except STOPS as stop:
        left = "; the check of what remains is left" if unjudged(document) else ""
        _add_stop(stop, order, policy, f"{document.reason or document.outcome}{left}")
        raise


def apply_order(
    policy: EffectivePolicy, order: RetentionOrder, *, engine: Engine, first: Callable[[], None] = lambda: None
) -> RunDocument:
    """Carry out an order on one table. Spark starts only if something will be removed and checked afterwards.

    `first` is called before any metadata is read; its errors are handled like errors of the work. Raises UsageError
    for a request that cannot be understood. Every other ending is in the document.
    """
    log = Log(policy, order)
    try:
        earlier = _earlier_document(log)
        if earlier is not None and earlier.extra.get("finished"):
            return earlier
        log.earlier = earlier
        # A pause or a hold stops new work only: the document of an earlier attempt is still returned and checked.
        case = case_of(policy, order.operation, order.reports, log.started, act=_act(order, policy))
        waiting = reason_to_skip(case)
        if waiting is not None:
            return earlier or log.document(Outcome.SKIPPED, waiting)
        first()
        return _work(log, case, engine)
    except UsageError:
        raise
    except (NightkeepError, OSError) as failure:
        return log.document(*failure_outcome(failure, policy.address.name))
    except STOPS as stop:
        listed = log.extra.get("orphans_file")
        named = "" if listed is None else f", which are listed in {listed}"
        removing = f"some of its files may be gone{named}" if log.extra.get("changed") else "nothing was removed"
        _add_stop(stop, order, policy, removing)
        raise


def _add_stop(stop: BaseException, order: RetentionOrder, policy: EffectivePolicy, said: str) -> None:
    add_stop(stop, f"{policy.address.name} {order.operation}: {said}", order.run_id)


def failed_retention(policy: EffectivePolicy, order: RetentionOrder, reason: str) -> RunDocument:
    """The document of an order that ended by an unexpected failure."""
    log = Log(policy, order)
    # This attempt may have stored a document before it removed the first file. An unreadable one is ignored.
    with suppress(NightkeepError, OSError):
        log.earlier = _earlier_document(log)
    return log.document(Outcome.FAILED, reason)


def _act(order: RetentionOrder, policy: EffectivePolicy) -> Act:
    if order.operation is Operation.RESTORE:
        return Act.RESTORE
    return Act.LIST if order.mode_for(policy) is SweepMode.DRY_RUN else Act.WORK


def _work(log: Log, case: Case, engine: Engine) -> RunDocument:
    order, table = log.order, open_table(log.policy.address)
    if order.operation is not Operation.RESTORE and table.never_written():
        return log.document(Outcome.UNCHANGED, "nothing was ever written to it")
    if case.act is not Act.RESTORE:
        description = table.description()
        log.facts["table_id"] = description.id
        # Files may be listed, whoever else manages the table.
        log.owner = (owner_says if case.act is Act.LIST else owner_of)(log.policy, description)
    waiting = reason_to_skip(replace(case, opened=Opened(log.owner)))
    if waiting is not None:
        return log.document(Outcome.SKIPPED, waiting)
    files = retained_files(table, order.operation)
    if order.operation is Operation.EXPIRE:
        return expire_table(log, files, order.run(), engine)
    if order.operation is Operation.RESTORE:
        return restore_run(log, files, order.run())
    return sweep_orphans(log, files, order.run(), engine)


def _earlier_document(log: Log) -> RunDocument | None:
    """The document of an earlier attempt of this run; None if there is none, or if it changed nothing.

    Raises UsageError if the earlier attempt had other options.
    """
    order = log.order
    path = document_path(order.reports, log.policy.address.name, run_id=order.run_id, operation=order.operation)
    if order.operation is Operation.RESTORE:
        return None
    try:
        document = load_document(path)
    except FileNotFoundError:
        return None
    if not document.extra.get("changed"):
        return None
    require_same_options(document, order.asked(log.policy))
    return document
