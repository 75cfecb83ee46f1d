"""The full form of `make test-cluster`: what goes wrong while a night is at work, and what is left of it.

A killed process leaves what it had staged, which no version has: the weekly run of the last test removes it.
"""

from __future__ import annotations

import time

import pytest
from tests.cluster.faults import FAULTS, Fault, begin, race
from tests.cluster.lake import Readers, Tables, age_orphans, place_tables, write_policy
from tests.cluster.report import Lines
from tests.cluster.runs import Before, documents, faults, leftovers, look, outcomes, published, results, run
from tests.drivers.airflow_cluster import Cluster

from nightkeep.model import Operation, Outcome

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

ONCE = {"orders": 1, "clicks": 1, "events": 1}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_night_with_a_fault(cluster: Cluster, readers: Readers, lines: Lines, fault: Fault) -> None:
    began = time.monotonic()
    before = placed(cluster, readers, lines, f"fault{len(lines.tables)}")
    held, night = results(cluster), begin(before.tables)
    night.until_at_work()
    happened = fault.happen(night)
    ended = night.end()
    assert ended in fault.ends, cluster.logs_of_tasks()
    cluster.until_healthy()
    cluster.until_idle()
    if ended == "success":
        assert published(before) == ONCE
    tries = max(task.tries for task in cluster.operator.tasks(night.dag_id, night.run_id))
    nothing_is_left_to_do(before, readers)
    left = results(cluster) - held
    assert not left or fault.kills_tasks, left
    how = f"{happened}; {ended} in {tries} tr{'ies' if tries > 1 else 'y'}"
    lines.add(fault.name, how, before.tables, began, len(left))


def test_two_nights_and_a_form_race(cluster: Cluster, readers: Readers, lines: Lines) -> None:
    began, held = time.monotonic(), results(cluster)
    before = placed(cluster, readers, lines, "race")
    ended = race(before.tables)
    cluster.until_idle()
    # A form is not tried again: who filled it in sees that it lost.
    assert {ended["nightly"], ended["second_night"]} == {"success"}, cluster.logs_of_tasks()
    assert published(before) == ONCE
    nothing_is_left_to_do(before, readers)
    assert results(cluster) == held
    states = ", ".join(f"{dag_id} {state}" for dag_id, state in ended.items())
    lines.add("two nights and a form", f"three commits of one version at once; {states}", before.tables, began)


def test_a_weekly_run_removes_what_was_staged(cluster: Cluster, readers: Readers, lines: Lines) -> None:
    tables = [each for each in lines.tables if each.orphans()]
    if not tables:
        pytest.skip("no fault has left a file")
    rows = [readers.rows(each) for each in tables]
    for each in tables:
        age_orphans(each, days=9)
    write_policy(tables, ", sweep: {mode: delete}")
    assert run(cluster, "orphan_sweep") == "success", cluster.logs_of_tasks()
    left = {each.name: each.orphans() for each in tables if each.orphans()}
    assert left == {}, [removals(each) for each in tables if each.name in left]
    assert [readers.rows(each) for each in tables] == rows
    lines.swept = True


def removals(tables: Tables) -> dict[str, str]:
    """What the documents of sweeps say of each table."""
    return {each.table: each.reason for each in documents(tables) if each.operation is Operation.SWEEP}


def placed(cluster: Cluster, readers: Readers, lines: Lines, name: str) -> Before:
    tables: Tables = place_tables(cluster, name)
    lines.tables.append(tables)
    return look(tables, readers)


def nothing_is_left_to_do(before: Before, readers: Readers) -> None:
    """The night again: it ends well, publishes what is left of a run that was ended, and else nothing."""
    cluster = before.tables.cluster
    assert run(cluster, "nightly") == "success", cluster.logs_of_tasks()
    cluster.until_idle()
    assert published(before) == ONCE
    assert set(outcomes(before.tables).values()) <= {Outcome.UNCHANGED, Outcome.VERIFIED}
    assert [*faults(before, readers), *leftovers(cluster)] == []
