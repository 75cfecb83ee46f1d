"""The Spark connection of a job -> AirflowFailException for one that no job can be submitted with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightkeep.redaction import redact
from nightkeep_airflow.releases import AirflowFailException

_DEPLOY_MODE: Final = "spark.submit.deployMode"


def require_no_secret(subject: str, text: str) -> None:
    """The hook logs the command that it submits, so that no credentials may be in it."""
    if redact(text) != text:
        raise AirflowFailException(f"{subject}: expected no credentials in it, found {redact(text)}")


def require_client_mode(connection: str, mode: object, settings: Mapping[str, str]) -> None:
    """A driver in the cluster could not write the result file that the task reads, nor find the policy and the jobs.

    `mode` is that of the connection; None leaves it to `settings`, Spark's own."""
    chosen = str(mode or settings.get(_DEPLOY_MODE) or "client")
    if chosen != "client":
        raise AirflowFailException(
            f"connection {connection}: expected deploy mode client, found {chosen}: the driver must run on this "
            "worker, where the policy and the result of the job are; remove deploy-mode from the connection, or "
            f"{_DEPLOY_MODE} from Spark's settings, and the executors still run on the cluster"
        )
