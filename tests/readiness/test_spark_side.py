"""What a driver lacks: of Java, spark-submit, and connectors, by real files and a real process of Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nightkeep.readiness import spark_side
from nightkeep.readiness.finding import Concern, Finding, Readiness
from nightkeep.readiness.spark_side import find_spark


def row(check: str, environ: dict[str, str], *schemes: str) -> Finding:
    (found,) = (each for each in find_spark(environ, schemes) if each.check == check)
    return found


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def distribution(folder: Path, *jars: str) -> dict[str, str]:
    """A Spark with these jars, as a cluster has one; its environment has the interpreter of this one."""
    program(folder / "bin", "spark-submit", "exit 1")
    (folder / "jars").mkdir()
    for jar in jars:
        (folder / "jars" / f"{jar}.jar").touch()
    return {"SPARK_HOME": str(folder), "PATH": f"{folder}/bin"}


@pytest.mark.slow
def test_this_environment_can_start_spark() -> None:
    found = find_spark(os.environ)
    assert {each.status for each in found} <= {Readiness.PASSED, Readiness.NOT_APPLICABLE}, list(map(str, found))
    assert row("spark-submit", dict(os.environ)).found.startswith("Spark 4.1.4 at ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "status", "found"),
    [
        ("echo 'openjdk version \"17.0.9\" 2023-10-17' >&2", "passed", "Java 17 at"),
        ("echo 'java version \"1.8.0_392\"' >&2", "failed", "Java 8 at"),
        ("exit 1", "failed", "none that runs at"),
    ],
)
def test_java_is_asked_for_its_release(tmp_path: Path, script: str, status: str, found: str) -> None:
    program(tmp_path / "bin", "java", script)
    java = row("java", {"JAVA_HOME": str(tmp_path)})
    assert (java.status, java.found) == (status, f"{found} {tmp_path}/bin/java")
    assert (java.remedy is None) == (status == "passed")


def test_no_java_is_missing(tmp_path: Path) -> None:
    java = row("java", {"PATH": str(tmp_path)})
    assert (java.status, java.found, java.concerns) == (Readiness.MISSING, "none on the path", Concern.RUN)
    assert str(java).startswith("Spark: expected Java 17 or later, found none on the path; install Java 17")


def test_a_spark_of_another_release_than_pyspark_fails(tmp_path: Path) -> None:
    submit = row("spark-submit", distribution(tmp_path / "spark", "spark-core_2.12-3.5.8"))
    assert submit.status is Readiness.FAILED and submit.found.startswith("Spark 3.5.8 at ")
    assert submit.expected == "spark-submit of Spark 4.1, as pyspark is"
    same = row("spark-submit", distribution(tmp_path / "same", "spark-core_2.13-4.1.9"))
    assert same.status is Readiness.PASSED


def test_a_driver_that_is_submitted_has_the_pyspark_of_its_distribution(tmp_path: Path) -> None:
    environ = distribution(tmp_path / "spark", "spark-core_2.12-3.5.8")
    (tmp_path / "spark/python/pyspark").mkdir(parents=True)
    (tmp_path / "spark/python/pyspark/version.py").write_text('__version__: str = "3.5.8"\n')
    found = {each.check: each for each in find_spark(environ, submitted=True)}
    assert found["spark-submit"].status is Readiness.PASSED and found["extra spark"].status is Readiness.PASSED
    assert row("spark-submit", environ).status is Readiness.FAILED


def test_no_spark_at_all_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_side, "find_spec", lambda name: None)
    submit = row("spark-submit", {"PATH": str(tmp_path)})
    assert (submit.status, submit.found) == (Readiness.MISSING, "none") and "SPARK_HOME" in str(submit.remedy)


def test_tables_in_buckets_need_the_connector_of_sparks_hadoop(tmp_path: Path) -> None:
    spark = ("spark-core_2.13-4.1.4", "hadoop-client-api-3.4.2")
    bare = distribution(tmp_path / "bare", *spark)
    assert not [each for each in find_spark(bare, ["", "file"]) if each.check == "connector"]
    missing = row("connector", bare, "s3", "s3a")
    assert (missing.status, missing.concerns, missing.subject) == (Readiness.MISSING, Concern.TABLES, "hadoop-aws")
    assert "org.apache.hadoop:hadoop-aws:3.4.2" in str(missing.remedy)
    assert row("connector", distribution(tmp_path / "has", *spark, "hadoop-aws-3.4.2"), "s3").status == "passed"
    other = row("connector", distribution(tmp_path / "other", *spark, "hadoop-aws-3.3.4"), "s3")
    assert (other.status, other.found) == (Readiness.FAILED, "hadoop-aws 3.3.4 among Spark's jars")


def test_a_connector_in_the_settings_of_the_deployment_is_seen(tmp_path: Path) -> None:
    environ = distribution(tmp_path / "spark", "spark-core_2.13-4.1.4")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text("spark.jars.packages  org.apache.hadoop:hadoop-aws:3.4.2\n")
    found = row("connector", {**environ, "SPARK_CONF_DIR": str(tmp_path / "conf")}, "s3")
    assert (found.status, found.found) == (Readiness.PASSED, "hadoop-aws in spark.jars.packages")
    given = {**environ, "PYSPARK_SUBMIT_ARGS": "--jars /opt/jars/hadoop-aws-3.4.2.jar pyspark-shell"}
    assert row("connector", given, "s3").found == "hadoop-aws in PYSPARK_SUBMIT_ARGS"


@pytest.mark.slow
def test_nothing_heavy_is_imported() -> None:
    script = (
        "import os, sys; from nightkeep.readiness.spark_side import find_spark; find_spark(os.environ, ['s3']);"
        "print([each for each in ('pyspark', 'pyarrow', 'great_expectations', 'numpy') if each in sys.modules])"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "jobs")}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
