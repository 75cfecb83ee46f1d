"""Servers that take connections and never answer: one table waits, and the next ones of the same server do not."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import nightkeep
from nightkeep import silence
from nightkeep.api.status import Statuses
from nightkeep.errors import Unreachable

TABLES = 5
PATIENCE = 2


@dataclass
class Silent:
    """A server on this machine that counts who asks it."""

    server: socket.socket
    asked: list[socket.socket] = field(default_factory=list)

    def listen(self) -> None:
        with suppress(OSError):
            while True:
                self.asked.append(self.server.accept()[0])

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[Silent]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        found = Silent(server)
        thread = threading.Thread(target=found.listen, daemon=True)
        thread.start()
        yield found
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        for each in found.asked:
            each.close()


def rest(place: str) -> tuple[str, dict[str, str]]:
    return "iceberg:quiet/db.t", {
        "PYICEBERG_CATALOG__QUIET__TYPE": "rest",
        "PYICEBERG_CATALOG__QUIET__URI": f"http://{place}",
    }


def hive(place: str) -> tuple[str, dict[str, str]]:
    uri = {"PYICEBERG_CATALOG__QUIET__TYPE": "hive", "PYICEBERG_CATALOG__QUIET__URI": f"thrift://{place}"}
    return "iceberg:quiet/db.t", uri


def hdfs(place: str) -> tuple[str, dict[str, str]]:
    return f"delta:hdfs://{place}/t", {}


def s3(place: str) -> tuple[str, dict[str, str]]:
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
    return "delta:s3://bucket/t", {"AWS_ENDPOINT_URL": f"http://{place}", **keys}


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("of", [rest, hive, hdfs, s3])
def test_five_tables_wait_for_a_silent_server_once(
    of: Callable[[str], tuple[str, dict[str, str]]],
    silent: Silent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    address, environment = of(silent.place)
    for name, value in {**environment, "NIGHTKEEP_PATIENCE_SECONDS": str(PATIENCE)}.items():
        monkeypatch.setenv(name, value)
    # One table after the other, as in a job with many more tables than cores.
    monkeypatch.setattr("nightkeep.groups.read_tables.os.cpu_count", lambda: 1)
    names = "".join(f"  - {{name: t{n}, table: '{address}{n}'}}\n" for n in range(TABLES))
    (tmp_path / "tables.yaml").write_text(
        f"version: 1\ntables:\n{names}  - {{name: here, table: 'delta:{tmp_path}/no'}}\n"
    )
    begun = time.monotonic()
    with caplog.at_level(logging.WARNING, "nightkeep.silence"):
        found = nightkeep.status(policy=tmp_path / "tables.yaml", reports=tmp_path / "reports")
    assert len(silent.asked) == 1, f"{len(silent.asked)} connections in {time.monotonic() - begun:.0f} s"
    assert len([record for record in caplog.records if silent.place in record.getMessage()]) == 1
    assert_each_table_says_why(found, silent.place)


def assert_each_table_says_why(found: Statuses, place: str) -> None:
    why = {each.name: str(each.why) for each in found}
    *first, _ = sorted(name for name in why if name != "here")
    assert len(first) == TABLES - 1 and place not in why["here"]
    assert all(place in why[f"t{n}"] for n in range(TABLES)), why
    assert sum("not asked again in this run for 10 minutes" in text for text in why.values()) == TABLES - 1, why


def test_a_silent_server_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    silence.note_silence("the catalog at http://quiet")
    with pytest.raises(
        Unreachable, match=r"the catalog at http://quiet: expected an answer within 25 seconds \(NIGHTKEEP_P"
    ):
        silence.require_answering("the catalog at http://quiet")
    silence.require_answering("the catalog at http://other")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + silence.FORGOTTEN_SECONDS)
    silence.require_answering("the catalog at http://quiet")


def test_what_another_process_has_learned_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    told = {"the metastore at thrift://quiet": time.time()}
    for _ in range(2):
        silence.learn_silence(told, logs=True)
    assert [record.getMessage().partition(" UTC")[0].rpartition(" at ")[0] for record in caplog.records] == [
        "the metastore at thrift://quiet: expected an answer within 25 seconds, found none"
    ]
    assert silence.is_silent("the metastore at thrift://quiet")
