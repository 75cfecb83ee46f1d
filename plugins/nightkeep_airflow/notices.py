"""How a run ended, or that it is late -> the messages about it. Called by tasks and by Airflow's deadlines."""

from __future__ import annotations

from collections.abc import Iterable

from nightkeep.model.receivers import EventKind
from nightkeep.nights import messages_of_run
from nightkeep.nights.settled import Settled
from nightkeep.nights.settled_documents import Documents
from nightkeep.notifications.events import late_event
from nightkeep.notifications.sending import Notice, send
from nightkeep.policy import PolicyFile, receivers_of_run


def notify_of_tables(
    policy: PolicyFile, results: Iterable[Settled], documents: Documents, *, reports: str, prefix: str, link: str | None
) -> None:
    """As `messages_of_run.notify_of_tables`, by Airflow's connections too."""
    from nightkeep_airflow.notifiers import DELIVER  # noqa: PLC0415 -- DAG files import this module

    messages_of_run.notify_of_tables(
        policy, results, documents, reports=reports, prefix=prefix, link=link, deliver=DELIVER
    )


def notify_of_late(policy: PolicyFile, reason: str, *, reports: str, run_id: str, link: str | None) -> None:
    """Send to whom the policy names that a run missed a deadline."""
    from nightkeep_airflow.notifiers import DELIVER  # noqa: PLC0415 -- DAG files import this module

    notice = Notice(late_event(run_id, reason), receivers_of_run(policy, EventKind.LATE))
    send([notice], reports, link=link, deliver=DELIVER)
