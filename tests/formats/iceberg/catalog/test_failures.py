"""A catalog that does not answer, or denies access, is one sentence: the address, what came back, and what to set."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

import nightkeep
from nightkeep.errors import AddressError, Unreachable
from nightkeep.formats.iceberg.catalog.catalog import parse_location
from nightkeep.formats.iceberg.catalog.failures import reason
from nightkeep.limits import PATIENCE
from nightkeep.storage import LocalStorage
from nightkeep.storage.objects import clients

URI = "uri of shut in .pyiceberg.yaml, or PYICEBERG_CATALOG__SHUT__URI"

TOKEN = {"CREDENTIAL": "me:secret-of-mine", "OAUTH2_SERVER_URI": "{uri}/v1/oauth/tokens"}


@pytest.fixture
def shut(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives the catalog `shut` an address."""
    return lambda uri: monkeypatch.setenv("PYICEBERG_CATALOG__SHUT__URI", uri)


@contextmanager
def answering(status: int) -> Iterator[str]:
    """A server that gives every request the same status."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"error": {"message": "not you", "type": "NotAuthorizedException", "code": %d}}' % status
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """Accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def failure_of(kind: type[Exception]) -> str:
    with pytest.raises(kind) as raised:
        parse_location("shut/db.t", LocalStorage("/")).load()
    return str(raised.value)


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("http://127.0.0.1:1", "connection refused"),
        ("http://nowhere.invalid", "no such host"),
        ("sqlite:////nowhere/at/all.db", "OperationalError: unable to open database file"),
    ],
)
def test_a_catalog_that_is_down_is_reported_once_per_table(uri: str, found: str, shut: Callable[[str], None]) -> None:
    shut(uri)
    said = f"expected an answer of {uri}, found {found}; start it, or set {URI}"
    assert failure_of(Unreachable).partition(": ")[2] == said
    planned = str(nightkeep.plan("iceberg:shut/db.t"))
    assert "\n" not in planned and planned.startswith("iceberg:shut/db.t: persist-deletes, optimize failed")
    assert planned.endswith(said)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "command", [nightkeep.plan, nightkeep.run, nightkeep.sweep, pytest.param(nightkeep.status, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            "iceberg:shut/db.t",
            f"expected an answer of http://127.0.0.1:1, found connection refused; start it, or set {URI}",
        ),
        ("delta:s3://bucket/t", "no credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where"),
    ],
)
def test_each_command_states_it_once(
    command: Callable[..., object],
    table: str,
    told: str,
    shut: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shut("http://127.0.0.1:1")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    # Nothing listens there: no credentials are asked of a cloud.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(clients, "RETRIES", 0)
    # A status has lines of 80 columns.
    said = " ".join(str(command(table, reports=tmp_path / "reports")).split())
    assert said.count(told) == 1, said
    assert "urllib3" not in said and "meta-data" not in said


@pytest.mark.parametrize("token", [{}, TOKEN])
def test_a_catalog_that_is_silent_is_waited_for_no_longer_than_the_limit(
    token: dict[str, str], shut: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATIENCE.variable, "1")
    with silent() as uri:
        shut(uri)
        for name, value in token.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__SHUT__{name}", value.format(uri=uri))
        assert f"expected an answer of {uri}, found no answer in time; start it" in failure_of(Unreachable)


@pytest.mark.parametrize("status", [401, 403])
def test_a_catalog_that_denies_access_states_what_to_set(status: int, shut: Callable[[str], None]) -> None:
    with answering(status) as uri:
        shut(uri)
        said = failure_of(AddressError)
    assert said.startswith(f"catalog shut: expected access to {uri}, found ") and "not you" in said
    assert said.endswith("; set credential or token of shut in .pyiceberg.yaml, or PYICEBERG_CATALOG__SHUT__CREDENTIAL")


def test_a_catalog_that_is_overloaded_may_be_asked_later(shut: Callable[[str], None]) -> None:
    with answering(503) as uri:
        shut(uri)
        assert f"catalog shut: expected an answer of {uri}, found " in failure_of(Unreachable)


def test_a_reason_is_found_below_what_libraries_wrap_around_it() -> None:
    inner = ConnectionRefusedError(111, "Connection refused")
    wrapped = OSError("Max retries exceeded with url: /v1/config")
    wrapped.__context__ = RuntimeError(inner)
    assert reason(wrapped) == "connection refused"
    assert reason(OSError("first\nsecond")) == "OSError: first"
    assert reason(OSError("x" * 999)).endswith("...")
