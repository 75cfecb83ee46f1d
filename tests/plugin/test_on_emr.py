"""Jobs by the operator of EMR Serverless, as docs/clusters.md shows it, against its API on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import airflow.providers
import pyarrow as pa
import pytest
from tests.drivers.emr_server import EmrServer, emr_server
from tests.drivers.s3_server import Bucket
from tests.formats.delta.lake import Lake
from tests.support.airflow_home import ROOT

from nightkeep.places import write_file
from nightkeep.records import load_history
from nightkeep_airflow.job import Submit
from nightkeep_airflow.operators import CareOperator
from nightkeep_airflow.releases import AirflowFailException

pytestmark = [pytest.mark.slow, pytest.mark.extended]


@pytest.fixture(scope="session")
def amazon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The provider of Amazon, without what other operators of it need."""
    folder = tmp_path_factory.mktemp("amazon")
    install = [os.environ["NIGHTKEEP_UV"], "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*install, "apache-airflow-providers-amazon"], check=True, timeout=600)
    return folder / "airflow" / "providers"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Policy and reports are in the bucket, and the jobs are those of the clone."""

    emr: EmrServer
    bucket: Bucket
    submit: Submit

    def care(self, *tables: str) -> CareOperator:
        places = {"jobs": f"{self.bucket.uri}/jobs", "policy": f"{self.bucket.uri}/tables.yaml"}
        reports = f"{self.bucket.uri}/reports"
        return CareOperator(task_id="care", tables=[*tables], submit=self.submit, reports=reports, **places)

    def outcomes(self) -> dict[str, str]:
        return {each.table: str(each.outcome) for each in load_history(f"{self.bucket.uri}/reports")}


@pytest.fixture
def deployment(
    amazon: Path, s3_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    monkeypatch.setattr(airflow.providers, "__path__", [*airflow.providers.__path__, str(amazon)])
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps({"conn_type": "aws"}))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name in ("one", "two"):
        Lake(tmp_path / name, pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    lines = [f"- {{name: t.{name}, table: 'delta:{tmp_path}/{name}'}}" for name in ("one", "two", "gone")]
    write_file(f"{s3_bucket.uri}/tables.yaml", "\n".join(["version: 1", "tables:", *lines]))

    def local(address: str) -> str:
        assert address.startswith(f"{s3_bucket.uri}/jobs/"), address
        return str(ROOT / "jobs" / address.rpartition("/")[2])

    with emr_server(local, {**os.environ, "PYTHONPATH": str(ROOT / "jobs")}) as emr:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EMR_SERVERLESS", f"http://127.0.0.1:{emr.port}")
        yield Deployment(emr, s3_bucket, shown_way())


def shown_way() -> Submit:
    """The function `submit` of the page, which asks every second here."""
    text = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python[^\n]*\n(from airflow\.providers\.amazon.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block.partition("\nnightly(")[0].replace("waiter_delay=30", "waiter_delay=1"), names)
    submit: Submit = names["submit"]
    return submit


def context() -> Any:
    ti = SimpleNamespace(try_number=1, max_tries=0, map_index=3, xcom_push=lambda **_: None)
    return {"dag_run": SimpleNamespace(dag_id="emr", run_id="manual"), "ti": ti}


def test_a_group_ends_as_its_documents_state(deployment: Deployment) -> None:
    care = deployment.care("t.one", "t.two")
    found = {str(entry["table"]): entry["outcome"] for entry in care.execute(context())}
    assert found == deployment.outcomes() == {"t.one": "unchanged", "t.two": "unchanged"}
    (asked,) = deployment.emr.requests
    driver = asked["jobDriver"]["sparkSubmit"]
    assert driver["entryPoint"] == f"{deployment.bucket.uri}/jobs/care.py"
    assert "spark.emr-serverless.driverEnv.PYSPARK_PYTHON" in driver["sparkSubmitParameters"]
    assert f"{deployment.bucket.uri}/reports/~results/" in " ".join(driver["entryPointArguments"])


def test_what_no_retry_mends_is_known_by_the_job(deployment: Deployment) -> None:
    write_file(f"{deployment.bucket.uri}/tables.yaml", "tables: [")
    with pytest.raises(AirflowFailException, match=r"the job did not start: .*tables\.yaml"):
        deployment.care("t.one").execute(context())


def test_a_task_that_is_ended_cancels_its_run(deployment: Deployment) -> None:
    care = deployment.care("t.one")
    started = deployment.emr.start
    deployment.emr.start = lambda asked: started(  # type: ignore[method-assign]
        {**asked, "jobDriver": {"sparkSubmit": {"entryPoint": WAITS, "entryPointArguments": []}}}
    )
    deployment.emr.local = lambda address: address  # type: ignore[method-assign]

    def end() -> None:
        limit = time.monotonic() + 60
        while not deployment.emr.runs and time.monotonic() < limit:
            time.sleep(0.1)
        time.sleep(1.5)
        care.on_kill()

    ended = threading.Thread(target=end)
    ended.start()
    with pytest.raises(Exception, match=r"(?i)cancel|failed|no outcome|ended"):
        care.execute(context())
    ended.join(60)
    assert deployment.emr.cancelled == {"run1"} and deployment.emr.state("run1") == "CANCELLED"


WAITS = str(Path(__file__).parents[1] / "support" / "waits.py")
