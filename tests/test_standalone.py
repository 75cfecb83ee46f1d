"""The topology of docker-compose.yml as processes: units run as tasks on both workers, the driver reads no data."""

import json
import shutil
from pathlib import Path

import pytest
from tests.standalone import Standalone, standalone, submit

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Standalone:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


def test_units_run_on_both_workers_and_the_driver_opens_metadata_only(cluster: Standalone, tmp_path: Path) -> None:
    table = tmp_path / "orders"
    shutil.copytree(ROOT / "samples/paimon/shop.db/orders", table)

    printed = submit(cluster, ROOT / "tests/standalone_upgrade.py", str(table), str(tmp_path / "reports"))

    told = json.loads(printed.strip().splitlines()[-1])
    document, opened = told["document"], told["driver_opened"]
    assert document["outcome"] == "verified", document["reason"]
    executors = document["metrics"]["executors"]
    assert len(executors) == 2, executors
    # Every unit was a task of the rewrite and one of the gate.
    assert sum(executors.values()) == 2 * len(document["plan"]["units"])
    assert opened, "the driver plans from metadata"
    assert not [name for name in opened if "bucket-" in name or name.startswith("index/")], opened
