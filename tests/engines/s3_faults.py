"""A loopback proxy before an S3 server that fails requests as told, makes pages small and forgets conditions.

What it changes of a request it signs anew: the server checks signatures, as every S3 does.
"""

import base64
import hashlib
import hmac
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from xml.sax.saxutils import escape, unescape

from tests.engines.s3_server import ACCESS_KEY, REGION, SECRET_KEY

_SECONDS = 60.0
_OWN = ("connection", "transfer-encoding", "accept-encoding", "keep-alive", "date", "server")
_OBJECT = re.compile(rb"<Object>.*?<Key>(.*?)</Key>.*?</Object>", re.DOTALL)


class Way(Enum):
    """What a fault does."""

    BEFORE = "the server never sees the request"
    AFTER = "the server has done what was asked"
    HALF = "half of the answer's body comes"
    PAUSED = "the request waits"


@dataclass
class S3Fault:
    """For the next `times` requests whose method and target match. A status of 0 closes the connection."""

    request: str
    way: Way
    status: int = 0
    times: int = 1
    seen: list[str] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Until a request is paused."""
        if not self.reached.wait(_SECONDS):
            raise TimeoutError(f"{self.request}: expected a request, found none in {_SECONDS:g} s")


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


class S3Faults:
    """Forwards to the server at `target`; its own address is `endpoint`. Use as a context manager."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self._faults: list[S3Fault] = []
        self._locked: dict[str, int] = {}
        self._page: int | None = None
        self._is_forgetful = False
        self._spelling: tuple[bytes, bytes] | None = None
        self.requests: list[str] = []
        """Method and target of every request, in order."""
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "S3Faults":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self._faults:
            fault.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_SECONDS)

    def fail(self, status: int, *, request: str, way: Way = Way.BEFORE, times: int = 1) -> S3Fault:
        """Answers with the status; 503 says SlowDown."""
        return self._add(S3Fault(request, way, status, times))

    def drop(self, *, request: str, way: Way = Way.AFTER, times: int = 1) -> S3Fault:
        """Closes the connection without an answer."""
        return self._add(S3Fault(request, way, 0, times))

    def cut(self, *, request: str, times: int = 1) -> S3Fault:
        """Sends half of the body that it announced."""
        return self._add(S3Fault(request, Way.HALF, 0, times))

    @contextmanager
    def paused(self, *, request: str) -> Iterator[S3Fault]:
        """Holds the next such request, before the server sees it, until the block ends; wait() for it in the block."""
        fault = self._add(S3Fault(request, Way.PAUSED))
        try:
            yield fault
        finally:
            fault.released.set()

    def pages(self, most: int) -> None:
        """Listings come in pages of so many keys."""
        self._page = most

    def forget_conditions(self) -> None:
        """Drops `If-None-Match` of writes, as stores do that do not know it."""
        self._is_forgetful = True

    def respell(self, key: str, other: str) -> None:
        """Listings have another key in place of one; it is written as XML."""
        self._spelling = (f"<Key>{key}</Key>".encode(), f"<Key>{other}</Key>".encode())

    def lock(self, key: str, *, times: int) -> None:
        """A key that is not deleted so many times, and said to be denied, whatever else a request deletes."""
        self._locked[key] = times

    def asked(self, request: str) -> int:
        """How many requests matched."""
        return sum(re.match(request, each) is not None for each in self.requests)

    def answer(self, request: Request) -> tuple[Answer | None, Way | None]:
        """What the client gets, None for a closed connection, and how."""
        fault = self._met(f"{request.method} {request.target}")
        if fault is None:
            return self._forward(request), None
        if fault.way is Way.PAUSED:
            fault.reached.set()
            fault.released.wait(_SECONDS)
            return self._forward(request), None
        if fault.way is Way.HALF:
            return self._forward(request), Way.HALF
        if fault.way is Way.AFTER:
            self._forward(request)
        return (_failure(fault.status) if fault.status else None), fault.way

    def _add(self, fault: S3Fault) -> S3Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def _met(self, request: str) -> S3Fault | None:
        """The fault that a request runs into, which counts it."""
        with self._lock:
            self.requests.append(request)
            for fault in self._faults:
                if len(fault.seen) < fault.times and re.match(fault.request, request):
                    fault.seen.append(request)
                    return fault
        return None

    def _forward(self, request: Request) -> Answer:
        changed = request
        if self._page is not None and "list-type=2" in request.query:
            changed = replace(changed, query=_with_page(request.query, self._page))
        if self._is_forgetful and request.method in ("PUT", "POST"):
            kept = {name: value for name, value in request.headers.items() if name.lower() != "if-none-match"}
            changed = replace(changed, headers=kept)
        denied: list[str] = []
        if self._locked and request.method == "POST" and request.query == "delete":
            changed, denied = self._without_locked(changed)
            if not _OBJECT.search(changed.body):
                return _with_denied(_failure(200), denied)
        answer = self._ask(changed if changed is request else _signed(changed))
        if self._spelling is not None and "list-type=2" in request.query:
            answer = replace(answer, body=answer.body.replace(*self._spelling))
        return _with_denied(answer, denied)

    def _without_locked(self, request: Request) -> tuple[Request, list[str]]:
        denied: list[str] = []

        def keep(match: re.Match[bytes]) -> bytes:
            key = unescape(match[1].decode(), {"&quot;": '"', "&apos;": "'"})
            if self._locked.get(key, 0) == 0:
                return match[0]
            self._locked[key] -= 1
            denied.append(key)
            return b""

        body = _OBJECT.sub(keep, request.body)
        sums = {name: value for name, value in request.headers.items() if not name.lower().startswith("x-amz-checksum")}
        sums = {name: value for name, value in sums.items() if name.lower() not in ("content-md5", "content-length")}
        sums["Content-MD5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
        return replace(request, body=body, headers=sums), denied

    def _ask(self, request: Request) -> Answer:
        connection = HTTPConnection(self._target, timeout=_SECONDS)
        try:
            connection.request(request.method, request.target, request.body, dict(request.headers))
            found = connection.getresponse()
            headers = {name: value for name, value in found.getheaders() if name.lower() not in _OWN}
            return Answer(found.status, headers, found.read())
        finally:
            connection.close()


def put_folder(endpoint: str, bucket: str, key: str) -> None:
    """An empty object whose name ends in `/`, as consoles and Hadoop make them for folders."""
    host = urlsplit(endpoint).netloc
    made = _signed(Request("PUT", f"/{bucket}/{quote(key)}/", "", {"Host": host, "Content-Length": "0"}, b""))
    connection = HTTPConnection(host, timeout=_SECONDS)
    try:
        connection.request(made.method, made.target, made.body, dict(made.headers))
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{key}/: expected status 200, found {answer.status}: {answer.read()!r}")
    finally:
        connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a client may be gone before its answer comes."""


def _handler(proxy: S3Faults) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
            found, way = proxy.answer(Request(self.command, parts.path, parts.query, headers, body))
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


def _with_page(query: str, most: int) -> str:
    asked = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "max-keys"]
    return urlencode([*asked, ("max-keys", str(most))], quote_via=quote, safe="")


def _failure(status: int) -> Answer:
    if status == 200:
        return Answer(200, {"Content-Type": "application/xml"}, b"<DeleteResult></DeleteResult>")
    code = "SlowDown" if status == 503 else "AccessDenied" if status == 403 else "InternalError"
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
    return Answer(status, {"Content-Type": "application/xml", "Retry-After": "0"}, body.encode())


def _with_denied(answer: Answer, keys: list[str]) -> Answer:
    errors = "".join(
        f"<Error><Key>{escape(key)}</Key><Code>AccessDenied</Code><Message>locked</Message></Error>" for key in keys
    )
    return replace(answer, body=answer.body.replace(b"</DeleteResult>", errors.encode() + b"</DeleteResult>"))


def _signed(request: Request) -> Request:
    """With a signature of version 4 for what the request has become (AWS: create a signed AWS API request)."""
    now = datetime.now(UTC)
    day, stamp = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(request.body).hexdigest()
    ours = {"authorization", "x-amz-date", "x-amz-content-sha256"}
    headers = {name: value for name, value in request.headers.items() if name.lower() not in ours}
    headers |= {"x-amz-date": stamp, "x-amz-content-sha256": digest}
    lines = {name.lower(): value.strip() for name, value in headers.items()}
    names = sorted(name for name in lines if name == "host" or name.startswith("x-amz-"))
    asked = sorted(parse_qsl(request.query, keep_blank_values=True))
    canonical = "\n".join(
        (
            request.method,
            request.path,
            urlencode(asked, quote_via=quote, safe="-_.~"),
            *(f"{name}:{lines[name]}" for name in names),
            "",
            ";".join(names),
            digest,
        )
    )
    scope = f"{day}/{REGION}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{SECRET_KEY}".encode()
    for part in (day, REGION, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}"
    headers["Authorization"] = f"{credential}, SignedHeaders={';'.join(names)}, Signature={signature}"
    return replace(request, headers=headers)
