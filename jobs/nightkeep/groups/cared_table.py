"""One operation on one table, and the check of what it published -> a document, whatever happens.

A published version is checked in the same session. Its document is stored before the check and again after it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nightkeep.causes import failure_text
from nightkeep.checking.post_commit_check import check_after_commit
from nightkeep.errors import DEBUG, UsageError
from nightkeep.groups.stored_document import PERMANENT, StoredDocument
from nightkeep.policy import EffectivePolicy
from nightkeep.records import SESSION_SECONDS, CheckStatus, Expectations, RunDocument, store_or_say
from nightkeep.records.after_commit import unfinished_check, unjudged
from nightkeep.retention import RetentionOrder, apply_order, check_after_removal, failed_retention
from nightkeep.running.planned_work import Reader
from nightkeep.running.run_operation import RunOrder, failed_run, read_table, run_operation
from nightkeep.spark.engine import Engine
from nightkeep.surprises import guarded

_log = logging.getLogger(__name__)


def care_for(policy: EffectivePolicy, order: RunOrder, engine: Engine, reader: Reader) -> RunDocument:
    """As `run_table`, but a request that is invalid ends in the document."""
    try:
        return run_table(policy, order, engine, reader=reader)
    except UsageError as failure:
        return _permanent(failed_run(policy, order, str(failure)))


def run_table(policy: EffectivePolicy, order: RunOrder, engine: Engine, *, reader: Reader = read_table) -> RunDocument:
    """Run one operation on one table. Checks and stores nothing. Raises UsageError for an invalid request."""
    return _no_surprise(
        lambda: run_operation(policy, order, mapper=engine.mapper, exchange=engine.exchange, reader=reader),
        partial(failed_run, policy, order),
        policy.address.name,
    )


def store_checked(
    document: RunDocument,
    policy: EffectivePolicy,
    reports: str,
    *,
    engine: Engine,
    share: Callable[[], float] = lambda: 1.0,
) -> StoredDocument:
    """The document as it is stored, after the check of what it published. `share` tells which part of the time until
    then was this table's own, where others were at work beside it."""
    if document.awaits_check and policy.settings.check.enabled:
        stored(document, reports)
        document = check_table(document, policy, reports, engine=engine)
    elif document.awaits_check:
        off = Expectations(CheckStatus.SKIPPED, reason="the policy turns the check off")
        document = replace(document, expectations=off)
    return stored(_shared(document, share()), reports)


def remove_checked(
    policy: EffectivePolicy, order: RetentionOrder, engine: Engine, first: Callable[[], None]
) -> StoredDocument:
    """The document of a removal as it is stored, after the check of what remains. `first` is as in `apply_order`."""
    document = or_failed(
        lambda: apply_order(policy, order, engine=engine, first=first),
        partial(failed_retention, policy, order),
        policy.address.name,
    )
    unchecked = stored(document, order.reports)
    if not order.checked(policy) or not unjudged(document):
        return unchecked
    checked = or_failed(
        lambda: check_after_removal(document, policy, order, engine=engine),
        partial(unfinished_check, document),
        policy.address.name,
    )
    return stored(checked, order.reports)


def _shared(document: RunDocument, share: float) -> RunDocument:
    """The document with the seconds that were its own, if it published and says of none yet."""
    metrics = document.metrics
    if not document.commits or SESSION_SECONDS in metrics.extra:
        return document
    own = {SESSION_SECONDS: round(document.total_seconds * share, 3)}
    return replace(document, metrics=replace(metrics, extra={**metrics.extra, **own}))


def check_table(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> RunDocument:
    """The document with the check of its versions, or with the unexpected failure of that check. Stores nothing."""
    return or_failed(
        lambda: check_after_commit(document, policy, reports, engine=engine),
        partial(unfinished_check, document),
        document.table,
    )


def or_failed(work: Callable[[], RunDocument], surprised: Callable[[str], RunDocument], table: str) -> RunDocument:
    """The document of the work, or of the failure that `surprised` makes one of."""
    try:
        return _no_surprise(work, surprised, table)
    except UsageError as failure:
        return _permanent(surprised(str(failure)))


def _no_surprise(work: Callable[[], RunDocument], surprised: Callable[[str], RunDocument], table: str) -> RunDocument:
    """A bug in the work on one table must not stop the others. Raises UsageError."""

    def ended(failure: Exception) -> RunDocument:
        if isinstance(failure, UsageError):
            raise failure
        _log.error("%s: %s", table, failure_text(failure), exc_info=bool(os.environ.get(DEBUG)))
        return surprised(failure_text(failure))

    return guarded(work, ended, table)


def _permanent(document: RunDocument) -> RunDocument:
    return replace(document, extra={**document.extra, PERMANENT: True})


def stored(document: RunDocument, reports: str) -> StoredDocument:
    """The document as it is stored."""
    return StoredDocument(*store_or_say(document, reports))
