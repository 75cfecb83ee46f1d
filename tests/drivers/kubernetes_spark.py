"""Spark submitted to the API of a Kubernetes cluster in which nothing runs: the pods that it asks for can be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.drivers import spark_submit
from tests.drivers.kubernetes_api import KubernetesApi

IMAGE: Final = "lake/nightkeep:1"


def command(api: KubernetesApi, mode: str, script: str, *arguments: str, conf: Mapping[str, str]) -> list[str]:
    """A spark-submit in mode `cluster` or `client`."""
    settings = {
        "spark.kubernetes.container.image": IMAGE,
        "spark.kubernetes.report.interval": "200ms",
        "spark.kubernetes.allocation.batch.delay": "200ms",
        "spark.executor.instances": "2",
        # No executor comes.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.ui.enabled": "false",
    }
    if mode == "client":
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    options = spark_submit.options(f"k8s://{api.url}", mode, {**settings, **conf})
    return [spark_submit.SPARK_SUBMIT, *options, script, *arguments]


def environment(api: KubernetesApi) -> Mapping[str, str]:
    """Of a process that submits. A driver here finds the Python of the tests; one in the cluster gets none of ours."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return spark_submit.environment({"KUBECONFIG": str(api.configuration), "PATH": path})
