"""Spark on the YARN cluster: a packed environment in HDFS, and jobs that spark-submit hands over in cluster mode.

Spark's jars are on the node, as in most clusters. Of Python, a job has what the environment and its own files bring:
neither the clone nor its environment.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hdfs_native import Client
from tests.drivers import spark_submit
from tests.drivers.packed_environment import pack_environment
from tests.drivers.yarn_cluster import YarnCluster

_SECONDS: Final = 240
_CHUNK: Final = 8 << 20
_PYTHON: Final = "./environment/bin/python"
_SMALL: Final = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.instances": "1",
    "spark.driver.extraJavaOptions": spark_submit.QUICK_JVM,
    "spark.executor.extraJavaOptions": spark_submit.QUICK_JVM,
    "spark.ui.enabled": "false",
    "spark.yarn.report.interval": "200ms",
    "spark.yarn.scheduler.heartbeat.interval-ms": "500",
}


@dataclass(frozen=True, slots=True)
class Submitted:
    """What spark-submit ended with."""

    status: int
    application: str
    log: str


@dataclass(frozen=True, slots=True)
class SparkOnYarn:
    """`settings` are those of every job: where jars and environment are, and how little memory it takes."""

    cluster: YarnCluster
    settings: Mapping[str, str] = field(repr=False)

    def command(
        self, script: Path, *arguments: str, conf: Mapping[str, str] | None = None, files: Sequence[Path] = ()
    ) -> list[str]:
        """A spark-submit that ends with the application."""
        options = spark_submit.options("yarn", "cluster", {**self.settings, **(conf or {})})
        options += ["--files", ",".join(map(str, files))] if files else []
        return [spark_submit.SPARK_SUBMIT, *options, str(script), *arguments]

    def environment(self) -> Mapping[str, str]:
        """Of a process that submits."""
        return spark_submit.environment({"HADOOP_CONF_DIR": str(self.cluster.configuration)})

    def submit(
        self, script: Path, *arguments: str, conf: Mapping[str, str] | None = None, files: Sequence[Path] = ()
    ) -> Submitted:
        """Run a Python script, and wait for its end."""
        ended = subprocess.run(
            self.command(script, *arguments, conf=conf, files=files),
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        log = ended.stdout + ended.stderr
        found = re.search(r"application_\d+_\d+", log)
        return Submitted(ended.returncode, found[0] if found else "", log)


def install_spark(cluster: YarnCluster, folder: Path) -> SparkOnYarn:
    """The environment in HDFS, where everybody may read it: the node unpacks it once for all applications."""
    archive = pack_environment(folder)
    client = Client(cluster.file_system)
    with client.create(f"/{archive.name}") as writer, archive.open("rb") as source:
        while chunk := source.read(_CHUNK):
            writer.write(chunk)
    archive.unlink()
    places = {
        "spark.yarn.jars": f"local:{spark_submit.SPARK_HOME}/jars/*",
        "spark.archives": f"{cluster.file_system}/{archive.name}#environment",
        "spark.pyspark.python": _PYTHON,
        "spark.pyspark.driver.python": _PYTHON,
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
    }
    return SparkOnYarn(cluster, {**places, **_SMALL})
