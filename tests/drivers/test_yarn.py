"""Spark jobs in cluster mode on a real YARN cluster: what a container has, what its launch script shows, its end."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from stat import S_IMODE

import pytest
from tests.drivers.s3_server import SECRET_KEY, Bucket, S3Server
from tests.drivers.s3a import s3a_jars
from tests.drivers.yarn_spark import SparkOnYarn, Submitted
from tests.object_store.bucket_tables import upload

from nightkeep.records import load_history

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
SECONDS = 120
GIVEN = "not for everybody"
IMPORTS = """
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession

def facts(_):
    import nightkeep
    own = os.environ.get("OF_THE_DRIVER"), os.environ.get("OF_EXECUTORS")
    # Backwards, so that no log has it as it is.
    yield nightkeep.__file__, sys.executable, Path("given.txt").read_text()[::-1], own

spark = SparkSession.builder.getOrCreate()
print("facts", json.dumps([*facts(0), *spark.sparkContext.parallelize([0], 1).mapPartitions(facts).collect()]))
"""
WAITS = """
import time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.parallelize([0], 1).foreach(lambda _: time.sleep(600))
"""
POLICY = "version: 1\ndefaults:\n  writers: conditional\ntables:\n  - name: lake.clicks\n    table: delta:{}\n"


@pytest.fixture(scope="module")
def imported(spark_on_yarn: SparkOnYarn, tmp_path_factory: pytest.TempPathFactory) -> Submitted:
    """A job with a variable of the driver, one of executors, and a file."""
    folder = tmp_path_factory.mktemp("job")
    script, given = folder / "imports.py", folder / "given.txt"
    script.write_text(IMPORTS)
    given.write_text(GIVEN)
    variables = {"spark.yarn.appMasterEnv.OF_THE_DRIVER": "one", "spark.executorEnv.OF_EXECUTORS": "two"}
    submitted = spark_on_yarn.submit(script, conf=variables, files=[given])
    assert submitted.status == 0, submitted.log[-4000:]
    return submitted


def test_driver_and_executors_run_in_the_packed_environment(spark_on_yarn: SparkOnYarn, imported: Submitted) -> None:
    master, executor = spark_on_yarn.cluster.containers(imported.application)
    (line,) = (line for line in master.output.splitlines() if line.startswith("facts"))
    of_driver, of_executor = json.loads(line.removeprefix("facts"))
    for container, found in ((master, of_driver), (executor, of_executor)):
        assert all(place.startswith(f"{container.folder}/environment/") for place in found[:2]), found
        assert found[2] == GIVEN[::-1]
    assert of_driver[3] == ["one", None] and of_executor[3] == [None, "two"]


def test_variables_are_in_launch_scripts_and_files_are_not(spark_on_yarn: SparkOnYarn, imported: Submitted) -> None:
    """Logs keep the script. Only the user of the application may read the file."""
    master, executor = spark_on_yarn.cluster.containers(imported.application)
    assert 'OF_THE_DRIVER="one"' in master.launch_script and 'OF_EXECUTORS="two"' in executor.launch_script
    for container in (master, executor):
        assert "given.txt" in container.launch_script
        assert S_IMODE((container.folder / "given.txt").stat().st_mode) & 0o077 == 0
        assert not any(GIVEN in log.read_text(errors="replace") for log in container.logs.iterdir())


def test_a_driver_without_a_spark_context_fails(spark_on_yarn: SparkOnYarn, tmp_path: Path) -> None:
    """The exit code is in the master's log alone. spark-submit ends with 1."""
    script = tmp_path / "nothing.py"
    script.write_text("print('nothing to do')\n")
    submitted = spark_on_yarn.submit(script)
    (master,) = spark_on_yarn.cluster.containers(submitted.application)
    found = spark_on_yarn.cluster.application(submitted.application)
    assert submitted.status == 1
    assert (found["state"], found["finalStatus"]) == ("FAILED", "FAILED")
    assert "nothing to do" in master.output and "exitCode: 13" in master.output


def test_an_application_is_ended_by_a_request(spark_on_yarn: SparkOnYarn, tmp_path: Path) -> None:
    cluster = spark_on_yarn.cluster
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    before = {each["id"] for each in cluster.applications()}
    with subprocess.Popen(
        spark_on_yarn.command(script), env=spark_on_yarn.environment(), stderr=subprocess.DEVNULL
    ) as submitting:
        try:
            wait_for(lambda: {each["id"] for each in cluster.applications()} - before, "an application")
            (application,) = {each["id"] for each in cluster.applications()} - before
            wait_for(lambda: len(cluster.containers(application)) == 2, "an executor")
            assert cluster.processes(application)
            cluster.kill(application)
            assert submitting.wait(SECONDS) == 1
        finally:
            for each in {each["id"] for each in cluster.applications()} - before:
                cluster.kill(each)
            submitting.kill()
    assert cluster.application(application)["finalStatus"] == "KILLED"
    wait_for(lambda: not cluster.processes(application), "no process of the application")


def test_a_table_in_a_bucket_is_maintained_and_no_credentials_are_shown(
    spark_on_yarn: SparkOnYarn, s3_server: S3Server, s3_bucket: Bucket, tmp_path: Path
) -> None:
    """Also of a job that finds nothing to do, which would not need Spark."""
    policy, variables = tmp_path / "tables.yaml", tmp_path / "variables.json"
    policy.write_text(POLICY.format(upload(ROOT / "samples" / "delta" / "shop.db" / "clicks", s3_bucket, "clicks")))
    variables.write_text(json.dumps({**s3_server.environment(), "NIGHTKEEP_EVIDENCE_SECRET": "of the tests only"}))
    conf = {"spark.yarn.appMasterEnv.NIGHTKEEP_ENVIRONMENT_FILE": variables.name}
    conf["spark.jars"] = ",".join(map(str, s3a_jars()))
    job = ["--policy", policy.name, "--tables", "lake.clicks", "--reports", f"{s3_bucket.uri}/reports"]
    outcomes = []
    for night in ("one", "two"):
        named = ["--run-id-prefix", night, "--result", f"{s3_bucket.uri}/{night}.json"]
        submitted = spark_on_yarn.submit(ROOT / "jobs" / "care.py", *job, *named, conf=conf, files=[policy, variables])
        containers = spark_on_yarn.cluster.containers(submitted.application)
        assert submitted.status == 0, containers[0].output[-4000:]
        (entry,) = json.loads((s3_bucket.folder / f"{night}.json").read_text())
        outcomes.append(entry["outcome"])
        logs = [log.read_text(errors="replace") for each in containers for log in each.logs.iterdir()]
        assert not any(SECRET_KEY in text for text in (submitted.log, *logs))
    assert outcomes == ["verified", "unchanged"], containers[0].output[-4000:]
    assert {each.outcome for each in load_history(f"{s3_bucket.uri}/reports")} == {"verified", "unchanged"}


def wait_for(ready: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert time.monotonic() < deadline, f"expected {what} within {SECONDS} s, found none"
        time.sleep(0.2)
