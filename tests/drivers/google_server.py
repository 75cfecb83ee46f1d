"""fake-gcs-server as a process: Google Cloud Storage, on a loopback port. Its conditional writes are atomic.

It takes uploads by Google's JSON API alone, and our client sends them by the XML API. `InOtherWords` spells such a
request in the other API, its condition with it; the server decides what becomes of it.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from urllib.parse import quote, unquote, urlencode

from tests.drivers.fault_proxy import Answer, FaultProxy, Request, Way, asked_of
from tests.drivers.go_programs import go_program
from tests.drivers.toolchain import free_port, wait_until_it_listens

_MODULE = "github.com/fsouza/fake-gcs-server"
_VERSION = "v1.56.1"
_STOP_SECONDS = 60.0
_CONDITION = "x-goog-if-generation-match"
_SOURCE = "x-goog-copy-source"


@dataclass(frozen=True)
class GoogleBucket:
    """A bucket of a test: `uri` without a slash at its end."""

    name: str

    @property
    def uri(self) -> str:
        return f"gs://{self.name}"


class InOtherWords(FaultProxy):
    """A proxy before the server; a status of 503 says that it is busy."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._host = {"Host": target.removeprefix("http://")}
        self._is_forgetful = False

    def forget_conditions(self) -> None:
        """Drops the condition of writes."""
        self._is_forgetful = True

    def answer(self, request: Request) -> tuple[Answer | None, Way | None]:
        # The client encodes every sign of a key; patterns of faults have most of them as they are.
        return super().answer(replace(request, path=quote(unquote(request.path), safe="/")))

    def forward(self, request: Request) -> Answer:
        # The server goes by the host that it is asked for.
        others = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        request = replace(request, headers={**others, **self._host})
        if request.method != "PUT":
            return super().forward(request)
        stated = {name.lower(): value for name, value in request.headers.items()}
        bucket, key = (unquote(part) for part in request.path.removeprefix("/").split("/", 1))
        asked = {}
        if _CONDITION in stated and not self._is_forgetful:
            asked["ifGenerationMatch"] = stated[_CONDITION]
        if _SOURCE in stated:
            source, name = (quote(unquote(part), safe="") for part in stated[_SOURCE].removeprefix("/").split("/", 1))
            path = f"/storage/v1/b/{source}/o/{name}/rewriteTo/b/{bucket}/o/{quote(key, safe='')}"
            plain = replace(request, method="POST", headers=_JSON | self._host, body=b"{}")
            told = replace(plain, path=path, query=urlencode(asked))
        else:
            path = f"/upload/storage/v1/b/{bucket}/o"
            query = urlencode({"uploadType": "media", "name": key, **asked}, quote_via=quote)
            told = replace(request, method="POST", path=path, query=query)
        return _in_xml(super().forward(told))

    def failure(self, status: int) -> Answer:
        body = f"<?xml version='1.0'?><Error><Code>{status}</Code><Message>injected</Message></Error>"
        return Answer(status, {"Content-Type": "application/xml"}, body.encode())


_JSON = {"Content-Type": "application/json"}


def _in_xml(answer: Answer) -> Answer:
    if answer.status != 200:
        return answer
    told = json.loads(answer.body)
    told = told.get("resource", told)
    return Answer(200, {"ETag": f'"{told["etag"]}"', "x-goog-generation": str(told["generation"])}, b"")


class GoogleServer:
    """A running server; `endpoint` is for our client, and `own` for those that use the JSON API."""

    def __init__(self, own: str, endpoint: str) -> None:
        self.own, self.endpoint = own, endpoint
        self._numbers = count(1)

    def bucket(self) -> GoogleBucket:
        """A new one."""
        found = GoogleBucket(f"bucket-{next(self._numbers)}")
        body = json.dumps({"name": found.name}).encode()
        answer = asked_of(self.own, Request("POST", "/storage/v1/b", "", _JSON, body))
        if answer.status != 200:
            raise RuntimeError(f"{found.name}: expected status 200, found {answer.status}: {answer.body!r}")
        return found

    def environment(self, endpoint: str | None = None) -> Mapping[str, str]:
        """What a client finds in its environment; `endpoint` is that of a proxy, if any."""
        return {"GOOGLE_BASE_URL": endpoint or self.endpoint, "GOOGLE_BEARER_TOKEN": "none is asked for"}


@contextmanager
def serve_google() -> Iterator[GoogleServer]:
    """A server that keeps its objects in memory, ended with the context."""
    program_file = go_program(_MODULE, _VERSION)
    with tempfile.TemporaryDirectory(prefix="nightkeep-google-") as scratch:
        port, log = free_port(), Path(scratch, "log")
        own = f"127.0.0.1:{port}"
        place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", own]
        command = [str(program_file), "-backend", "memory", "-log-level", "warn", *place]
        with log.open("w") as sink:
            process = subprocess.Popen(command, cwd=scratch, stdout=sink, stderr=subprocess.STDOUT)
        try:
            wait_until_it_listens(process, port, log)
            with InOtherWords(f"http://{own}") as proxy:
                yield GoogleServer(f"http://{own}", proxy.endpoint)
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)
