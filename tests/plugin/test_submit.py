"""Ways to submit a job: what a driver elsewhere is given, what stays here, and operators of a team's own."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import BaseOperator
from tests.support.airflow_home import ROOT, airflow_home

from nightkeep.model import Outcome
from nightkeep.places import write_file
from nightkeep.records.job_result import JobEnd, at_work_file, note_end
from nightkeep_airflow.job import Job, Submit
from nightkeep_airflow.operators import CareOperator
from nightkeep_airflow.releases import AirflowException, AirflowFailException
from nightkeep_airflow.spark_submit import SparkJob

SECRET = "f3c1a9c2b7d84e55"
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_ENDPOINT_URL": "https://store.example",
    "PYICEBERG_CATALOG__LAKE__URI": "https://catalog.example",
    "GOOGLE_APPLICATION_CREDENTIALS": "/opt/airflow/key.json",
    "PYTHONPATH": "/only/here",
    "PYSPARK_PYTHON": "/only/here/python",
    "NIGHTKEEP_JOBS": "/only/here/jobs",
}
POLICY, REPORTS = "s3://lake/policies/tables.yaml", "s3://lake/reports"


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


def connection(monkeypatch: pytest.MonkeyPatch, master: str, mode: str | None = None, **extra: object) -> None:
    extras = {**({"deploy-mode": mode} if mode else {}), **extra}
    made = {"conn_type": "spark", "host": master, "extra": extras}
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTKEEP_SPARK", json.dumps(made))


def context(try_number: int = 1) -> Any:
    ti = SimpleNamespace(try_number=try_number, max_tries=0, map_index=3)
    return {"dag_run": SimpleNamespace(dag_id="nightly", run_id="manual"), "ti": ti}


def spark_job(jobs: str = "/opt/jobs", policy: str = POLICY, reports: str = REPORTS, **more: Any) -> SparkJob:
    """What is submitted for a table, with a job made in place of the operator's, which would ask the store."""
    job = Job(
        script=f"{jobs}/care.py",
        arguments=("--policy", policy, "--reports", reports, "--result", f"{reports}/~results/1.json"),
        name="nightkeep",
        tables=("t",),
        policy=policy,
        reports=reports,
        result=f"{reports}/~results/1.json",
        mark="0123abcd",
        task_memory=2 << 30,
        environment={name: VARIABLES[name] for name in list(VARIABLES)[:4]},
    )
    operator = CareOperator(
        task_id="care", jobs=jobs, policy=policy, reports=reports, conn_id="nightkeep_spark", **more
    )
    made = operator._spark_submit()(job)
    assert isinstance(made, SparkJob)
    return made


def command(job: SparkJob) -> list[str]:
    built: list[str] = job._get_hook()._build_spark_submit_command(job.application)
    return built


def settings(words: list[str]) -> dict[str, str]:
    pairs = [words[n + 1] for n, word in enumerate(words) if word == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def environment(job: SparkJob) -> Mapping[str, str]:
    """That of the process spark-submit."""
    environ: Mapping[str, str] = job._get_hook().submit.keywords["env"]  # type: ignore[attr-defined]
    return environ


@contextmanager
def submitted(job: SparkJob) -> Iterator[list[Path]]:
    """The files of this machine that go with a submission, while it lasts."""
    with job._secrets():
        words = command(job)
        files = words[words.index("--files") + 1].split(",") if "--files" in words else []
        yield [Path(file.removeprefix("file://")) for file in files]


class TestYarn:
    @pytest.fixture(autouse=True)
    def _yarn(self, environ: None, monkeypatch: pytest.MonkeyPatch) -> None:
        connection(monkeypatch, "yarn", "cluster")

    def test_addresses_stay_as_they_are_given(self) -> None:
        words = command(spark_job("s3://lake/jobs", archives="s3://lake/env.tar.gz#environment", py_files="s3://x.zip"))
        assert "s3://lake/jobs/care.py" in words and words[words.index("--policy") + 1] == POLICY
        assert words[words.index("--archives") + 1] == "s3://lake/env.tar.gz#environment"
        assert words[words.index("--py-files") + 1] == "s3://x.zip"

    def test_what_is_only_here_stays_here(self) -> None:
        job = spark_job(env_vars={"MODE": "blue"})
        words, environ = command(job), environment(job)
        assert not [word for word in words if "/only/here" in word or "/opt/airflow" in word]
        assert {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}.isdisjoint(environ)
        assert environ["PATH"].startswith(os.path.dirname(sys.executable))
        found = settings(words)
        assert found["spark.yarn.appMasterEnv.MODE"] == found["spark.executorEnv.MODE"] == "blue"
        assert "spark.yarn.appMasterEnv.PATH" not in found and "spark.executorEnv.PYTHONPATH" not in found

    def test_credentials_are_in_a_file_that_only_its_user_reads(self) -> None:
        job = spark_job(files="s3://lake/more.json", env_vars={"MY_PASSWORD": SECRET, "MODE": "blue"})
        with submitted(job) as (given, file):
            assert given == Path("s3://lake/more.json")
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            held = json.loads(file.read_text())
            found = settings(command(job))
            assert found["spark.yarn.appMasterEnv.NIGHTKEEP_ENVIRONMENT_FILE"] == file.name
        assert not file.exists()
        assert held["AWS_SECRET_ACCESS_KEY"] == held["MY_PASSWORD"] == SECRET and held["MODE"] == "blue"
        assert not [word for word in command(job) if SECRET in word]

    def test_one_attempt_and_the_mark_of_the_task(self) -> None:
        found = settings(command(spark_job()))
        assert (found["spark.yarn.maxAppAttempts"], found["spark.yarn.tags"]) == ("1", "0123abcd")
        given = settings(command(spark_job(conf={"spark.yarn.maxAppAttempts": "2"})))
        assert given["spark.yarn.maxAppAttempts"] == "2"

    def test_the_provider_does_not_refuse_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It would, by its defaults: `durable` asks for the ResourceManager's address."""
        job = spark_job()
        assert (job.durable, job._yarn_track_via_rm_api) == (False, False)
        connection(monkeypatch, "yarn", "cluster", yarn_resourcemanager_webapp_address="http://manager:8088/")
        tracked = spark_job()
        assert tracked._yarn_track_via_rm_api and "spark.yarn.submit.waitAppCompletion=false" in command(tracked)

    @pytest.mark.parametrize(
        ("places", "refused"),
        [
            ({"policy": "/opt/tables.yaml"}, "policy: expected the address of a store, as the driver runs in the"),
            ({"reports": "/opt/reports"}, "reports: expected the address of a store, as the driver runs in the"),
        ],
    )
    def test_a_path_of_this_machine_is_refused(self, places: dict[str, str], refused: str) -> None:
        with pytest.raises(AirflowFailException) as raised:
            spark_job(**places)
        assert str(raised.value).startswith(refused)
        spark_job(**{name: f"file://{path}" for name, path in places.items()})

    def test_executors_of_a_driver_here_have_their_own_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connection(monkeypatch, "yarn")
        monkeypatch.delenv("PYSPARK_PYTHON")
        job = spark_job(policy="/opt/tables.yaml", reports="/opt/reports", env_vars={"MODE": "blue"})
        environ, found = environment(job), settings(command(job))
        assert environ["PYSPARK_DRIVER_PYTHON"] == sys.executable and "PYSPARK_PYTHON" not in environ
        assert environ["AWS_SECRET_ACCESS_KEY"] == SECRET and environ["MODE"] == "blue"
        assert found["spark.executorEnv.MODE"] == "blue" and "spark.yarn.tags" not in found


def test_a_standalone_cluster_runs_no_driver(environ: None, monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "spark://m:7077", "cluster")
    with pytest.raises(AirflowFailException, match="expected deploy mode client, found cluster"):
        spark_job()


def in_process(job: Job) -> BaseOperator:
    """A job as a process of this machine, without Spark: what tables need none for."""
    words = [sys.executable, job.script, *job.arguments]
    quoted = " ".join(f"'{word}'" for word in words)
    environ = {**job.environment, "PYTHONPATH": str(ROOT / "jobs")}
    return BashOperator(task_id="job", bash_command=quoted, env=environ, append_env=True)


class Ends(BaseOperator):
    """An operator that does what it is told in place of a job, and ends as it is told."""

    def __init__(self, *, job: Job, end: JobEnd | None, writes: bool, raises: bool = True, **more: Any) -> None:
        super().__init__(**more)
        self.job, self.end, self.writes, self.raises = job, end, writes, raises

    def execute(self, context: Any) -> None:
        if self.writes:
            entry = {"table": "t", "operation": "optimize", "outcome": "unchanged"}
            write_file(self.job.result, json.dumps([entry]))
        if self.end is not None:
            note_end(self.job.result, self.end)
        if self.raises:
            raise RuntimeError("pod status: unknown")
        write_file(at_work_file(self.job.result), "t")


def ended(tmp_path: Path, end: JobEnd | None, *, writes: bool) -> list[dict[str, object]]:
    def submit(job: Job) -> BaseOperator:
        return Ends(task_id="job", job=job, end=end, writes=writes)

    return own_way(tmp_path, submit).execute(context())


def own_way(reports: Path, submit: Submit, task_id: str = "care") -> CareOperator:
    places = {"jobs": "/jobs", "policy": str(reports / "tables.yaml"), "reports": str(reports)}
    return CareOperator(task_id=task_id, tables=["t"], submit=submit, **places)


class TestOfOnesOwn:
    @pytest.mark.slow
    def test_a_process_of_this_machine(self, tmp_path: Path) -> None:
        airflow = airflow_home(tmp_path, ["t.one", "t.two"])
        airflow.script(care={"t.one": ["verified"], "t.two": ["unchanged"]})
        care = CareOperator(
            task_id="care",
            jobs=str(tmp_path / "jobs"),
            policy=str(tmp_path / "tables.yaml"),
            reports=str(tmp_path / "reports"),
            tables=["t.one", "t.two"],
            submit=in_process,
        )
        found = {str(entry["table"]): entry["outcome"] for entry in care.execute(context())}
        assert found == {"t.one": Outcome.VERIFIED, "t.two": Outcome.UNCHANGED}
        assert not care.spark

    def test_a_status_that_was_lost_is_that_of_the_job(self, tmp_path: Path) -> None:
        (found,) = ended(tmp_path, JobEnd(0), writes=True)
        assert found["outcome"] == Outcome.UNCHANGED

    def test_what_no_retry_mends_is_known_by_the_job(self, tmp_path: Path) -> None:
        with pytest.raises(AirflowFailException, match=r"the job did not start: tables.yaml:1: expected another"):
            ended(tmp_path, JobEnd(2, "tables.yaml:1: expected another"), writes=False)

    def test_a_job_that_was_ended_is_tried_again(self, tmp_path: Path) -> None:
        for end in (None, JobEnd(1, "the disk is full")):
            with pytest.raises((RuntimeError, AirflowException), match="pod status: unknown") as raised:
                ended(tmp_path, end, writes=True)
            assert not isinstance(raised.value, AirflowFailException)

    def test_a_driver_that_was_lost_is_not_taken_for_one_that_ended(self, tmp_path: Path) -> None:
        """spark-submit ends with 0 where Kubernetes has a driver's pod fail without a status of its container."""

        def submit(job: Job) -> BaseOperator:
            return Ends(task_id="job", job=job, end=None, writes=True, raises=False)

        with pytest.raises(AirflowException, match="the job was at work on t, and was ended by something else"):
            own_way(tmp_path, submit).execute(context())


def test_settings_of_the_policy_go_with_the_job_below_those_of_the_dag(
    tmp_path: Path, environ: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "local[2]")
    (tmp_path / "tables.yaml").write_text(
        "version: 1\ndefaults: {spark: {spark.sql.shuffle.partitions: 64, spark.executor.cores: 2}}\n"
        "tables: [{name: t, table: 'delta:/t', task_memory: 5GB}]\n"
    )
    places = {"jobs": "/jobs", "policy": str(tmp_path / "tables.yaml"), "reports": str(tmp_path)}
    care = CareOperator(
        task_id="care", tables=["t"], conn_id="nightkeep_spark", conf={"spark.executor.cores": "1"}, **places
    )
    job = care.job("care.py", ["t"], context(), result="r")
    assert dict(job.configuration) == {"spark.executor.cores": "2", "spark.sql.shuffle.partitions": "64"}
    words = command(care._spark_submit()(job))  # type: ignore[arg-type]
    found = settings(words)
    assert (found["spark.sql.shuffle.partitions"], found["spark.executor.cores"]) == ("64", "1")
    assert words[words.index("--driver-memory") + 1] == "5120m"


def test_marks_are_of_a_task_and_not_of_a_try(tmp_path: Path) -> None:
    care, other = own_way(tmp_path, in_process), own_way(tmp_path, in_process, "other")
    first, again = (care.job("care.py", ["t"], context(n), result="r").mark for n in (1, 2))
    assert first == again != other.job("care.py", ["t"], context(), result="r").mark
