"""Spark jobs submitted to a Kubernetes API: which pods they ask for, with which variables and labels, and their end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.drivers import kubernetes_spark
from tests.drivers.kubernetes_api import Change, KubernetesApi
from tests.drivers.kubernetes_spark import IMAGE

pytestmark = pytest.mark.extended

SECONDS = 90
CONF = {
    "spark.kubernetes.driverEnv.OF_THE_DRIVER": "one",
    "spark.executorEnv.OF_EXECUTORS": "two",
    "spark.kubernetes.driver.label.nightkeep-job": "night-1",
}
WAITS = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
while not Path(sys.argv[1]).exists():
    time.sleep(0.1)
spark.stop()
"""


def test_a_driver_pod_has_variables_labels_and_arguments(kubernetes_api: KubernetesApi, tmp_path: Path) -> None:
    with submitted(kubernetes_api, "cluster", "local:///opt/job.py", "--tables", "t", log=tmp_path / "log") as process:
        (pod,) = pods(kubernetes_api, "driver", count=1)
        (container,) = pod["spec"]["containers"]
        assert container["image"] == IMAGE and container["args"][-3:] == ["local:///opt/job.py", "--tables", "t"]
        assert pod["metadata"]["labels"]["nightkeep-job"] == "night-1"
        found = variables(container)
        assert found["OF_THE_DRIVER"] == "one" and "OF_EXECUTORS" not in found
        assert not {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"} & found.keys()
        kubernetes_api.end_pod(pod, exit_code=0)
        assert process.wait(SECONDS) == 0, (tmp_path / "log").read_text()[-4000:]


def test_settings_are_in_clear_beside_the_pod(kubernetes_api: KubernetesApi, tmp_path: Path) -> None:
    """A secret in Spark's settings is one that each reader of config maps has."""
    with submitted(kubernetes_api, "cluster", "local:///opt/job.py", log=tmp_path / "log"):
        wait_for(lambda: kubernetes_api.objects("configmaps"), "a config map")
        (kept,) = kubernetes_api.objects("configmaps")
        assert "spark.executorEnv.OF_EXECUTORS=two" in kept["data"]["spark.properties"]


def test_a_failed_driver_is_no_exit_status(kubernetes_api: KubernetesApi, tmp_path: Path) -> None:
    """Whoever submits learns from elsewhere how the job ended."""
    with submitted(kubernetes_api, "cluster", "local:///opt/job.py", log=tmp_path / "log") as process:
        (pod,) = pods(kubernetes_api, "driver", count=1)
        kubernetes_api.end_pod(pod, exit_code=2)
        assert process.wait(SECONDS) == 0
    log = (tmp_path / "log").read_text()
    assert "phase: Failed" in log and "exit code: 2" in log


def test_executor_pods_of_a_driver_here_have_variables_and_are_deleted(
    kubernetes_api: KubernetesApi, tmp_path: Path
) -> None:
    script, end = tmp_path / "waits.py", tmp_path / "end"
    script.write_text(WAITS)
    with submitted(kubernetes_api, "client", str(script), str(end), log=tmp_path / "log") as process:
        found = pods(kubernetes_api, "executor", count=2)
        for pod in found:
            (container,) = pod["spec"]["containers"]
            assert container["image"] == IMAGE
            assert variables(container)["OF_EXECUTORS"] == "two" and "OF_THE_DRIVER" not in variables(container)
        end.touch()
        assert process.wait(SECONDS) == 0, (tmp_path / "log").read_text()[-4000:]
    assert not kubernetes_api.objects("pods")
    assert {change.method for change in kubernetes_api.changes() if "pods" in change.path} == {"POST", "DELETE"}


def test_the_api_keeps_deletions(kubernetes_api: KubernetesApi, tmp_path: Path) -> None:
    with submitted(kubernetes_api, "cluster", "local:///opt/job.py", log=tmp_path / "log"):
        (pod,) = pods(kubernetes_api, "driver", count=1)
        kubernetes_api.delete_pod(pod["metadata"]["name"])
        assert not kubernetes_api.objects("pods")
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
        assert Change("DELETE", path) in kubernetes_api.changes()


@contextmanager
def submitted(
    api: KubernetesApi, mode: str, script: str, *arguments: str, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    api.forget()
    command = kubernetes_spark.command(api, mode, script, *arguments, conf=CONF)
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, env=kubernetes_spark.environment(api), stdout=sink, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def pods(api: KubernetesApi, role: str, *, count: int) -> Sequence[Mapping[str, Any]]:
    def found() -> list[Mapping[str, Any]]:
        return [pod for pod in api.objects("pods") if pod["metadata"]["labels"]["spark-role"] == role]

    wait_for(lambda: len(found()) == count, f"{count} pods of the role {role}")
    return found()


def variables(container: Mapping[str, Any]) -> dict[str, str | None]:
    return {each["name"]: each.get("value") for each in container["env"]}


def wait_for(ready: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert time.monotonic() < deadline, f"expected {what} within {SECONDS} s, found none"
        time.sleep(0.2)
