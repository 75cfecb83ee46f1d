"""The topology of docker-compose.yml as processes: units run as tasks on both workers, the driver reads no data."""

import json
import shutil
from pathlib import Path

import pytest
from tests.support.standalone_cluster import Standalone, standalone, submit

pytestmark = [pytest.mark.slow, pytest.mark.extended]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Standalone:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


def test_units_run_on_both_workers_and_the_driver_opens_metadata_only(cluster: Standalone, tmp_path: Path) -> None:
    table = tmp_path / "orders"
    shutil.copytree(ROOT / "samples/paimon/shop.db/orders", table)

    printed = submit(cluster, ROOT / "tests/support/standalone_upgrade.py", str(table), str(tmp_path / "reports"))

    told = json.loads(printed.strip().splitlines()[-1])
    document, opened = told["document"], told["driver_opened"]
    assert document["outcome"] == "verified", document["reason"]
    executors = document["metrics"]["executors"]
    assert len(executors) == 2, executors
    # Every unit was a task of the rewrite and one of the gate.
    assert sum(executors.values()) == 2 * len(document["plan"]["units"])
    assert opened, "the driver plans from metadata"
    assert not [name for name in opened if "bucket-" in name or name.startswith("index/")], opened


@pytest.mark.extended
def test_sizes_reach_executors_and_what_the_deployment_states_stands(cluster: Standalone, tmp_path: Path) -> None:
    said = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(tmp_path), "spark.cores.max": "1"}
    named = {"spark.app.name": "the name it was given", "spark.log.level": "INFO"}

    printed = submit(cluster, ROOT / "tests/support/standalone_session.py", str(700 << 20), conf=said | named)

    assert json.loads(printed.strip().splitlines()[-1]) == {
        "spark.app.name": "the name it was given",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1024m",
        "spark.executor.memoryOverhead": "700m",
        "spark.cores.max": "1",
        "spark.eventLog.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.log.level": "INFO",
        "spark.task.maxFailures": "3",
    }
    assert list(tmp_path.iterdir()), "expected the log of events that was asked for"
    (application,) = (app for app in cluster.status()["completedapps"] if app["name"] == "the name it was given")
    assert (application["memoryperexecutor"], application["cores"]) == (1024, 1)


@pytest.mark.extended
def test_a_session_that_gets_no_executor_reports_it_and_ends(cluster: Standalone) -> None:
    # Each worker has 1 GiB.
    printed = submit(cluster, ROOT / "tests/support/standalone_session.py", str(3 << 30))

    assert json.loads(printed.strip().splitlines()[-1]) == {
        "unreachable": f"{cluster.master}: expected an executor within 20 s, found none of 1 cores and 3072m of "
        "memory; other applications hold the cores (spark.cores.max limits what one takes), or no worker is that large"
    }
    assert cluster.status()["activeapps"] == []


def test_tasks_reach_stores_as_the_driver_does_and_no_setting_has_a_secret(cluster: Standalone) -> None:
    goes = {"AWS_ACCESS_KEY_ID": "key-of-the-driver", "AWS_SECRET_ACCESS_KEY": "s3cr3t-of-the-driver"}
    stays = {"GOOGLE_APPLICATION_CREDENTIALS": "/only/on/the/driver.json"}

    printed = submit(cluster, ROOT / "tests/support/standalone_variables.py", json.dumps({**goes, **stays}))

    told = json.loads(printed.strip().splitlines()[-1])
    assert told == {"found": {**goes, "GOOGLE_APPLICATION_CREDENTIALS": None}, "shown": []}
