"""A store that is away for a while costs nobody a try; one that denies, or that is not set, is reported at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.drivers.s3_server import Bucket, S3Server, serve_s3
from tests.object_store.bucket_tables import SAMPLES, upload

import nightkeep
from nightkeep.model import Outcome
from nightkeep.storage.objects import clients
from nightkeep.storage.objects.store import ObjectStorage

# Each test starts a server, or waits.
pytestmark = pytest.mark.slow
SHORT, LONG = 12, 60
VERBS: dict[str, Callable[[ObjectStorage], object]] = {
    "read": lambda store: store.read("there"),
    "stat": lambda store: store.stat("there"),
    "list": lambda store: store.list(""),
    "walk": lambda store: [*store.walk("")],
    "replace": lambda store: store.replace("replaced", b"1", temporary="t"),
    "create": lambda store: store.put_if_absent("created", b"1", temporary="t"),
    "swap": lambda store: store.swap("swapped", b"1", tag=None),
    "move": lambda store: store.move("from", "to"),
    "delete": lambda store: store.delete("deleted"),
    "open": lambda store: store.open("there").read(),
}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server that no other test needs."""
    with serve_s3() as running:
        yield running


@pytest.fixture
def bucket(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return server.bucket()


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.extended)])
def test_every_verb_waits_for_a_store_that_is_away(server: S3Server, bucket: Bucket, seconds: int) -> None:
    store = ObjectStorage(f"{bucket.uri}/x")
    for name in ("there", "from", "deleted"):
        store.replace(name, b"1", temporary="t")
    with server.away(seconds), ThreadPoolExecutor(len(VERBS)) as threads:
        began = time.monotonic()
        asked = {name: threads.submit(verb, store) for name, verb in VERBS.items()}
        found = {name: each.result() for name, each in asked.items()}
        assert time.monotonic() - began >= seconds - 1
    assert (found["read"], found["open"], found["create"]) == (b"1", b"1", True)
    assert (found["swap"], found["move"], found["delete"]) == (True, True, True)
    assert {each.name for each in store.list("")} == {"there", "to", "replaced", "created", "swapped"}


def test_a_plan_waits_as_well(server: S3Server, bucket: Bucket) -> None:
    location = upload(SAMPLES / "delta" / "shop.db" / "accounts", bucket, "t")
    with server.away(SHORT):
        planned = nightkeep.plan(f"delta:{location}", writers="conditional", reports=f"{bucket.uri}/reports")
    assert planned.outcome in (Outcome.UNCHANGED, Outcome.SKIPPED, Outcome.VERIFIED), planned[0].reason


def test_a_store_that_does_not_come_back_is_down_and_the_wait_is_stated(
    server: S3Server, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "RETRY_SECONDS", 2)
    monkeypatch.setattr(clients, "LONGEST_WAIT_SECONDS", 1)
    monkeypatch.setenv("AWS_SESSION_TOKEN_OF_THIS_TEST", "another client than before")
    with server.away(8), pytest.raises(OSError) as raised:
        ObjectStorage(f"{bucket.uri}/x").read("there")
    told = str(raised.value)
    assert f"no answer from {server.endpoint} within " in told and told.endswith("to the address of the store")
    seconds = int(told.partition("within ")[2].partition(" s;")[0])
    assert 2 <= seconds < 8


def test_a_denied_access_is_reported_at_once(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another one")
    began = time.monotonic()
    with pytest.raises(PermissionError, match="access denied"):
        ObjectStorage(f"{bucket.uri}/x").read("there")
    assert time.monotonic() - began < 3


def test_credentials_that_are_not_set_are_reported_at_once(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    # The address at which clouds answer is not asked in a test.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    began = time.monotonic()
    with pytest.raises(PermissionError, match="no credentials found; set AWS_ACCESS_KEY_ID"):
        ObjectStorage(f"{bucket.uri}/x").read("there")
    assert time.monotonic() - began < 3
