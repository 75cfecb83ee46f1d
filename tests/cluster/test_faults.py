"""The full form of `make test-cluster`: what goes wrong while a night is at work, and what is left of it."""

from __future__ import annotations

import time

import pytest
from tests.cluster.faults import FAULTS, Fault, begin, race
from tests.cluster.lake import Readers, place_tables
from tests.cluster.report import Lines
from tests.cluster.runs import Before, faults, look, outcomes, published, run
from tests.drivers.airflow_cluster import Cluster

from nightkeep.model import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

ONCE = {"orders": 1, "clicks": 1, "events": 1}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_night_with_a_fault(airflow_cluster: Cluster, readers: Readers, lines: Lines, fault: Fault) -> None:
    began = time.monotonic()
    tables = place_tables(airflow_cluster, fault.name.split(" ")[0].lower() + str(len(lines.found)))
    before = look(tables, readers)
    night = begin(tables)
    night.until_at_work()
    happened = fault.happen(night)
    ended = night.end()
    tries = max(task.tries for task in airflow_cluster.operator.tasks(night.dag_id, night.run_id))
    assert ended in fault.ends, airflow_cluster.logs_of_tasks()
    airflow_cluster.until_healthy()
    airflow_cluster.until_idle()
    if ended == "success":
        assert published(before) == ONCE
    lines.add(fault.name, f"{happened}; {ended}, {tries} tries", *after(before, readers), began)


def test_two_nights_and_a_form_race(airflow_cluster: Cluster, readers: Readers, lines: Lines) -> None:
    began = time.monotonic()
    tables = place_tables(airflow_cluster, "race")
    before = look(tables, readers)
    ended = race(tables)
    airflow_cluster.until_idle()
    # A form is not tried again: who filled it in sees that it lost.
    assert {ended["nightly"], ended["second_night"]} == {"success"}, airflow_cluster.logs_of_tasks()
    assert published(before) == ONCE
    states = ", ".join(f"{dag_id} {state}" for dag_id, state in ended.items())
    lines.add(
        "two nights and a form", f"three commits of one version at once: {states}", *after(before, readers), began
    )


def after(before: Before, readers: Readers) -> tuple[str, str, str, str]:
    """Run the night again: nothing is left to do. What is printed of it, once all of that holds."""
    left = [*faults(before, readers)]
    cluster = before.tables.cluster
    assert run(cluster, "nightly") == "success", cluster.logs_of_tasks()
    cluster.until_idle()
    assert published(before) == ONCE
    again = [*faults(before, readers)]
    assert again == []
    found = outcomes(before.tables)
    assert set(found.values()) <= {Outcome.UNCHANGED, Outcome.VERIFIED}, found
    return "yes", "yes", f"{len(left)} before, none after" if left else "none", "green"
