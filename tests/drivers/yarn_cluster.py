"""A YARN cluster as a process: a resource manager and a node manager of Hadoop's own MiniYARNCluster, on loopback.

Files reach containers through HDFS alone. A container is a process below the node manager's folder, and its environment
has nothing of the tests.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from getpass import getuser
from os import pathsep
from pathlib import Path
from socket import gethostname
from typing import Any, Final
from urllib.request import Request, urlopen

import psutil  # type: ignore[import-untyped]
from tests.drivers.hdfs_cluster import HdfsCluster, write_settings
from tests.drivers.json_lines import Engine
from tests.drivers.toolchain import SHORT_LIVED, compile_java, fetch_closure, program

# Not the shaded hadoop-client-minicluster: its resource manager answers requests with other fields, as half of JAXB is
# relocated there. JUnit makes the folder.
_CLUSTER: Final = ("org.apache.hadoop:hadoop-minicluster:3.4.2", "junit:junit:4.13.2")
_SETTINGS: Final = {
    "yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.nodemanager.resource.cpu-vcores": "4",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # By default a tenth of the cluster may be masters of applications: on this one, none.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    # Readers of Arrow and Parquet reserve far more addresses than they use.
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.resourcemanager.am.max-attempts": "1",
    # A test looks into the folder of a container that has ended.
    "yarn.nodemanager.delete.debug-delay-sec": "3600",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
}
_START_SECONDS: Final = 120.0
_ANSWER_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Container:
    """What is left of a container: its folder, and that of its logs."""

    name: str
    folder: Path
    logs: Path

    @property
    def launch_script(self) -> str:
        """The copy that the node manager leaves among the logs; the script itself is gone with the process."""
        return (self.logs / "launch_container.sh").read_text(errors="replace")

    @property
    def output(self) -> str:
        return "\n".join(log.read_text(errors="replace") for log in sorted(self.logs.glob("std*")))


class YarnCluster(Engine):
    """A running cluster, with a file system. Its memory is 4 GB."""

    def __init__(self, hdfs: HdfsCluster) -> None:
        class_path = tuple(map(str, fetch_closure("minicluster-3.4.2", _CLUSTER)))
        classes = compile_java(Path(__file__).parent / "java_yarn", class_path)
        self._root = Path(self._folder("nightkeep-yarn-"))
        java = program("java", "openjdk-17-jdk-headless")
        self.file_system = f"hdfs://{hdfs.authority}"
        # A node manager binds to the name of the machine.
        hosts = self._root / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {gethostname()}\n")
        settings = {**_SETTINGS, "fs.defaultFS": self.file_system}
        command = [
            *(java, "-Xmx512m", *SHORT_LIVED, "--add-opens=java.base/java.lang=ALL-UNNAMED"),
            *(f"-Djava.io.tmpdir={self._root}", f"-Dtest.build.data={self._root}", f"-Djdk.net.hosts.file={hosts}"),
            *("-cp", pathsep.join((str(classes), *class_path)), "MiniYarn"),
            *(f"{name}={value}" for name, value in settings.items()),
        ]
        # Containers inherit a few of its variables, PATH among them.
        java_home = str(Path(java).resolve().parents[1])
        environment = {"PATH": "/usr/bin:/bin", "JAVA_HOME": java_home, "LANG": "C.UTF-8", "TZ": "UTC"}
        self._start(command, timeout=_START_SECONDS, env=environment)
        places: Mapping[str, str] = self._lines.request("places", {})
        self.web = f"http://{places['yarn.resourcemanager.webapp.address']}"
        self._local, self._logs = (Path(places[f"yarn.nodemanager.{name}-dirs"]) for name in ("local", "log"))
        self._addresses = {name: value for name, value in places.items() if name.startswith("yarn.resourcemanager")}

    @cached_property
    def configuration(self) -> Path:
        """The folder of a client: HADOOP_CONF_DIR."""
        folder = self._root / "configuration"
        folder.mkdir()
        write_settings(folder / "core-site.xml", {"fs.defaultFS": self.file_system})
        write_settings(folder / "yarn-site.xml", self._addresses)
        return folder

    def applications(self) -> Sequence[Mapping[str, Any]]:
        """What the resource manager lists, the oldest first."""
        listed = self._ask("/ws/v1/cluster/apps")["apps"] or {"app": []}
        return sorted(listed["app"], key=lambda each: int(each["startedTime"]))

    def application(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._ask(f"/ws/v1/cluster/apps/{name}")["app"]
        return found

    def kill(self, application: str) -> None:
        """End it as the provider of Airflow does: by a request for another state."""
        self._ask(f"/ws/v1/cluster/apps/{application}/state", put={"state": "KILLED"})

    def containers(self, application: str) -> Sequence[Container]:
        """Those that were launched, that of the application's master first."""
        logs = sorted((self._logs / application).glob("container_*"))
        folder = self._local / "usercache" / getuser() / "appcache" / application
        return [Container(each.name, folder / each.name, each) for each in logs]

    def processes(self, application: str) -> Sequence[int]:
        """The ids of its containers' processes that run."""
        return _below(self._local, application)

    def stop(self) -> None:
        self._lines.stop()
        # Containers are processes of their own, which outlive their node manager.
        for pid in _below(self._local):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().stop()

    def _ask(self, path: str, *, put: Mapping[str, str] | None = None) -> Any:
        body = None if put is None else json.dumps(put).encode()
        request = Request(
            f"{self.web}{path}", body, {"Content-Type": "application/json"}, method="PUT" if put else "GET"
        )
        with urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            return json.load(answer)


def _below(folder: Path, part: str = "") -> list[int]:
    """Processes that work in the folder, or in one whose path has `part` in it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            place = process.cwd()
            if place.startswith(str(folder)) and part in place:
                found.append(process.pid)
    return found
