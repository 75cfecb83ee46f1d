"""What a call of the API did -> messages to the webhooks of the table's policy, and events of OpenLineage.

Under Airflow a task of the run sends both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from nightkeep.lineage.emitting import emit_published, is_configured
from nightkeep.model.receivers import EventKind, Receiver
from nightkeep.notifications.events import Event, documents_event
from nightkeep.notifications.notices import notices_of
from nightkeep.notifications.sending import send
from nightkeep.policy import EffectivePolicy
from nightkeep.records import CheckStatus, RunDocument, document_path
from nightkeep.records.check_report import CheckReport

_OF_CHECKS = {CheckStatus.FAILED: EventKind.MISMATCH, CheckStatus.ERRORED: EventKind.FAILED}


def notify_of_documents(policy: EffectivePolicy, documents: Iterable[RunDocument], reports: str) -> None:
    """Send what became of a table, once for each of the runs of these documents, and emit what was published."""
    documents = sorted(documents, key=lambda each: each.run_id)
    if is_configured():
        emit_published(documents)
    of_runs = groupby(documents, key=lambda each: each.run_id)
    _send(policy, [documents_event([*_addressed(some, reports)]) for _, some in of_runs], reports)


def notify_of_check(policy: EffectivePolicy, report: CheckReport, reports: str, run_id: str) -> None:
    """Send that a check has failed, once for each version; or that it could not be done, once for each call."""
    kind = _OF_CHECKS.get(report.status)
    if kind is None:
        return
    version = None if report.compared is None else report.compared.version
    known = version is not None and kind is EventKind.MISMATCH
    event = Event(
        kind=kind,
        run_id=f"check of version {version}" if known else run_id,
        table=policy.address.name,
        reason=report.reason or report.coverage,
        version=version,
    )
    _send(policy, [event], reports)


def _send(policy: EffectivePolicy, events: Sequence[Event], reports: str) -> None:
    def asking(_: str, kind: EventKind) -> Sequence[Receiver]:
        asked: Sequence[Receiver] = getattr(policy.settings.on, kind.value)
        return asked

    send(notices_of(events, asking, reports), reports)


def _addressed(documents: Iterable[RunDocument], reports: str) -> Iterable[tuple[str, RunDocument]]:
    for each in documents:
        yield document_path(reports, each.table, run_id=each.run_id, operation=each.operation), each
