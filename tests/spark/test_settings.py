"""Spark's settings: sizes from a task's memory, one log level, and the deployment's word above all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightkeep.spark.settings import (
    FEW_BYTES,
    defaults,
    driver_memory,
    given_by_deployment,
    given_by_file,
    is_local,
    jvm_options,
)

GIB = 1 << 30
CLUSTER = "spark://master:7077"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,3]", "local[*]"])
def test_a_local_master_has_its_tasks_beside_the_driver(master: str) -> None:
    assert is_local(master)
    assert driver_memory(master, GIB) == "2048m"
    assert driver_memory(master, 5 * GIB) == "5120m"
    assert not [name for name in defaults(master, GIB, {}, submitted=True) if name.startswith("spark.executor.")]


@pytest.mark.parametrize("master", [CLUSTER, "yarn", "k8s://https://host", "local-cluster[2,1,1024]"])
def test_executors_have_a_tasks_memory_in_their_heap_and_beside_it(master: str) -> None:
    assert not is_local(master)
    assert driver_memory(master, 5 * GIB) == "2048m"
    found = defaults(master, 3 * GIB, {}, submitted=True)
    sizes = ("spark.executor.cores", "spark.executor.memory", "spark.executor.memoryOverhead")
    assert [found[name] for name in sizes] == ["1", "3072m", "3072m"]
    small = defaults(master, 1 << 28, {}, submitted=True)
    assert [small[name] for name in sizes] == ["1", "1024m", "384m"]
    assert "spark.driver.memory" not in found


def test_executors_of_several_cores_have_as_much_for_each() -> None:
    found = defaults(CLUSTER, 2 * GIB, {"spark.executor.cores": "4"}, submitted=True)
    assert (found["spark.executor.memory"], found["spark.executor.memoryOverhead"]) == ("8192m", "8192m")
    assert "spark.executor.cores" not in found


@pytest.mark.parametrize("submitted", [True, False])
@pytest.mark.parametrize("master", ["local[2]", CLUSTER])
def test_what_the_deployment_states_stands(master: str, submitted: bool) -> None:
    ours = defaults(master, 2 * GIB, {}, submitted=submitted)
    for name in ours:
        assert name not in defaults(master, 2 * GIB, {name: "1"}, submitted=submitted)
    assert {"spark.ui.enabled", "spark.eventLog.enabled", "spark.log.level"} <= set(ours)


def test_a_jobs_log_has_warnings_and_a_commands_answer_has_none() -> None:
    levels = [defaults("local[2]", GIB, {}, submitted=submitted)["spark.log.level"] for submitted in (True, False)]
    assert levels == ["WARN", "ERROR"]


CONF = """\
# a comment
spark.ui.enabled     true
spark.eventLog.enabled=true
  spark.eventLog.dir : /events
spark.driver.extraJavaOptions -Da=b -Dc=d
"""


def test_the_file_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text(CONF)
    expected = {
        "spark.ui.enabled": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": "/events",
        "spark.driver.extraJavaOptions": "-Da=b -Dc=d",
    }
    assert given_by_file({"SPARK_CONF_DIR": str(tmp_path / "conf")}) == expected
    assert given_by_file({"SPARK_HOME": str(tmp_path)}) == expected
    assert given_by_file({"SPARK_CONF_DIR": str(tmp_path)}) == given_by_file({}) == {}


def test_arguments_of_pyspark_stand_above_the_file(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 1g\nspark.app.name file\n")
    arguments = "--driver-memory 7g --conf 'spark.x=a b' --total-executor-cores 3 pyspark-shell"
    environ = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": arguments}
    assert given_by_deployment(environ) == {
        "spark.driver.memory": "7g",
        "spark.app.name": "file",
        "spark.x": "a b",
        "spark.cores.max": "3",
    }


FEW, MANY = FEW_BYTES, FEW_BYTES + 1


def test_a_session_that_reads_few_bytes_has_a_jvm_that_is_quick_to_start() -> None:
    assert "Serial" in jvm_options("local[2]", FEW, {}, {})["spark.driver.extraJavaOptions"]
    assert jvm_options("local[2]", MANY, {}, {}) == jvm_options("local[2]", None, {}, {}) == {}
    # On a cluster, the driver only coordinates, and may do so for long.
    assert jvm_options(CLUSTER, FEW, {}, {}) == {}


def test_a_jvm_for_any_size_reads_an_archive_of_classes() -> None:
    few, many = (jvm_options("local[2]", size, {}, {}, archive=("-XX:A", "-XX:B")) for size in (FEW, None))
    assert many == {"spark.driver.extraJavaOptions": "-XX:A -XX:B"}
    assert few["spark.driver.extraJavaOptions"].endswith(" -XX:A -XX:B")
    assert jvm_options(CLUSTER, FEW, {}, {}, archive=("-XX:A",)) == {}
    assert jvm_options("local[2]", FEW, {}, {"SPARK_SUBMIT_OPTS": "-Xss2m"}, archive=("-XX:A",)) == {}


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_a_jvm_with_settings_of_its_own_keeps_them(name: str) -> None:
    assert jvm_options("local[2]", FEW, {name: "-XX:+UseG1GC"}, {}) == {}


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_jvm_with_variables_of_its_own_keeps_them(name: str) -> None:
    assert jvm_options("local[2]", FEW, {}, {name: "-XX:+UseG1GC"}) == {}
    assert jvm_options("local[2]", FEW, {}, {name: ""}) != {}


def test_java_options_of_the_command_line_are_the_drivers() -> None:
    environ = {"PYSPARK_SUBMIT_ARGS": "--driver-java-options '-XX:+UseG1GC -Da=b' pyspark-shell"}
    assert given_by_deployment(environ) == {"spark.driver.extraJavaOptions": "-XX:+UseG1GC -Da=b"}
