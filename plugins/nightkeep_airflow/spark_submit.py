"""A Job -> an operator that submits it by spark-submit, here or to a cluster, and ends it when the task is ended."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from nightkeep.redaction import redact
from nightkeep.spark.settings import driver_memory, given_by_file
from nightkeep_airflow import cluster_jobs
from nightkeep_airflow.driver_side import (
    Cluster,
    DriverSide,
    driver_secrets,
    driver_settings,
    environment_file,
    require_reachable,
    side_of,
    submitting_environment,
)
from nightkeep_airflow.job import Job
from nightkeep_airflow.releases import AirflowFailException
from nightkeep_airflow.submitted import MARK, end

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

_MANAGER: Final = "yarn_resourcemanager_webapp_address"
OPTIONS: Final = frozenset(inspect.signature(SparkSubmitOperator.__init__).parameters) - {"self", "kwargs"}
"""The arguments of the provider's operator, of which later releases have more."""


@dataclass(frozen=True, slots=True)
class SparkSubmit:
    """The way of `spark-submit`. `options` are those of SparkSubmitOperator; `jobs` is the folder of the scripts."""

    jobs: str
    options: Mapping[str, Any]

    def __call__(self, job: Job) -> SparkJob:
        options = {name: value for name, value in self.options.items() if value is not None}
        # A retry has other result files, so that it cannot take over what an earlier try left: it ends that.
        durable = {"durable": False} if "durable" in OPTIONS else {}
        return SparkJob(task_id="spark_submit", job=job, jobs=self.jobs, **{**options, **durable})


class SparkJob(SparkSubmitOperator):
    """One submission of a Job. Every process of it has ended when `execute` returns or raises.

    Of a job in a cluster, what an earlier try of the task left running is ended first.
    """

    def __init__(self, *, job: Job, jobs: str, **options: Any) -> None:
        super().__init__(**options)
        self.job = job
        self.application, self.application_args, self.name = job.script, list(job.arguments), job.name
        self._variables: dict[str, str] = {name: str(value) for name, value in (self.env_vars or {}).items()}
        self._jobs, self._processes = jobs, uuid4().hex
        self.side = self._prepare()

    def execute(self, context: Context) -> None:
        """Submit the job and wait for its end. Raises what the provider raises for one that did not end well."""
        try:
            with self._secrets():
                self._end_in_cluster()
                super().execute(context)
        except BaseException:
            self._end_in_cluster()
            raise
        finally:
            # A driver may outlive its JVM, also after a timeout, when Airflow calls `on_kill` next.
            end(self._processes)
            self._close_output()

    def on_kill(self) -> None:
        """End spark-submit, its JVM, the driver and its workers; a cluster ends executors of a lost driver."""
        if not self.side.remote:
            end(self._processes)
            if self._hook:
                super().on_kill()
            return
        try:
            self._end_in_cluster()
            super().on_kill()
        finally:
            end(self._processes)

    def _prepare(self) -> DriverSide:
        """Settings, variables and memory for the side that the driver is on."""
        given = {**given_by_file({**os.environ, **self._variables}), **self.job.configuration, **(self.conf or {})}
        # Its variables are ours to place: the hook would put secrets among the settings.
        self.env_vars = None
        connection = super()._get_hook()._connection
        master = str(connection["master"])
        side = side_of(self._conn_id, master, connection["deploy_mode"], given)
        require_reachable(side, self.job, given)
        # The hook logs the command, which contains both.
        _require_no_secret(f"connection {self._conn_id}: the host", master)
        for table in self.job.tables:
            _require_no_secret("an address of a table", table)
        own = driver_settings(side, self.job, self._variables, self._jobs)
        self.conf = {**own, **self.job.configuration, **(self.conf or {})}
        # A session cannot set the driver's memory, as its JVM is already running. A setting of the deployment is kept.
        if self._driver_memory is None and "spark.driver.memory" not in given:
            self._driver_memory = driver_memory(master, self.job.task_memory)
        if side == DriverSide(Cluster.YARN, remote=True) and self._manager() is not None:
            self._yarn_track_via_rm_api = "yarn_track_via_rm_api" in OPTIONS
        return side

    def _get_hook(self) -> SparkSubmitHook:
        hook: SparkSubmitHook = super()._get_hook()
        environ = {**os.environ, **self._variables, MARK: self._processes}
        hook.submit = partial(hook.submit, env=submitting_environment(self.side, environ, self._jobs))  # type: ignore[method-assign]
        return hook

    @contextmanager
    def _secrets(self) -> Iterator[None]:
        """A file with the variables of a driver in YARN, as long as it is being submitted. Of a driver in Kubernetes,
        log what it has to get from the cluster."""
        secrets = driver_secrets(self.side, self.job, self._variables) if self.side.remote else {}
        if self.side.cluster is Cluster.KUBERNETES:
            self._log_left_out(secrets)
            yield
            return
        if not self.side.remote:
            yield
            return
        with TemporaryDirectory(prefix="nightkeep-") as folder:
            file = Path(folder, environment_file(self.job))
            file.touch(mode=0o600)
            file.write_text(json.dumps(secrets), encoding="utf-8")
            self.files = ",".join(filter(None, [self.files, file.as_uri()]))
            yield

    def _log_left_out(self, secrets: Mapping[str, str]) -> None:
        by_cluster = "spark.kubernetes.driver.secretKeyRef."
        left_out = sorted(name for name in secrets if f"{by_cluster}{name}" not in (self.conf or {}))
        if left_out:
            self.log.warning(
                "%s stay here, as settings of Spark are no place for secrets; a driver in Kubernetes gets them by "
                "%sNAME=SECRET:KEY, or by an identity of its service account",
                ", ".join(left_out),
                by_cluster,
            )

    def _end_in_cluster(self) -> None:
        """End what runs in the cluster under the mark of this task, as far as the cluster answers: of two jobs of one
        run, one publishes."""
        if not self.side.remote:
            return
        hook = self._hook or self._get_hook()
        try:
            if self.side.cluster is Cluster.KUBERNETES:
                namespace = str(hook._connection["namespace"] or "default")
                cluster_jobs.end_in_kubernetes(namespace, self.job.mark)
            elif manager := self._manager():
                cluster_jobs.end_in_yarn(manager, self.job.mark, getattr(hook, "_resolved_yarn_rm_auth", None))
        except (OSError, ImportError) as failure:
            self.log.warning("what an earlier try may have left in the cluster is not ended: %s", failure)

    def _close_output(self) -> None:
        """The hook leaves the pipe of spark-submit open, and several jobs may follow in one task."""
        process = getattr(self._hook, "_submit_sp", None)
        if process is not None and process.stdout is not None:
            process.stdout.close()

    def _manager(self) -> str | None:
        """The address of YARN's ResourceManager, which the connection names."""
        extra = SparkSubmitHook.get_connection(self._conn_id).extra_dejson
        address = extra.get(_MANAGER)
        return str(address).rstrip("/") if address else None


def _require_no_secret(subject: str, text: str) -> None:
    """The hook logs the command that it submits, so that no credentials may be in it."""
    if redact(text) != text:
        raise AirflowFailException(f"{subject}: expected no credentials in it, found {redact(text)}")
