"""A loopback HTTP proxy that fails requests as told: statuses before or after forwarding, lost answers, pauses."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = r"POST /v1/namespaces/[^/]+/tables/[^/]+$"
"""The request of a commit to a table, as method and path."""

_SECONDS = 60.0


class When(Enum):
    BEFORE = "before"
    """The server never sees the request."""
    AFTER = "after"
    """The server has done what was asked."""


@dataclass
class Fault:
    """For the next `times` requests whose method and path match: a status instead of the server's answer (0 closes
    the connection without one), or with no status a pause. `seen` has the requests that it met."""

    request: str
    when: When
    status: int | None
    times: int = 1
    seen: list[str] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Until a request is paused."""
        if not self.reached.wait(_SECONDS):
            raise TimeoutError(f"{self.request}: expected a request, found none in {_SECONDS:g} s")

    def release(self) -> None:
        self.released.set()


class RestFaults:
    """Forwards to `target`, an URI; its own is `uri`. Use as a context manager."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self.requests: list[str] = []
        """Method and path of every request, in order."""
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "RestFaults":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self._faults:
            fault.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_SECONDS)

    def fail(self, status: int, *, request: str = COMMIT, when: When = When.BEFORE, times: int = 1) -> Fault:
        """Answers with the status, before the server sees the request or after it has done it."""
        return self._add(Fault(request, when, status, times))

    def drop(self, *, request: str = COMMIT, when: When = When.AFTER, times: int = 1) -> Fault:
        """Closes the connection without an answer."""
        return self._add(Fault(request, when, 0, times))

    @contextmanager
    def paused(self, *, request: str = COMMIT, when: When = When.BEFORE) -> Iterator[Fault]:
        """Holds the next such request until the block ends, or its fault is released; wait() for it in the block."""
        fault = self._add(Fault(request, when, None))
        try:
            yield fault
        finally:
            fault.release()

    def _add(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def met(self, request: str) -> Fault | None:
        """The fault that a request runs into, which counts it."""
        with self._lock:
            self.requests.append(request)
            for fault in self._faults:
                if len(fault.seen) < fault.times and re.match(fault.request, request):
                    fault.seen.append(request)
                    return fault
        return None

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        connection = HTTPConnection(self._target, timeout=_SECONDS)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", "application/json"), answer.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a client may be gone before its answer comes."""


def _handler(proxy: RestFaults) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
            fault = proxy.met(f"{self.command} {urlsplit(self.path).path}")
            ask = lambda: proxy.forward(self.command, self.path, headers, body)  # noqa: E731
            found = ask() if fault is None else _failed(fault, ask)
            if found is None:
                self.close_connection = True
                return
            status, kind, content = found
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = _answer

        def log_message(self, *_: object) -> None:
            """Nothing: what was asked is in `requests`."""

    return Handler


_OWN = ("host", "connection", "content-length", "transfer-encoding", "accept-encoding")


def _failed(fault: Fault, ask: Callable[[], tuple[int, str, bytes]]) -> tuple[int, str, bytes] | None:
    if fault.status is None:
        found = ask() if fault.when is When.AFTER else None
        fault.reached.set()
        fault.released.wait(_SECONDS)
        return found or ask()
    if fault.when is When.AFTER:
        ask()
    kind = {409: "CommitFailedException", 404: "NoSuchTableException"}.get(fault.status, "ServerError")
    error = f'{{"error": {{"message": "injected", "type": "{kind}", "code": {fault.status}}}}}'
    return (fault.status, "application/json", error.encode()) if fault.status else None
