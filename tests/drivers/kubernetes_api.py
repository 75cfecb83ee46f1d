"""The API of a Kubernetes cluster as a process: fabric8's server with objects that are kept, on loopback. No pod runs.

Objects are read by requests, as kubectl does. It has no TLS: the server's own certificate names no host that clients of
Python take. A test ends a pod, as a node would.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import pathsep
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from tests.drivers.json_lines import Engine
from tests.drivers.toolchain import SHORT_LIVED, compile_java, fetch_closure, program

_SERVER: Final = ("io.fabric8:kubernetes-server-mock:7.4.0", "io.fabric8:kubernetes-client:7.4.0")
_NAMESPACE: Final = "/api/v1/namespaces/default"
_NAME: Final = "tests"
_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Change:
    """A request that was no question."""

    method: str
    path: str


class KubernetesApi(Engine):
    """A running API. `configuration` is the file of a client: KUBECONFIG."""

    def __init__(self) -> None:
        class_path = tuple(map(str, fetch_closure("kubernetes-api-7.4.0", _SERVER)))
        classes = compile_java(Path(__file__).parent / "java_kubernetes", class_path)
        scratch = self._folder("nightkeep-kubernetes-")
        java = program("java", "openjdk-17-jdk-headless")
        options = ["-Xmx256m", *SHORT_LIVED, f"-Djava.io.tmpdir={scratch}"]
        path = ["-cp", pathsep.join((str(classes), *class_path))]
        self._start([java, *options, *path, "MiniKubernetes"], timeout=_SECONDS)
        self.url = f"http://127.0.0.1:{self._found()['port']}"
        self.configuration = Path(scratch) / "kubeconfig"
        self.configuration.write_text(json.dumps(self._settings()))

    def objects(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Those of a kind, such as `pods`, in the namespace `default`."""
        found: Sequence[Mapping[str, Any]] = self._ask(f"{_NAMESPACE}/{kind}")["items"]
        return found

    def changes(self) -> Sequence[Change]:
        """What was created, changed and deleted so far, also what is gone."""
        return [Change(**each) for each in self._found()["changes"]]

    def end_pod(self, pod: Mapping[str, Any], *, exit_code: int) -> None:
        """Report, as a node does, that the pod's container has ended."""
        (container,) = pod["spec"]["containers"]
        ended = {"terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}}
        found = {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0}
        status = {
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [{**found, "ready": False, "state": ended}],
        }
        self._ask(f"{_NAMESPACE}/pods/{pod['metadata']['name']}/status", patch={"status": status})

    def delete_pod(self, pod: str) -> None:
        self._ask(f"{_NAMESPACE}/pods/{pod}", delete=True)

    def forget(self) -> None:
        """Remove all objects, and the list of changes."""
        self._lines.request("forget", {})

    def _settings(self) -> Mapping[str, Any]:
        """JSON, which is YAML as well."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": {"server": self.url}}],
            "users": [{"name": _NAME, "user": {}}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
            "current-context": _NAME,
        }

    def _found(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._lines.request("found", {})
        return found

    def _ask(self, path: str, *, patch: Mapping[str, Any] | None = None, delete: bool = False) -> Any:
        body = None if patch is None else json.dumps(patch).encode()
        method = "PATCH" if patch else "DELETE" if delete else "GET"
        request = Request(f"{self.url}{path}", body, {"Content-Type": "application/merge-patch+json"}, method=method)
        with urlopen(request, timeout=_SECONDS) as answer:
            return json.load(answer)
