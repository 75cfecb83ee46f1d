"""A catalog's answer that leaves out snapshots is not what a sweep or an expiry goes by."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import configured, folder, opened
from tests.formats.iceberg.sweeping import aged, now_ms, swept

from nightkeep.errors import EvidenceError
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention


@contextmanager
def serving(table: Table, *, overrides: dict[str, str], shown: Callable[[dict[str, Any]], object]) -> Iterator[str]:
    """A REST catalog of one table. `shown` changes the metadata of an answer, as asked for by `snapshots=refs`, and
    always where the server has its own mind."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path.endswith("/config"):
                return self.answer({"defaults": {}, "overrides": overrides})
            namespace, name = table.name.split(".")
            if parts.path.endswith("/namespaces"):
                return self.answer({"namespaces": [[namespace]]})
            if parts.path.endswith("/tables"):
                return self.answer({"identifiers": [{"namespace": [namespace], "name": name}]})
            document = table.document()
            if parse_qs(parts.query).get("snapshots") == ["refs"] or not overrides:
                shown(document)
            self.answer({"metadata-location": f"file://{table.metadata}", "metadata": document, "config": {}})

        def answer(self, content: dict[str, Any]) -> None:
            data = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def pointed_to(document: dict[str, Any]) -> None:
    """As the REST specification has it for `snapshots=refs`."""
    kept = {ref["snapshot-id"] for ref in document["refs"].values()}
    assert len(kept) < len(document["snapshots"])
    document["snapshots"] = [each for each in document["snapshots"] if each["snapshot-id"] in kept]


def with_a_tag(document: dict[str, Any]) -> None:
    document["refs"]["v1"] = {"type": "tag", "snapshot-id": document["snapshots"][0]["snapshot-id"]}


def of_another(document: dict[str, Any]) -> None:
    document["table-uuid"] = "0123abcd-0000-4000-8000-00000000beef"


@pytest.fixture
def table(golden: Callable[[str], Table], iceberg: Warehouse) -> Iterator[Table]:
    with configured(iceberg):
        yield golden("history_v2")


def by_rest(table: Table, uri: str, monkeypatch: pytest.MonkeyPatch, **settings: str) -> Table:
    for key, value in {"TYPE": "rest", "URI": uri, **settings}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{table.warehouse.name.upper()}__{key}", value)
    return table


@pytest.mark.parametrize("told_by", ["us", "the server"])
def test_all_snapshots_are_asked_for_whatever_settings_state(
    told_by: str, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    aged(folder(table))
    expected = swept(table).orphans
    mode = {"snapshot-loading-mode": "refs"}
    overrides = mode if told_by == "the server" else {"a": "b"}
    settings = {"SNAPSHOT_LOADING_MODE": "refs"} if told_by == "us" else {}
    with serving(table, overrides=overrides, shown=pointed_to) as uri:
        found = swept(by_rest(table, uri, monkeypatch, **settings))
    assert found.orphans == expected


@pytest.mark.parametrize("shown", [pointed_to, with_a_tag, of_another])
def test_an_answer_that_is_not_what_the_file_states_stops_sweep_and_expiry(
    shown: Callable[[dict[str, Any]], object], table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    aged(folder(table))
    with serving(table, overrides={}, shown=shown) as uri:
        ours = opened(by_rest(table, uri, monkeypatch)).retention
        for look in (
            ours.table_files,
            lambda: ours.roots(Retention(0, 0)),
            lambda: ours.expiry(ExpireRequest(now_ms())),
            lambda: swept(table, SweepMode.DELETE, of=ours),
        ):
            with pytest.raises(EvidenceError, match=r"catalog's answer: expected .*metadata\.json.*not alike in"):
                look()
