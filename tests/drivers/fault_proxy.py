"""A loopback HTTP proxy that fails requests as told: statuses before or after forwarding, lost answers, pauses."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

SECONDS = 60.0
_OWN = ("connection", "transfer-encoding", "accept-encoding", "keep-alive", "server")


class Way(Enum):
    """When a fault comes."""

    BEFORE = "the server never sees the request"
    AFTER = "the server has done what was asked"
    HALF = "half of the answer's body comes"


@dataclass
class Fault:
    """For the next `times` requests whose method and target match. A status of 0 closes the connection, none pauses.

    `seen` has the requests that it met.
    """

    request: str
    way: Way
    status: int | None = 0
    times: int = 1
    seen: list[str] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Until a request is paused."""
        if not self.reached.wait(SECONDS):
            raise TimeoutError(f"{self.request}: expected a request, found none in {SECONDS:g} s")

    def release(self) -> None:
        self.released.set()


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class FaultProxy:
    """Forwards to the server at `target`; its own address is `endpoint`. Use as a context manager."""

    paused_seconds = SECONDS
    """For how long a request is held at most."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self.requests: list[str] = []
        """Method and target of every request, in order."""
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self._faults:
            fault.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(SECONDS)

    def fail(self, status: int, *, request: str, way: Way = Way.BEFORE, times: int = 1) -> Fault:
        """Answers with the status."""
        return self._add(Fault(request, way, status, times))

    def drop(self, *, request: str, way: Way = Way.AFTER, times: int = 1) -> Fault:
        """Closes the connection without an answer."""
        return self._add(Fault(request, way, 0, times))

    def cut(self, *, request: str, times: int = 1) -> Fault:
        """Sends half of the body that it announced."""
        return self._add(Fault(request, Way.HALF, 0, times))

    @contextmanager
    def paused(self, *, request: str, way: Way = Way.BEFORE) -> Iterator[Fault]:
        """Holds the next such request until the block ends, or its fault is released; wait() for it in the block."""
        fault = self._add(Fault(request, way, None))
        try:
            yield fault
        finally:
            fault.release()

    def asked(self, request: str) -> int:
        """How many requests matched."""
        return sum(re.match(request, each) is not None for each in self.requests)

    def answer(self, request: Request) -> tuple[Answer | None, Way | None]:
        """What the client gets, None for a closed connection, and by which fault."""
        fault = self._met(f"{request.method} {request.target}")
        if fault is None:
            return self.forward(request), None
        if fault.status is None:
            found = self.forward(request) if fault.way is Way.AFTER else None
            fault.reached.set()
            fault.released.wait(self.paused_seconds)
            return found or self.forward(request), None
        if fault.way is Way.HALF:
            return self.forward(request), Way.HALF
        if fault.way is Way.AFTER:
            self.forward(request)
        return (self.failure(fault.status) if fault.status else None), fault.way

    def forward(self, request: Request) -> Answer:
        """What the server says."""
        found = asked_of(self._target, request)
        # The proxy's own server says the time of its answer.
        return replace(found, headers=_passed_on(found.headers, without="date"))

    def failure(self, status: int) -> Answer:
        """What a server of the kind says with that status."""
        raise NotImplementedError

    def _add(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def _met(self, request: str) -> Fault | None:
        """The fault that a request runs into, which counts it."""
        with self._lock:
            self.requests.append(request)
            for fault in self._faults:
                if len(fault.seen) < fault.times and re.match(fault.request, request):
                    fault.seen.append(request)
                    return fault
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a client may be gone before its answer comes."""


def _handler(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            asked = Request(self.command, parts.path, parts.query, _passed_on(dict(self.headers.items())), body)
            found, way = proxy.answer(asked)
            self.close_connection = True
            if found is None:
                return
            self.send_response(found.status)
            for name, value in found.headers.items():
                if name.lower() != "content-length" or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD" and found.status != 204:
                self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(found.body[: len(found.body) // 2] if way is Way.HALF else found.body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer

        def log_message(self, *_: object) -> None:
            """Nothing: what was asked is in `requests`."""

    return Handler


def _passed_on(headers: Mapping[str, str], without: str = "") -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in (*_OWN, without)}


def asked_of(endpoint: str, request: Request) -> Answer:
    """One request, past every fault."""
    connection = HTTPConnection(urlsplit(endpoint).netloc, timeout=SECONDS)
    try:
        connection.request(request.method, request.target, request.body, dict(request.headers))
        found = connection.getresponse()
        return Answer(found.status, dict(found.getheaders()), found.read())
    finally:
        connection.close()
