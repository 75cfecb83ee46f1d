"""The operator on a YARN cluster whose driver shares no path with it: green, red and ended as with a driver here."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk.execution_time.timeout import TimeoutPosix
from tests.drivers.s3_server import Bucket, S3Server
from tests.drivers.s3a import s3a_jars
from tests.drivers.test_yarn import WAITS, wait_for
from tests.drivers.yarn_spark import SparkOnYarn
from tests.formats.delta.lake import Lake
from tests.object_store.bucket_tables import upload

from nightkeep.places import write_file
from nightkeep.records import load_history
from nightkeep_airflow.operators import CareOperator
from nightkeep_airflow.releases import AirflowException, AirflowFailException, AirflowTaskTimeout

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
SECRET = "of-the-tests-and-of-nobody-else"


@pytest.fixture
def lake(s3_bucket: Bucket, tmp_path: Path) -> Bucket:
    """Tables in a bucket, with the policy beside them: one with work, one without, and one that is not there."""
    for name, files in (("small", 12), ("done", 1)):
        made = Lake(tmp_path / name, pa.schema({"id": pa.int64()}))
        for number in range(files):
            made.append(pa.table({"id": [number]}))
        upload(tmp_path / name, s3_bucket, name)
    tables = "".join(f"- {{name: {name}, table: 'delta:{name}'}}\n" for name in ("small", "done", "gone"))
    write_file(f"{s3_bucket.uri}/tables.yaml", f"version: 1\ndefaults: {{writers: conditional}}\ntables:\n{tables}")
    return s3_bucket


@pytest.fixture(autouse=True)
def _task(spark_on_yarn: SparkOnYarn, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a task, with the store's credentials."""
    extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": spark_on_yarn.cluster.web}
    ours = {
        "AIRFLOW_CONN_NIGHTKEEP_SPARK": json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}),
        "HADOOP_CONF_DIR": str(spark_on_yarn.cluster.configuration),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "NIGHTKEEP_EVIDENCE_SECRET": SECRET,
    }
    for name, value in {**s3_server.environment(), **ours}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def begun(spark_on_yarn: SparkOnYarn) -> Iterator[set[str]]:
    """The applications that there were before; those that a test leaves are ended."""
    before = applications(spark_on_yarn)
    yield before
    for each in applications(spark_on_yarn) - before:
        spark_on_yarn.cluster.kill(each)


def applications(spark: SparkOnYarn) -> set[str]:
    return {str(each["id"]) for each in spark.cluster.applications()}


def care(spark: SparkOnYarn, lake: Bucket, *tables: str, **more: Any) -> CareOperator:
    return CareOperator(
        task_id="care",
        jobs=str(ROOT / "jobs"),
        policy=more.pop("policy", f"{lake.uri}/tables.yaml"),
        reports=f"{lake.uri}/reports",
        tables=tables,
        conn_id="nightkeep_spark",
        conf={**spark.settings, "spark.jars": ",".join(map(str, s3a_jars()))},
        **more,
    )


def context(run_id: str) -> Any:
    ti = SimpleNamespace(try_number=1, max_tries=0, map_index=-1)
    return {"dag_run": SimpleNamespace(dag_id="nightly", run_id=run_id), "ti": ti}


def test_a_group_is_maintained_and_no_credential_is_in_a_launch_script(
    spark_on_yarn: SparkOnYarn, lake: Bucket, s3_server: S3Server, begun: set[str]
) -> None:
    entries = care(spark_on_yarn, lake, "small", "done", "gone").execute(context("whole"))
    outcomes = {entry["table"]: entry["outcome"] for entry in entries}
    assert outcomes == {"small": "verified", "done": "unchanged", "gone": "failed"}, entries
    (document,) = load_history(f"{lake.uri}/reports", "small")
    assert (document.outcome, document.expectations.status) == ("verified", "passed")
    (application,) = applications(spark_on_yarn) - begun
    assert spark_on_yarn.cluster.application(application)["finalStatus"] == "SUCCEEDED"
    secrets = [SECRET, s3_server.environment()["AWS_SECRET_ACCESS_KEY"]]
    containers = spark_on_yarn.cluster.containers(application)
    assert len(containers) >= 2
    for container in containers:
        logged = [log.read_text(errors="replace") for log in container.logs.iterdir()]
        assert not [secret for secret in secrets for text in logged if secret in text]
    assert not [each.name for each in (lake.folder / "reports").rglob("*") if each.name.endswith((".end", ".hand"))]


def test_nothing_to_do_and_a_dry_run_are_green(spark_on_yarn: SparkOnYarn, lake: Bucket, begun: set[str]) -> None:
    """YARN fails an application that ends without a session."""
    (entry,) = care(spark_on_yarn, lake, "done").execute(context("idle"))
    assert entry["outcome"] == "unchanged"
    (planned,) = care(spark_on_yarn, lake, "small", options=["--dry-run"]).execute(context("plan"))
    assert planned["outcome"] == "skipped" and str(planned["reason"]).startswith("dry run: this is the plan")
    for each in applications(spark_on_yarn) - begun:
        assert spark_on_yarn.cluster.application(each)["finalStatus"] == "SUCCEEDED"


def test_a_policy_that_is_not_understood_is_not_tried_again(spark_on_yarn: SparkOnYarn, lake: Bucket) -> None:
    write_file(f"{lake.uri}/wrong.yaml", "version: 9\n")
    operator = care(spark_on_yarn, lake, "done", policy=f"{lake.uri}/wrong.yaml")
    with pytest.raises(AirflowFailException, match=rf"the job did not start: {lake.uri}/wrong.yaml:1: version: "):
        operator.execute(context("wrong"))


def test_a_task_that_is_ended_ends_its_application_and_a_retry_what_was_left(
    spark_on_yarn: SparkOnYarn, lake: Bucket, begun: set[str], tmp_path: Path
) -> None:
    (tmp_path / "care.py").write_text(WAITS)
    operator, raised = care(spark_on_yarn, lake, "done"), list[BaseException]()
    operator.jobs = str(tmp_path)

    def execute() -> None:
        try:
            operator.execute(context("ended"))
        except AirflowException as failure:
            raised.append(failure)

    task = threading.Thread(target=execute)
    task.start()
    wait_for(lambda: applications(spark_on_yarn) - begun, "an application")
    (application,) = applications(spark_on_yarn) - begun
    wait_for(lambda: len(spark_on_yarn.cluster.containers(application)) > 1, "an executor")
    operator.on_kill()
    task.join(120)
    assert not task.is_alive() and len(raised) == 1
    assert spark_on_yarn.cluster.application(application)["finalStatus"] == "KILLED"

    # A worker that dies leaves an application with the mark of its task.
    again = care(spark_on_yarn, lake, "done")
    mark = again.job("care.py", ["done"], context("ended"), result="none").mark
    left = spark_on_yarn.command(tmp_path / "care.py", conf={"spark.yarn.tags": mark})
    with subprocess.Popen(left, env=spark_on_yarn.environment(), stderr=subprocess.DEVNULL) as dead:
        wait_for(lambda: len(applications(spark_on_yarn) - begun) == 2, "another application")
        dead.kill()
    (other,) = applications(spark_on_yarn) - begun - {application}
    (entry,) = again.execute(context("ended"))
    assert entry["outcome"] == "unchanged"
    assert spark_on_yarn.cluster.application(other)["finalStatus"] == "KILLED"


def test_a_task_that_takes_too_long_ends_its_application(
    spark_on_yarn: SparkOnYarn, lake: Bucket, begun: set[str], tmp_path: Path
) -> None:
    (tmp_path / "care.py").write_text(WAITS)
    operator = care(spark_on_yarn, lake, "done")
    operator.jobs = str(tmp_path)
    with pytest.raises(AirflowTaskTimeout), TimeoutPosix(45):
        operator.execute(context("late"))
    (application,) = applications(spark_on_yarn) - begun
    wait_for(lambda: not spark_on_yarn.cluster.processes(application), "no process of the application")
    assert spark_on_yarn.cluster.application(application)["finalStatus"] == "KILLED"
