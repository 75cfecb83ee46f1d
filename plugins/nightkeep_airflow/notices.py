"""How a run ended, or that it is late -> the messages about it. Called by tasks and by Airflow's deadlines."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nightkeep.model.receivers import EventKind
from nightkeep.notifications.events import late_event, table_event
from nightkeep.notifications.heard import heard_of
from nightkeep.notifications.sending import Heard, send
from nightkeep.policy import PolicyFile, receivers_of, receivers_of_run
from nightkeep_airflow.results import Settled
from nightkeep_airflow.settled_documents import Documents


def notify_of_tables(
    policy: PolicyFile, results: Iterable[Settled], documents: Documents, *, reports: str, prefix: str, link: str | None
) -> None:
    """Send to whom the policy names what became of the tables of the run with this prefix."""
    from nightkeep_airflow.notifiers import DELIVER  # noqa: PLC0415 -- DAG files import this module

    events = [
        table_event(
            each.table,
            f"{prefix}:{each.table}",
            each.outcome,
            each.reason,
            [(address, documents[address]) for address in each.documents if address in documents],
        )
        for each in results
    ]
    send(heard_of(events, partial(receivers_of, policy), reports), reports, link=link, deliver=DELIVER)


def notify_of_late(policy: PolicyFile, reason: str, *, reports: str, run_id: str, link: str | None) -> None:
    """Send to whom the policy names that a run missed a deadline."""
    from nightkeep_airflow.notifiers import DELIVER  # noqa: PLC0415 -- DAG files import this module

    heard = Heard(late_event(run_id, reason), receivers_of_run(policy, EventKind.LATE))
    send([heard], reports, link=link, deliver=DELIVER)


def heard_results(policy: PolicyFile, results: Iterable[Settled]) -> list[Settled]:
    """Those of which somebody wants to hear."""
    return [each for each in results if receivers_of(policy, each.table, EventKind(each.outcome.value))]
