"""The index of reports: what is in it, what it costs, and what becomes of it after deaths and damage."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import Bucket, S3Server
from tests.storage.test_kept import bucket_place, place
from tests.support.processes import child

import nightkeep
from nightkeep.model import Operation, Outcome
from nightkeep.places import report_store
from nightkeep.records import CheckStatus, Expectations, History, Metrics, RunDocument, UnitResult, read_history, store
from nightkeep.records.bundles import NEW, bundled, bundles_of_run
from nightkeep.records.kept_index import NEWEST, indexed, keep_index, read_index, remove_index

__all__ = ["bucket_place", "place"]

NIGHT = datetime(2026, 11, 1, 2, tzinfo=UTC)
DAY_S = 24 * 3600


def document(table: str, night: int = 0, outcome: Outcome = Outcome.UNCHANGED) -> RunDocument:
    prefix = f"nightly-{night}"
    return RunDocument(
        run_id=f"{prefix}:{table}",
        table=table,
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=outcome,
        reason=f"{outcome} in night {night}",
        base_version=night,
        committed_version=night + 1 if outcome is Outcome.VERIFIED else None,
        units=(UnitResult("", None, outcome, rows=7, equal=True), UnitResult("p=1", 0, outcome, rows=5, equal=True)),
        expectations=Expectations(CheckStatus.PASSED if outcome is Outcome.VERIFIED else CheckStatus.NOT_RUN),
        metrics=Metrics(files_before=9, files_after=2, seconds={"plan": 0.5, "rewrite": 1.25}),
        started_at=NIGHT + timedelta(days=night),
        finished_at=NIGHT + timedelta(days=night, minutes=1),
    )


def job(reports: str | Path, *documents: RunDocument) -> None:
    """One process that stores these documents of one run."""
    prefix = documents[0].run_id.removesuffix(f":{documents[0].table}")
    with bundled(reports, prefix, [(each.table, each.run_id) for each in documents]):
        for each in documents:
            store(each, reports)


def shown(history: History) -> list[tuple[object, ...]]:
    """What the index page shows of each document."""
    return [
        (
            *(each.run_id, each.table, each.operation, each.outcome, each.reason, each.base_version),
            *(each.committed_version, each.started_at, each.rows_proven, each.total_seconds),
            *(each.metrics.files_before, each.metrics.files_after, each.expectations.status),
        )
        for each in history.documents
    ]


def assert_complete(reports: str | Path, found: History) -> None:
    """The index has what the documents have."""
    expected = read_history(reports, newest=NEWEST)
    assert shown(found) == shown(expected)
    assert (found.unreadable, found.older) == (expected.unreadable, expected.older)


def bundle_files(reports: Path) -> list[Path]:
    return sorted(reports.glob(f"{NEW}/*"))


def test_documents_of_several_jobs_are_in_it_each_as_it_is_last(place: str) -> None:
    for night in range(3):
        job(place, document("a", night), document("Shop.b", night, Outcome.VERIFIED))
        assert_complete(place, keep_index(place, prefix=f"nightly-{night}"))
    store(replace(document("a", 2), outcome=Outcome.FAILED, reason="checked again"), place)
    assert_complete(place, read_index(place))
    found = keep_index(place, prefix="other")
    assert_complete(place, found)
    assert "checked again" in [each.reason for each in found.documents]


def test_of_each_table_the_newest_are_in_it_and_the_others_are_counted(tmp_path: Path) -> None:
    for night in range(NEWEST):
        job(tmp_path, document("a", night), document("b", night))
    assert keep_index(tmp_path, prefix="x").older == 0
    for night in range(NEWEST, NEWEST + 3):
        job(tmp_path, document("a", night))
        assert_complete(tmp_path, keep_index(tmp_path, prefix="x"))
    # An old one that is stored again was counted.
    store(document("a", 0), tmp_path)
    found = keep_index(tmp_path, prefix="x")
    assert (found.older, len(found.documents)) == (3, 2 * NEWEST)
    remove_index(tmp_path)
    assert keep_index(tmp_path, prefix="x").older == 3


def test_places_of_earlier_releases_get_one(place: str) -> None:
    kept = report_store(place)
    for night in range(2):
        each = document("t", night)
        kept.write(f"t/{night}-optimize.json", json.dumps(each.to_json()).encode())
    assert len(read_index(place).documents) == 2
    assert not kept.list("~index")
    assert len(keep_index(place, prefix="x").documents) == 2
    assert [each.name for each in kept.list("~index") if "." in each.name] == ["rows.v2"]


def die_in_a_bundle(pipe: Connection, reports: Path) -> None:
    with bundled(reports, "nightly-1", [("a", "nightly-1:a"), ("b", "nightly-1:b")]):
        store(document("a", 1), reports)
        os._exit(9)


@pytest.mark.slow
def test_a_process_that_died_left_an_open_bundle(tmp_path: Path) -> None:
    keep_index(tmp_path, prefix="x")
    with child(die_in_a_bundle, tmp_path) as process:
        assert process.end() == 9
    store(document("c", 1), tmp_path)
    # Another run's page does not wait for it, and its own looks it up; so does who reads.
    assert [each.table for each in keep_index(tmp_path, prefix="nightly-2").documents] == ["c"]
    assert bundles_of_run(tmp_path, "nightly-1").stored.keys() == {"c"}
    assert_complete(tmp_path, read_index(tmp_path))
    assert_complete(tmp_path, keep_index(tmp_path, prefix="nightly-1"))
    assert len(bundle_files(tmp_path)) == 2


def test_bundles_are_removed_once_their_run_is_over(tmp_path: Path) -> None:
    job(tmp_path, document("a"))
    keep_index(tmp_path, prefix="nightly-0")
    (merged,) = bundle_files(tmp_path)
    age(merged, 2)
    job(tmp_path, document("a", 1))
    assert_complete(tmp_path, keep_index(tmp_path, prefix="nightly-1"))
    assert merged not in bundle_files(tmp_path) and len(bundle_files(tmp_path)) == 1
    assert_complete(tmp_path, keep_index(tmp_path, prefix="nightly-1"))


def test_commands_merge_them_where_no_page_is_written(tmp_path: Path) -> None:
    for night in range(3):
        each = document("a", night)
        with indexed(tmp_path, f"nightly-{night}", [("a", each.run_id)]):
            store(each, tmp_path)
        for bundle in bundle_files(tmp_path):
            age(bundle, 3)
    assert len(bundle_files(tmp_path)) == 1
    assert_complete(tmp_path, read_index(tmp_path))


def age(file: Path, days: int) -> None:
    os.utime(file, (time.time() - days * DAY_S,) * 2)


def test_of_two_that_merge_at_once_none_loses_a_row(place: str) -> None:
    start = threading.Barrier(3)

    def night(number: int) -> None:
        start.wait()
        for each in range(4):
            job(place, document(f"t{number}", each))
            keep_index(place, prefix=f"nightly-{each}")

    machines = [threading.Thread(target=night, args=(each,)) for each in range(3)]
    for each in machines:
        each.start()
    for each in machines:
        each.join()
    assert_complete(place, keep_index(place, prefix="x"))
    remove_index(place)
    assert_complete(place, read_index(place))


DAMAGE: dict[str, Callable[[dict[str, object]], object]] = {
    "a list": lambda held: [held],
    "without tables": lambda held: {key: each for key, each in held.items() if key != "tables"},
    "tables of another type": lambda held: {**held, "tables": {"a": 3}},
    "a row of another type": lambda held: {**held, "tables": {"a": {"x": [1] * 17}}},
    "a row of an unknown outcome": lambda held: {**held, "tables": {"a": {"x": changed_row(held, 4, "fine")}}},
    "a row without a zone": lambda held: {**held, "tables": {"a": {"x": changed_row(held, 8, "2026-01-01T00:00:00")}}},
    "a row of a far time": lambda held: {
        **held,
        "tables": {"a": {"x": changed_row(held, 8, "0001-01-01T00:00+05:00")}},
    },
    "merged of another type": lambda held: {**held, "merged": [{}]},
    "unreadable of another type": lambda held: {**held, "unreadable": {"a": 1}},
}


def changed_row(held: dict[str, object], place: int, value: object) -> list[object]:
    tables = held["tables"]
    assert isinstance(tables, dict)
    row = [*next(iter(tables["a"].values()))]
    row[place] = value
    return row


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_built_anew(tmp_path: Path, damage: str) -> None:
    job(tmp_path, document("a"), document("b"))
    keep_index(tmp_path, prefix="nightly-0")
    rows = tmp_path / "~index" / "rows.v2"
    held = json.loads(rows.read_text())
    rows.write_text(json.dumps(DAMAGE[damage](held)))
    assert_complete(tmp_path, keep_index(tmp_path, prefix="nightly-0"))
    assert json.loads(rows.read_text())["tables"].keys() == {"a", "b"}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"older": 1e999}', None])
def test_a_file_that_is_no_index_is_replaced(tmp_path: Path, content: bytes | None) -> None:
    job(tmp_path, document("a"))
    rows = tmp_path / "~index" / "rows.v2"
    if content is None:
        os.mkfifo(rows)
    else:
        rows.write_bytes(content)
    assert_complete(tmp_path, keep_index(tmp_path, prefix="nightly-0"))
    assert json.loads(rows.read_text())["tables"].keys() == {"a"}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"ended": true}', b'{"ended": true, "runs": [[1, 2]], "rows": [], "documents": []}']
)
def test_a_damaged_bundle_hides_no_document(tmp_path: Path, content: bytes) -> None:
    keep_index(tmp_path, prefix="x")
    job(tmp_path, document("a"))
    (bundle,) = bundle_files(tmp_path)
    bundle.write_bytes(content)
    assert bundles_of_run(tmp_path, "nightly-0").stored == {}
    assert_complete(tmp_path, keep_index(tmp_path, prefix="nightly-0"))
    assert_complete(tmp_path, read_index(tmp_path))


def test_names_of_an_index_lead_nowhere(tmp_path: Path) -> None:
    reports, outside = tmp_path / "reports", tmp_path / "outside"
    job(reports, document("a"))
    outside.mkdir()
    (outside / "x.json").write_text("{")
    keep_index(reports, prefix="nightly-0")
    rows = reports / "~index" / "rows.v2"
    held = json.loads(rows.read_text())
    names = ["../outside/x.json", "..", "a/../../outside/x.json", "/outside/x.json", "~index", "holds"]
    rows.write_text(json.dumps({**held, "unreadable": {name: ["x", "y", "z", None] for name in names}}))
    assert_complete(reports, keep_index(reports, prefix="nightly-0"))


def test_a_document_that_cannot_be_read_is_one_line_until_it_can(tmp_path: Path) -> None:
    job(tmp_path, document("a"), document("b"))
    broken = tmp_path / "a" / "nightly-0~3aa-optimize.json"
    whole = broken.read_text()
    broken.write_text("{")
    remove_index(tmp_path)
    found = keep_index(tmp_path, prefix="x")
    assert [each.path for each in found.unreadable] == [str(broken)]
    assert_complete(tmp_path, found)
    assert_complete(tmp_path, keep_index(tmp_path, prefix="x"))
    broken.write_text(whole)
    assert_complete(tmp_path, keep_index(tmp_path, prefix="x"))
    broken.write_text("{")
    remove_index(tmp_path)
    keep_index(tmp_path, prefix="x")
    broken.unlink()
    assert_complete(tmp_path, keep_index(tmp_path, prefix="x"))


def test_where_nothing_can_be_written_the_documents_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job(tmp_path, document("a"))
    for each in bundle_files(tmp_path):
        each.unlink()
    (tmp_path / "~index" / "new").rmdir()
    (tmp_path / "~index").rmdir()
    (tmp_path / "~index").write_text("in the way")
    store(document("a", 1), tmp_path)
    found = keep_index(tmp_path, prefix="x")
    assert len(found.documents) == 2
    assert_complete(tmp_path, found)


@dataclass
class Requests:
    """What this process asks of the bucket: objects that are read, lists, and whatever changes something."""

    proxy: S3Faults

    def of(self, work: Callable[[], object]) -> tuple[int, int, int]:
        before = len(self.proxy.requests)
        work()
        asked = self.proxy.requests[before:]
        lists = sum("list-type=2" in each for each in asked)
        reads = sum(each.startswith("GET ") for each in asked) - lists
        return reads, lists, len(asked) - reads - lists


@pytest.fixture
def requests(s3_server: S3Server, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    with S3Faults(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield Requests(proxy)


@pytest.mark.slow
def test_it_costs_what_is_new_and_not_what_is_stored(requests: Requests, bucket_place: str) -> None:
    for night in range(2):
        job(bucket_place, *(document(f"t{number}", night) for number in range(20)))
    # Built once: each table's folder is listed, and each document read.
    reads, lists, _ = requests.of(lambda: keep_index(bucket_place, prefix="nightly-1"))
    assert reads > 40 and lists > 20
    job(bucket_place, *(document(f"t{number}", 2) for number in range(20)))
    # The index and the new bundle; the list of bundles; the index is written.
    assert requests.of(lambda: keep_index(bucket_place, prefix="nightly-2")) == (2, 1, 1)
    assert requests.of(lambda: read_index(bucket_place)) == (1, 1, 0)
    # A job writes its bundle twice, however many tables it has.
    assert requests.of(lambda: job(bucket_place, *(document(f"t{n}", 3) for n in range(20)))) == (0, 0, 2 + 20)
    assert_complete(bucket_place, read_index(bucket_place))


def test_a_report_brings_in_what_was_copied_or_removed_by_hand(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text("version: 1\n")
    reports = tmp_path / "reports"
    job(reports, document("a"), document("b"))
    keep_index(reports, prefix="nightly-0")
    (reports / "a" / "nightly-0~3aa-optimize.json").unlink()
    (reports / "c").mkdir()
    (reports / "c" / "copied.json").write_text(json.dumps(document("c").to_json()))
    nightkeep.report(policy=tmp_path / "tables.yaml", reports=reports)
    found = keep_index(reports, prefix="x")
    assert [each.table for each in found.documents] == ["b", "c"]
    assert_complete(reports, found)
