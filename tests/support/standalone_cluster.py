"""A Spark standalone cluster of processes on loopback: one master, N workers, ended by their own ids.

Every wait is bounded, and whatever was started is ended, also where the start itself fails.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from tests.drivers import class_archive

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
SPARK_CLASS = Path(sys.executable).with_name("spark-class")
SPARK_SUBMIT = Path(sys.executable).with_name("spark-submit")
START_SECONDS = 60
STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Standalone:
    """A running cluster: its `spark://` address, its status page and the ids of its processes."""

    master: str
    status_url: str
    pids: tuple[int, ...]

    def status(self) -> dict[str, Any]:
        """What the master says of its workers and applications."""
        with urlopen(self.status_url, timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def standalone(
    folder: Path, *, workers: int = 2, cores: int = 1, environment: Mapping[str, str] | None = None
) -> Iterator[Standalone]:
    """A cluster that writes below `folder`; each worker has `cores` and 1 GiB."""
    port, status_port = _free_port(), _free_port()
    environ = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        **(environment or {}),
    }
    cluster = f"spark://127.0.0.1:{port}"
    master = [MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(status_port)]
    size = ["--cores", str(cores), "--memory", "1g"]
    with ExitStack() as stack:
        pids = [stack.enter_context(_process(folder / "master", master, environ))]
        running = Standalone(cluster, f"http://127.0.0.1:{status_port}/json/", tuple(pids))
        _wait(lambda: _reachable(running), f"a master at {running.status_url}", folder)
        for i in range(workers):
            place = folder / f"worker-{i}"
            worker = [WORKER, "--host", "127.0.0.1", *size, "--work-dir", str(place), cluster]
            pids.append(stack.enter_context(_process(place, worker, environ)))
        _wait(lambda: _alive(running) == workers, f"{workers} workers at {running.status_url}", folder)
        yield Standalone(running.master, running.status_url, tuple(pids))


def submit(cluster: Standalone, script: Path, *arguments: str, conf: Mapping[str, str] | None = None) -> str:
    """Run a Python script on the cluster, in client mode; its standard output, once it ended well."""
    options = {
        "spark.log.level": "WARN",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.extraJavaOptions": " ".join(class_archive.options()),
    }
    settings = [x for key, value in (options | dict(conf or {})).items() for x in ("--conf", f"{key}={value}")]
    command = [str(SPARK_SUBMIT), "--master", cluster.master, *settings, str(script), *arguments]
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def _process(folder: Path, arguments: list[str], environ: Mapping[str, str]) -> Iterator[int]:
    folder.mkdir(parents=True)
    own = {**environ, "SPARK_LOCAL_DIRS": str(folder / "local")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(SPARK_CLASS), *arguments], cwd=folder, env=own, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(ready: Callable[[], bool], what: str, folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            logs = "\n".join(log.read_text(errors="replace")[-2000:] for log in folder.glob("*/log"))
            raise TimeoutError(f"expected {what} within {START_SECONDS} s, found none\n{logs}")
        time.sleep(0.2)


def _reachable(cluster: Standalone) -> bool:
    try:
        return bool(cluster.status()["status"] == "ALIVE")
    except (URLError, OSError):
        return False


def _alive(cluster: Standalone) -> int:
    return sum(worker["state"] == "ALIVE" for worker in cluster.status()["workers"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
