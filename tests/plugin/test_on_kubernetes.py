"""The operator against the API of a Kubernetes cluster: the pods that it asks for, how a job's end is known, and kills.

No pod runs: a test does what the driver would do, in the place of reports.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.drivers.kubernetes_api import KubernetesApi
from tests.drivers.kubernetes_spark import IMAGE
from tests.drivers.test_kubernetes import pods, variables, wait_for

from nightkeep.places import write_file
from nightkeep.records.job_result import JobEnd, note_end
from nightkeep_airflow.operators import CareOperator
from nightkeep_airflow.releases import AirflowException, AirflowFailException

pytestmark = pytest.mark.extended

SECRET = "of-the-tests-and-of-nobody-else"
SECONDS = 90


@pytest.fixture(autouse=True)
def _task(kubernetes_api: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of a task outside the cluster."""
    extra = {"deploy-mode": "cluster", "namespace": "default"}
    made = {"conn_type": "spark", "host": f"k8s://{kubernetes_api.url}", "extra": extra}
    ours = {
        "AIRFLOW_CONN_NIGHTKEEP_SPARK": json.dumps(made),
        "AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
        "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE": str(kubernetes_api.configuration),
        "KUBECONFIG": str(kubernetes_api.configuration),
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-central-1",
        "PYSPARK_PYTHON": sys.executable,
    }
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tables.yaml").write_text("version: 1\ntables: [{name: t, table: 'delta:/t'}]\n")
    yield
    kubernetes_api.forget()


def care(folder: Path) -> CareOperator:
    conf = {"spark.kubernetes.container.image": IMAGE, "spark.kubernetes.report.interval": "200ms"}
    return CareOperator(
        task_id="care",
        jobs="local:///opt/nightkeep/job_scripts",
        policy=f"file://{folder}/tables.yaml",
        reports=f"file://{folder}/reports",
        tables=["t"],
        conn_id="nightkeep_spark",
        conf=conf,
        env_vars={"MODE": "blue"},
    )


def context(run_id: str = "manual") -> Any:
    ti = SimpleNamespace(try_number=1, max_tries=0, map_index=-1)
    return {"dag_run": SimpleNamespace(dag_id="nightly", run_id=run_id), "ti": ti}


@contextmanager
def executed(operator: CareOperator) -> Iterator[list[object]]:
    """The task in a thread; what it returned or raised is there after the block."""
    ended = list[object]()

    def execute() -> None:
        try:
            ended.append(operator.execute(context()))
        except AirflowException as failure:
            ended.append(failure)

    task = threading.Thread(target=execute)
    task.start()
    try:
        yield ended
    finally:
        task.join(SECONDS)
        assert not task.is_alive()


def result_of(pod: Mapping[str, Any]) -> str:
    (container,) = pod["spec"]["containers"]
    words: list[str] = container["args"]
    return words[words.index("--result") + 1]


def report(pod: Mapping[str, Any], end: JobEnd) -> None:
    """What a driver that ends leaves."""
    if end.status == 0:
        entry = {"table": "t", "operation": "optimize", "outcome": "unchanged"}
        write_file(result_of(pod), json.dumps([entry]))
    note_end(result_of(pod), end)


def test_the_pod_has_what_the_driver_needs_and_nothing_of_this_machine(
    kubernetes_api: KubernetesApi, tmp_path: Path
) -> None:
    operator = care(tmp_path)
    with executed(operator) as ended:
        (pod,) = pods(kubernetes_api, "driver", count=1)
        report(pod, JobEnd(0))
        kubernetes_api.end_pod(pod, exit_code=0)
    ((entry,),) = ended  # type: ignore[misc]
    assert entry["outcome"] == "unchanged"  # type: ignore[index]
    (container,) = pod["spec"]["containers"]
    found = variables(container)
    assert (found["MODE"], found["AWS_REGION"]) == ("blue", "eu-central-1")
    assert not {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "PATH"} & found.keys()
    assert pod["metadata"]["labels"]["nightkeep-job"] == operator.job("x", ["t"], context(), result="r").mark
    (kept,) = kubernetes_api.objects("configmaps") or [{}]
    assert SECRET not in json.dumps([pod, kept])
    assert "local:///opt/nightkeep/job_scripts/care.py" in container["args"]


def test_a_job_that_did_all_its_work_is_done_though_its_pod_failed(
    kubernetes_api: KubernetesApi, tmp_path: Path
) -> None:
    with executed(care(tmp_path)) as ended:
        (pod,) = pods(kubernetes_api, "driver", count=1)
        report(pod, JobEnd(0))
        kubernetes_api.end_pod(pod, exit_code=1)
    ((entry,),) = ended  # type: ignore[misc]
    assert entry["outcome"] == "unchanged"  # type: ignore[index]


def test_a_fault_that_no_retry_mends_is_known_by_the_job(kubernetes_api: KubernetesApi, tmp_path: Path) -> None:
    with executed(care(tmp_path)) as ended:
        (pod,) = pods(kubernetes_api, "driver", count=1)
        report(pod, JobEnd(2, "tables.yaml:1: expected another"))
        kubernetes_api.end_pod(pod, exit_code=2)
    (failure,) = ended
    assert isinstance(failure, AirflowFailException)
    assert str(failure) == "the job did not start: tables.yaml:1: expected another"


def test_a_driver_that_ends_without_a_word_is_tried_again(kubernetes_api: KubernetesApi, tmp_path: Path) -> None:
    with executed(care(tmp_path)) as ended:
        (pod,) = pods(kubernetes_api, "driver", count=1)
        kubernetes_api.end_pod(pod, exit_code=137)
    (failure,) = ended
    assert isinstance(failure, AirflowException) and not isinstance(failure, AirflowFailException)


def test_a_task_that_is_ended_deletes_its_pod_and_a_retry_what_was_left(
    kubernetes_api: KubernetesApi, tmp_path: Path
) -> None:
    operator = care(tmp_path)
    with executed(operator):
        (pod,) = pods(kubernetes_api, "driver", count=1)
        operator.on_kill()
    wait_for(lambda: not kubernetes_api.objects("pods"), "no pod")
    deleted = [each.path for each in kubernetes_api.changes() if each.method == "DELETE"]
    assert any(path.endswith(f"/pods/{pod['metadata']['name']}") for path in deleted)

    with executed(left := care(tmp_path)):
        (pod,) = pods(kubernetes_api, "driver", count=1)
        with executed(care(tmp_path)) as ended:
            wait_for(lambda: pod["metadata"]["name"] not in _names(kubernetes_api), "the pod of the first try to go")
            wait_for(lambda: _names(kubernetes_api), "another pod")
            (other,) = pods(kubernetes_api, "driver", count=1)
            report(other, JobEnd(0))
            kubernetes_api.end_pod(other, exit_code=0)
        # The first try's spark-submit, which died with its worker.
        left.on_kill()
    ((entry,),) = ended  # type: ignore[misc]
    assert entry["outcome"] == "unchanged"  # type: ignore[index]


def _names(api: KubernetesApi) -> set[str]:
    return {pod["metadata"]["name"] for pod in api.objects("pods")}
