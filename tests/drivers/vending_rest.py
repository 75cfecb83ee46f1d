"""A REST catalog over one of pyiceberg's SQL catalogs that gives out credentials: a token for itself (OAuth), and for a
bucket with each table. Both end after a while. Before the bucket stands a proxy that takes no others."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import CommitTableRequest
from tests.drivers.fault_proxy import Answer, Request
from tests.drivers.s3_faults import S3Faults, signed
from tests.drivers.s3_server import ACCESS_KEY, REGION, SECRET_KEY

CLIENT = "night"
CLIENT_SECRET = "of-the-night-only"
_SESSION = "x-amz-security-token"
_TABLE = re.compile(r"/v1/namespaces/([^/]+)/tables/([^/]+)$")


@dataclass
class Tickets:
    """Texts that are valid for some seconds after they were given out."""

    kind: str
    seconds: float
    refused: list[str] = field(default_factory=list)
    _ends: dict[str, float] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def give(self) -> str:
        ticket = f"{self.kind}-ticket-{next(self._numbers)}"
        self._ends[ticket] = time.time() + self.seconds
        return ticket

    def takes(self, ticket: str) -> bool:
        valid = time.time() < self._ends.get(ticket, 0.0)
        # The first look at a store has no ticket: it asks whether anybody answers.
        if not valid and ticket:
            self.refused.append(ticket)
        return valid

    def end(self, ticket: str) -> float:
        return self._ends[ticket]

    @property
    def given(self) -> int:
        return len(self._ends)


class GuardedBucket(S3Faults):
    """A proxy of the S3 server that takes the session tokens of `tickets` only."""

    def __init__(self, target: str, tickets: Tickets) -> None:
        super().__init__(target)
        self._tickets = tickets

    def forward(self, request: Request) -> Answer:
        stated = {name.lower(): value for name, value in request.headers.items()}
        if self._tickets.takes(stated.get(_SESSION, "")):
            # The server behind it knows no sessions.
            kept = {name: value for name, value in request.headers.items() if name.lower() != _SESSION}
            return super().forward(signed(replace(request, headers=kept)))
        body = b"<?xml version='1.0'?><Error><Code>ExpiredToken</Code><Message>ended</Message></Error>"
        return Answer(403, {"Content-Type": "application/xml"}, body)


@dataclass
class VendingRest:
    """The catalog: `uri`, and what it gave out."""

    catalog: SqlCatalog
    tokens: Tickets
    sessions: Tickets
    endpoint: str
    uri: str = ""
    says_when_they_end: bool = True

    def access(self, location: str) -> dict[str, Any]:
        """What comes with a table."""
        session = self.sessions.give()
        keys = {"s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET_KEY, "s3.session-token": session}
        if self.says_when_they_end:
            keys["s3.session-token-expires-at-ms"] = str(int(self.sessions.end(session) * 1000))
        bucket = location.partition("://")[2].partition("/")[0]
        wrong = {"s3.access-key-id": "of-another", "s3.secret-access-key": "place", "s3.session-token": "than-this"}
        return {
            "config": {"s3.endpoint": self.endpoint, "client.region": REGION},
            "storage-credentials": [
                {"prefix": "s3://", "config": wrong},
                {"prefix": f"s3://{bucket}/", "config": keys},
            ],
        }


@contextmanager
def serve_vending_rest(catalog: VendingRest) -> Iterator[VendingRest]:
    """Serves on a loopback port, until the context ends."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, catalog)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        catalog.uri = f"http://127.0.0.1:{server.server_port}"
        try:
            yield catalog
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, catalog: VendingRest, *connection: Any) -> None:
        self._catalog = catalog
        super().__init__(*connection)

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: bytes) -> None:
        status, content = self._content(self.path.partition("?")[0], body)
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _content(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if path == "/v1/oauth/tokens":
            return _token(self._catalog, parse_qs(body.decode()))
        if not self._catalog.tokens.takes(self.headers.get("Authorization", "").removeprefix("Bearer ")):
            return 401, _error(401, "NotAuthorizedException", "the token has ended")
        if path == "/v1/config":
            return 200, {"defaults": {}, "overrides": {}}
        found = _TABLE.search(path)
        return _table(self._catalog, (found[1], found[2]), body) if found else _listed(self._catalog.catalog, path)


def _token(catalog: VendingRest, asked: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
    if (asked["client_id"], asked["client_secret"]) != ([CLIENT], [CLIENT_SECRET]):
        return 401, {"error": "invalid_client", "error_description": "no such client"}
    return 200, {"access_token": catalog.tokens.give(), "token_type": "bearer", "expires_in": 3600}


def _listed(catalog: SqlCatalog, path: str) -> tuple[int, dict[str, Any]]:
    if path.endswith("/tables"):
        names = catalog.list_tables(path.split("/")[-2])
        return 200, {"identifiers": [{"namespace": list(name[:-1]), "name": name[-1]} for name in names]}
    return 200, {"namespaces": [list(name) for name in catalog.list_namespaces()]}


def _table(served: VendingRest, name: tuple[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
    try:
        table = served.catalog.load_table(name)
        if body:
            asked = CommitTableRequest.model_validate_json(body)
            served.catalog.commit_table(table, asked.requirements, asked.updates)
            table = served.catalog.load_table(name)
    except NoSuchTableError as failure:
        return 404, _error(404, "NoSuchTableException", str(failure))
    except CommitFailedException as failure:
        return 409, _error(409, "CommitFailedException", str(failure))
    said = {"metadata-location": table.metadata_location, "metadata": json.loads(table.metadata.model_dump_json())}
    return 200, said if body else {**said, **served.access(table.metadata_location)}


def _error(status: int, kind: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": status}}
