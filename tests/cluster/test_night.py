"""The short form of `make test-cluster`: a night, a form and a sweep on a cluster of processes, as users over REST."""

from __future__ import annotations

import pytest
from tests.cluster.lake import Readers, place_tables
from tests.cluster.runs import faults, leftovers, look, outcomes, published, results, run
from tests.drivers.airflow_cluster import Cluster
from tests.drivers.airflow_rest import AirflowRest, RestError

from nightkeep.model import Outcome

pytestmark = pytest.mark.slow


def test_a_night_and_a_form_publish_each_change_once(cluster: Cluster, readers: Readers) -> None:
    tables = place_tables(cluster, "night")
    before = look(tables, readers)

    # A form over REST, of one table alone.
    form = {"table": "night.clicks", "operation": "optimize", "dry_run": False}
    assert run(cluster, "on_demand", form) == "success", cluster.logs_of_tasks()
    assert published(before) == {"orders": 0, "clicks": 1, "events": 0}

    assert run(cluster, "nightly") == "success", cluster.logs_of_tasks()
    cluster.until_idle()
    assert published(before) == {"orders": 1, "clicks": 1, "events": 1}
    assert set(outcomes(tables).values()) <= {Outcome.VERIFIED, Outcome.UNCHANGED}
    assert [*faults(before, readers), *tables.orphans(), *leftovers(cluster), *results(cluster)] == []

    # Nothing is left to do.
    assert run(cluster, "nightly") == "success", cluster.logs_of_tasks()
    cluster.until_idle()
    assert set(outcomes(tables).values()) == {Outcome.UNCHANGED}
    assert published(before) == {"orders": 1, "clicks": 1, "events": 1}
    assert [*faults(before, readers), *tables.orphans(), *leftovers(cluster), *results(cluster)] == []

    # A week's expiry and sweep find nothing, and change nothing.
    assert run(cluster, "orphan_sweep") == "success", cluster.logs_of_tasks()
    cluster.until_idle()
    assert published(before) == {"orders": 1, "clicks": 1, "events": 1}
    assert [*faults(before, readers), *tables.orphans(), *leftovers(cluster), *results(cluster)] == []


def test_who_may_not_start_a_night_does_not(cluster: Cluster) -> None:
    for user, status in ((cluster.user("reader"), 403), (AirflowRest(cluster.base, "operator", "no"), 401)):
        with pytest.raises(RestError) as refused:
            user.trigger("nightly")
        assert refused.value.status == status
