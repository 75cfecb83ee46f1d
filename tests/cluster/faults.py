"""What goes wrong on a cluster while a night is at work, each at a moment that is known.

A moment is when the first new file of a table is in the bucket: tasks are at work, and nothing is published. Where a
process is killed, the store stands still meanwhile, so that the work cannot end first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from tests.cluster.lake import KINDS, Tables
from tests.cluster.runs import RUN_SECONDS
from tests.drivers.airflow_cluster import WORKERS, Cluster
from tests.drivers.supervised import kill, until

_AT_WORK_SECONDS = 300.0
_BACK_SECONDS = 120.0


@dataclass(frozen=True)
class Night:
    """A run that is at work: its first new file is in the bucket."""

    cluster: Cluster
    tables: Tables
    files: Mapping[str, set[str]]
    dag_id: str = "nightly"
    run_id: str = ""

    def until_at_work(self, *, more_than: int = 0) -> None:
        """Until there is another new file than so many."""
        what = f"a new file of {self.tables.name}"
        until(lambda: len(self.staged()) > more_than, what, _AT_WORK_SECONDS, every=0.1)

    def staged(self) -> list[str]:
        return [file for kind in KINDS for file in self.tables.files(kind) - self.files[kind]]

    def end(self) -> str:
        return self.cluster.operator.wait(self.dag_id, self.run_id, RUN_SECONDS)


@dataclass(frozen=True)
class Fault:
    """`name` as printed; `happen` does it to a night at work, and returns what happened. `ends` are the states in
    which the run may end. `kills_tasks`: tasks of Airflow are killed, so that they cannot remove their files."""

    name: str
    happen: Callable[[Night], str]
    ends: tuple[str, ...] = ("success",)
    kills_tasks: bool = False


def begin(tables: Tables) -> Night:
    """A night that is triggered by the operator."""
    files = {kind: tables.files(kind) for kind in KINDS}
    return Night(tables.cluster, tables, files, run_id=tables.cluster.operator.trigger("nightly"))


def kill_workers(night: Night) -> str:
    """Both workers, each with its executor: the second one as soon as there is another new file."""
    cluster = night.cluster
    for number in range(WORKERS):
        night.until_at_work(more_than=len(night.staged()) if number else 0)
        with cluster.store.held():
            killed = cluster.services[f"spark-worker-{number}"].kill()
        assert any("CoarseGrained" in each for each in killed), killed
    return "both workers killed, one after the other, each with its executor"


def kill_driver(night: Night) -> str:
    cluster = night.cluster
    with cluster.store.held():
        killed = kill(cluster.drivers())
    assert any("SparkSubmit" in each for each in killed), killed
    return f"the driver and its JVM killed, {len(killed)} processes"


def kill_scheduler(night: Night) -> str:
    """With all that runs in its container: tasks and drivers."""
    cluster = night.cluster
    with cluster.store.held():
        killed = cluster.services["scheduler"].kill()
    assert any("SparkSubmit" in each for each in killed), killed
    return f"the scheduler killed with its tasks and drivers, {len(killed)} processes"


def lose_bucket(seconds: float) -> Callable[[Night], str]:
    def happen(night: Night) -> str:
        with night.cluster.store.away(seconds), night.cluster.proxy.away(seconds):
            pass
        return f"no connection to the bucket for {seconds:g} s"

    return happen


def lose_postgres(seconds: float) -> Callable[[Night], str]:
    def happen(night: Night) -> str:
        with night.cluster.postgres.away(seconds):
            pass
        return f"Postgres died, back after {seconds:g} s"

    return happen


def end_by_rest(night: Night) -> str:
    """By who may: its task, its application and its driver end with it."""
    night.cluster.operator.end(night.dag_id, night.run_id)
    night.cluster.until_idle(_BACK_SECONDS)
    return "marked as failed by PATCH; its driver and executors ended"


FAULTS = (
    Fault("worker killed, twice", kill_workers),
    Fault("driver killed", kill_driver),
    Fault("scheduler killed", kill_scheduler, kills_tasks=True),
    Fault("bucket away for 12 s", lose_bucket(12)),
    Fault("bucket away for 60 s", lose_bucket(60)),
    Fault("Postgres away for 20 s", lose_postgres(20)),
    Fault("run ended by REST", end_by_rest, ends=("failed",)),
)


def race(tables: Tables) -> dict[str, str]:
    """Two nights and a form of one table, whose commits are held until all three have sent theirs: how each ended."""
    cluster, rest = tables.cluster, tables.cluster.operator
    form = {"table": f"{tables.name}.clicks", "operation": "optimize", "dry_run": False}
    version = tables.commits("clicks")
    request = rf"PUT /{cluster.bucket.name}/{tables.name}/clicks/_delta_log/{version:020d}\.json"
    with ExitStack() as stack:
        held = [stack.enter_context(cluster.proxy.paused(request=request)) for _ in range(3)]
        started = {
            "nightly": rest.trigger("nightly"),
            "second_night": rest.trigger("second_night"),
            "on_demand": rest.trigger("on_demand", form),
        }
        for fault in held:
            until(fault.reached.is_set, "three commits of one version", RUN_SECONDS, every=0.05)
        assert tables.commits("clicks") == version, "a commit was held for too short a time"
        for fault in reversed(held):
            fault.release()
    return {dag_id: rest.wait(dag_id, run_id, RUN_SECONDS) for dag_id, run_id in started.items()}
