"""Where the driver of a job runs -> what it needs there. What exists only here stays here: PATH, a Python, a path.

| the driver | its variables | its files |
|---|---|---|
| here (`local[*]`, a standalone cluster, deploy mode client) | those of this task | paths of this machine |
| in YARN | a file that only its user may read, and `spark.yarn.appMasterEnv` for what is no secret | in stores |
| in Kubernetes | `spark.kubernetes.driverEnv` for what is no secret, and secrets of the cluster | in stores |

Executors get what reaches stores and catalogs from the driver, with each task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from nightkeep.environment import ENVIRONMENT_FILE
from nightkeep.places import is_address
from nightkeep.redaction import is_secret
from nightkeep_airflow.job import MARK_LABEL, Job
from nightkeep_airflow.releases import AirflowFailException

_DEPLOY_MODE: Final = "spark.submit.deployMode"
_MARK_LABEL: Final = f"spark.kubernetes.driver.label.{MARK_LABEL}"
_PYTHONS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH")


class Cluster(StrEnum):
    """What gives drivers and executors their places. `LOCAL` is this machine, or a standalone cluster."""

    LOCAL = "local"
    YARN = "yarn"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class DriverSide:
    """The cluster, and whether the driver runs in it and not on this machine."""

    cluster: Cluster
    remote: bool


def side_of(connection: str, master: str, mode: object, given: Mapping[str, str]) -> DriverSide:
    """The side of a driver that a connection submits.

    `mode` is the connection's deploy mode; None leaves it to `given`, Spark's settings. Raises AirflowFailException for
    a cluster that runs no Python driver.
    """
    chosen = str(mode or given.get(_DEPLOY_MODE) or "client")
    cluster = Cluster.KUBERNETES if "k8s" in master else Cluster.YARN if master.startswith("yarn") else Cluster.LOCAL
    if chosen != "client" and cluster is Cluster.LOCAL:
        raise AirflowFailException(
            f"connection {connection}: expected deploy mode client, found {chosen}: the driver must run on this "
            "worker, as no standalone cluster runs one in Python; remove deploy-mode from the connection, or "
            f"{_DEPLOY_MODE} from Spark's settings, and the executors still run on the cluster"
        )
    return DriverSide(cluster, remote=chosen == "cluster")


def require_reachable(side: DriverSide, job: Job, settings: Mapping[str, str]) -> None:
    """Raise AirflowFailException for a driver in a cluster that would not find its files."""
    if not side.remote:
        return
    for option, place in (("policy", job.policy), ("reports", job.reports)):
        if not is_address(place):
            raise AirflowFailException(
                f"{option}: expected the address of a store, as the driver runs in the cluster, found {place}; a path "
                f"that is the same there is given as file://{os.path.abspath(place)}"
            )
    uploaded = side.cluster is Cluster.YARN or "spark.kubernetes.file.upload.path" in settings
    if not uploaded and "://" not in job.script:
        raise AirflowFailException(
            f"jobs: expected an address such as local:///opt/nightkeep/job_scripts, as the driver runs in Kubernetes, "
            f"found {job.script}; with spark.kubernetes.file.upload.path a script of this machine is uploaded"
        )


def driver_settings(side: DriverSide, job: Job, variables: Mapping[str, str], jobs: str) -> dict[str, str]:
    """Spark's settings for what the driver and the executors need. `variables` are those that the deployment gives."""
    plain = {name: value for name, value in variables.items() if not is_secret(name, value)}
    if side.cluster is Cluster.LOCAL:
        return python_path(jobs, "spark.executorEnv.PYTHONPATH")
    settings = {f"spark.executorEnv.{name}": value for name, value in plain.items()}
    if not side.remote:
        return settings
    if side.cluster is Cluster.YARN:
        plain |= {ENVIRONMENT_FILE: environment_file(job)}
        # A second attempt of the cluster would not continue behind the table at which the first one died.
        settings |= {"spark.yarn.maxAppAttempts": "1", "spark.yarn.tags": job.mark}
        return settings | {f"spark.yarn.appMasterEnv.{name}": value for name, value in plain.items()}
    plain |= {name: value for name, value in job.environment.items() if not is_secret(name, value)}
    return settings | {_MARK_LABEL: job.mark} | {f"spark.kubernetes.driverEnv.{k}": v for k, v in plain.items()}


def driver_secrets(side: DriverSide, job: Job, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that no setting may have. In YARN, with all that the driver needs: a file takes them."""
    given = {**job.environment, **variables}
    if side.cluster is Cluster.YARN:
        return given
    return {name: value for name, value in given.items() if value and is_secret(name, value)}


def environment_file(job: Job) -> str:
    """The name of the file of variables, in the driver's folder."""
    return f"nightkeep-{job.mark}.json"


def submitting_environment(side: DriverSide, environ: Mapping[str, str], jobs: str) -> dict[str, str]:
    """The whole environment of spark-submit. A driver here inherits it: it runs with PYSPARK_DRIVER_PYTHON, by default
    this task's interpreter, whose folder has spark-submit: Airflow's environment needs no pyspark where another one has
    it. YARN hands a Python and its path on to a driver in the cluster, so that these are left out then."""
    driver = environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable
    found = {**environ, "PATH": os.pathsep.join([os.path.dirname(driver), environ.get("PATH", os.defpath)])}
    if side.remote:
        return {name: value for name, value in found.items() if name not in _PYTHONS}
    if side.cluster is Cluster.LOCAL:
        found.setdefault("PYSPARK_PYTHON", driver)
    return {**found, "PYSPARK_DRIVER_PYTHON": driver, **python_path(jobs, "PYTHONPATH", environ.get("PYTHONPATH", ""))}


def python_path(jobs: str, name: str, more: str = "") -> dict[str, str]:
    """The folder of the jobs where it is a clone's, which has the package beside them; the wheel's is installed."""
    beside = [jobs] if not is_address(jobs) and Path(jobs, "nightkeep").is_dir() else []
    paths = [*beside, *filter(None, [more])]
    return {name: os.pathsep.join(paths)} if paths else {}
