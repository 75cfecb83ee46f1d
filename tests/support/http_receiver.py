"""A receiver of HTTP requests on loopback, which notes what it gets and answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class HttpReceiver:
    """`status` is what it answers; None never answers, until `stop` is set."""

    status: int | None = 200
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/T0000-secret-part-of-the-url"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, _, body in self.requests]

    @property
    def heard(self) -> list[tuple[str, str | None]]:
        """The kind and the table of each event, in the order in which they came."""
        return [(event["event"], event["table"]) for message in self.messages for event in message["events"]]


@contextmanager
def http_receiver(status: int | None = 200) -> Iterator[HttpReceiver]:
    receiver = HttpReceiver(status)

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.requests.append((self.path, dict(self.headers), body))
            if receiver.status is None:
                receiver.stop.wait(60)
                return
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            if receiver.status in (302, 307):
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with loopback_server(Answer) as receiver.port:
        try:
            yield receiver
        finally:
            receiver.stop.set()


@contextmanager
def loopback_server(answers: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """The port on which these answers are given in the `with` block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
