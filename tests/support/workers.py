"""Which worker runs a test file: the files of one engine go to one worker, so that most engines start once.

Workers wait for their engines most of the time, so `make test` starts three of them for two cores. The third one starts
no engine that lives as long as a worker: it takes files that start programs of their own, and files without engines.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import pytest
from tests.support.extended import deselect_extended
from tests.support.options import deselect_cluster
from tests.support.quick import deselect_slow
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class Needs(StrEnum):
    """What a file needs. Files of one kind are run one after another."""

    DELTA = "delta"
    PROGRAMS = "programs"
    S3 = "s3"
    YARN = "yarn"
    NOTHING = "nothing"
    SPARK = "spark"
    PAIMON = "paimon"
    ICEBERG = "iceberg"


NEEDED: Mapping[str, Needs] = {
    "spark_on_yarn": Needs.YARN,
    "delta_spark": Needs.DELTA,
    "airflow_database": Needs.PROGRAMS,
    "cluster": Needs.PROGRAMS,
    "s3_server": Needs.S3,
    "azure_server": Needs.S3,
    "google_server": Needs.S3,
    "kubernetes_api": Needs.PROGRAMS,
    "hdfs_cluster": Needs.S3,
    "glue": Needs.PROGRAMS,
    "hive_metastore": Needs.PROGRAMS,
    "postgres": Needs.PROGRAMS,
    "iceberg_spark": Needs.ICEBERG,
    "iceberg_java": Needs.ICEBERG,
    "pypaimon": Needs.PAIMON,
    "paimon_java": Needs.PAIMON,
    "spark": Needs.SPARK,
    "slow": Needs.PROGRAMS,
}
"""What a file needs that asks for a fixture or has a mark; of several, the first one counts."""

PREFERENCES: Sequence[Sequence[Needs]] = (
    (Needs.DELTA, Needs.S3, Needs.YARN, Needs.SPARK, Needs.PROGRAMS, Needs.PAIMON, Needs.NOTHING, Needs.ICEBERG),
    (Needs.ICEBERG, Needs.PAIMON, Needs.SPARK, Needs.PROGRAMS, Needs.NOTHING, Needs.S3, Needs.DELTA),
    (Needs.PROGRAMS, Needs.NOTHING),
)
"""What the workers take, in this order. The first two together take everything. One alone starts YARN, whose
jobs take up to 3 GB."""

_FIRST_WORKER = "gw0"


class ByEngine(LoadFileScheduling):  # type: ignore[misc]
    """Gives each worker the next file of the kind that it prefers, and ends a worker that none is left for."""

    @cached_property
    def needs(self) -> Mapping[str, Needs]:
        """By file, as the first worker has found it. Every worker has collected when this is asked for."""
        found = _told_in(self.nodes[0].workerinput["testrunuid"])
        needs: Mapping[str, str] = json.loads(found.read_text())
        found.unlink()
        return {file: Needs(each) for file, each in needs.items()}

    def _assign_work_unit(self, node: WorkerController) -> None:
        file = self._next_for(node)
        if file is not None:
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and not node.shutting_down and self._next_for(node) is None:
            node.shutdown()
        super()._reschedule(node)

    def _next_for(self, node: WorkerController) -> str | None:
        number = int(node.gateway.id.removeprefix("gw"))
        preferences = PREFERENCES[number % min(len(PREFERENCES), len(self.nodes))]
        ranked = [file for file in self.workqueue if self.needs[file] in preferences]
        return min(ranked, key=lambda file: preferences.index(self.needs[file]), default=None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return ByEngine(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        deselect_slow(config, items)
    deselect_cluster(config, items)
    deselect_extended(config, items)
    worker: Mapping[str, str] = getattr(config, "workerinput", {})
    if worker.get("workerid") == _FIRST_WORKER:
        _told_in(worker["testrunuid"]).write_text(json.dumps(needs_of(items)))


def needs_of(items: Sequence[pytest.Item]) -> dict[str, Needs]:
    """What each file needs, by the fixtures and marks of its tests. Names of files are those of node ids."""
    asked: dict[str, set[str]] = {}
    for item in items:
        names = (*getattr(item, "fixturenames", ()), *(mark.name for mark in item.iter_markers()))
        asked.setdefault(item.nodeid.split("::", 1)[0], set()).update(names)
    return {
        file: next((needs for name, needs in NEEDED.items() if name in names), Needs.NOTHING)
        for file, names in asked.items()
    }


def _told_in(run: str) -> Path:
    return Path(tempfile.gettempdir()) / f"nightkeep-needs-{run}.json"
