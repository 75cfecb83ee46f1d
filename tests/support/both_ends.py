"""Test files in the order of the engines they need; one worker takes them from the front, the others from the back.

So most engines start in one worker only, and yet both workers end at about the same time: they meet in the middle,
among the files that need no engine and are short.
"""

from collections.abc import Mapping

import pytest
from tests.support.quick import deselect_slow
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ORDER: Mapping[str, int] = {
    "delta_spark": 0,
    # Processes of other programs take long to start, too long to begin with at the end.
    "airflow_database": 1,
    "cluster": 1,
    # Starts at once, but is built once per machine.
    "s3_server": 1,
    # 2 is for files without engines.
    "spark": 3,
    "pypaimon": 3,
    "paimon_java": 3,
    "iceberg_spark": 4,
    "iceberg_java": 4,
}
"""Places of files that ask for a fixture; the first in the order counts."""

NEITHER = 2


class BothEnds(LoadFileScheduling):  # type: ignore[misc]
    """Files in their order to the first worker, from the last one backwards to any other."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node is not self.nodes[0]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return BothEnds(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files where their engines' places are, and leave the order otherwise."""
    if config.getoption("quick"):
        deselect_slow(config, items)
    places: dict[object, int] = {}
    for item in items:
        for name in ORDER.keys() & set(getattr(item, "fixturenames", ())):
            places[item.path] = min(places.get(item.path, ORDER[name]), ORDER[name])
    items.sort(key=lambda item: places.get(item.path, NEITHER))
