"""A folder and a bucket keep the same files, and the same promises to several writers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.fault_proxy import Way
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import Bucket, S3Server
from tests.records.test_documents import document
from tests.records.test_ledger import DONE
from tests.storage.test_kept import bucket_place, names, place

from nightkeep.admission.order import Order
from nightkeep.admission.reasons import case_of, reason_to_skip
from nightkeep.api.results import Release
from nightkeep.discovery import keep_found, kept_found
from nightkeep.discovery.found import Found, FoundTable
from nightkeep.errors import CorruptMetadata, EvidenceError, RefusedTable, Unreachable
from nightkeep.model import Operation, Outcome
from nightkeep.places import is_kept, located, read_text, remove_file, report_store, write_file
from nightkeep.policy import load
from nightkeep.records import (
    CheckStatus,
    Expectations,
    HistoryMark,
    Hold,
    held,
    hold,
    hold_or_note,
    keep_look,
    last_look,
    last_outcomes,
    load_document,
    load_history,
    measured_of_format,
    measured_of_table,
    release,
    require_writable,
    secure,
    store,
    store_or_note,
    table_documents,
    write_page,
)
from nightkeep.records.holds import _hold as parsed_hold
from nightkeep.records.validations import keep_validations, read_validations
from nightkeep.storage.kept import KeptFile, KeptFiles

__all__ = ["bucket_place", "place"]
BUNDLE = "~index/new/"


@pytest.fixture
def faults(s3_server: S3Server, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Faults]:
    """A proxy that everything of this process goes through."""
    with S3Faults(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


def test_a_folder_and_a_bucket_hold_the_same_files(tmp_path: Path, s3_bucket: Bucket, bucket_place: str) -> None:
    folder = tmp_path / "reports"
    told = [everything_kept(each) for each in (str(folder), bucket_place)]
    assert told[0] == told[1]
    assert tree(folder) == tree(s3_bucket.folder / "team a" / "reports")


@pytest.mark.slow
def test_a_folder_and_hdfs_hold_the_same_files(tmp_path: Path, hdfs_folder: str) -> None:
    folder, place = str(tmp_path / "reports"), f"{hdfs_folder}/reports"
    assert everything_kept(folder) == everything_kept(place)
    kept = [report_store(each) for each in (folder, place)]
    assert kept[0].folders() == kept[1].folders()
    for each in kept[0].folders():
        assert [name for name in names(kept[0], each) if "." in name] == names(kept[1], each)


def everything_kept(place: str) -> tuple[object, ...]:
    """One of each kind of file, and what is read of them."""
    told = [replace(DONE, table=name) for name in ("Shop.orders", "pages", "a\udcffb", "x" * 400)]
    for each in told:
        secure(each, place)
        store_or_note(each, place)
    hold(place, "holds", document("holds"))
    hold(place, "gone", document("gone"))
    keep_look(place, HistoryMark(table="t", version=3, identity="x"))
    found = Found((FoundTable("a", "delta", "/d/a", "discover delta:d"),))
    judged = keep_validations(DONE, [{"suite_name": "s"}], place)
    address = keep_found(place, "night:1", found)
    result = write_file(f"{place}/~results/x.json", "[]")
    require_writable(place, "t")
    write_page(place, "Night 1", "<p>\u00e9</p>")
    with pytest.raises(FileNotFoundError):
        load_document(f"{place}/none/x.json")
    return (
        load_history(place),
        load_history(place, "pages"),
        held(place, "holds"),
        release(place, "holds") is not None,
        held(place, "holds"),
        last_look(place, "t"),
        kept_found(address) == found,
        (is_kept(address), is_kept(f"{address}.none"), read_text(result), read_text(f"{result}.none")),
        read_validations(judged, place),
        measured_of_table(place, "Shop.orders", DONE.operation),
        measured_of_format(place, DONE.format, DONE.operation),
        last_outcomes(place, ["Shop.orders", "pages", "nobody"]),
        remove_file(result),
    )


def tree(folder: Path) -> dict[str, bytes]:
    """What is there; a hold that was removed on a condition leaves a mark in a bucket. Of bundles only whose they are:
    each has a name and times of its own."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files = {name.rsplit(".", 2)[0] if BUNDLE in name else name: data for name, data in files.items()}
    return {name: b"" if BUNDLE in name else data for name, data in files.items() if data != b'{"removed": true}\n'}


@pytest.mark.few(1)
def test_of_two_that_write_at_once_none_is_lost(place: str) -> None:
    """A ledger has every line, and whoever held the table, it is held."""
    start = threading.Barrier(4)

    def night(machine: int) -> None:
        start.wait()
        for number in range(5):
            store_or_note(replace(DONE, table=f"t{machine}", run_id=f"{machine}-{number}"), place)
        hold(place, "t", replace(document("t", outcome=Outcome.MISMATCH), run_id=f"night {machine}"))

    machines = [threading.Thread(target=night, args=(each,)) for each in range(4)]
    for each in machines:
        each.start()
    for each in machines:
        each.join()
    runs = {each.run_id for each in measured_of_format(place, DONE.format, DONE.operation)}
    assert runs == {f"{machine}-{number}" for machine in range(4) for number in range(5)}
    stands = held(place, "t")
    assert stands is not None
    assert {*stands.runs} == {f"night {machine}" for machine in range(4)}
    # The same run, tried again, holds once.
    assert hold(place, "t", replace(document("t"), run_id=stands.run_id)).runs == stands.runs
    assert str(Release("t", stands)) == f"t: holds of runs {', '.join(stands.runs)} released"


def test_a_hold_that_comes_while_another_is_released_stands(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(place, "t", document("t"))

    came = list[bool]()

    def another_first(kept: KeptFiles, name: str, read: KeptFile) -> Hold:
        if not came:
            came.append(True)
            hold(place, "t", replace(document("t"), run_id="later"))
        return parsed_hold(kept, name, read)

    monkeypatch.setattr("nightkeep.records.holds._hold", another_first)
    with pytest.raises(EvidenceError, match="found another one, which stands"):
        release(place, "t")
    found = held(place, "t")
    assert found is not None and found.run_id == "later"


class TestFaults:
    """Requests that fail, answers that are lost, and stores that do not know conditions."""

    def test_where_a_bucket_does_not_state_whether_a_table_is_held_nothing_is_done(
        self, faults: S3Faults, bucket_place: str, tmp_path: Path
    ) -> None:
        (tmp_path / "tables.yaml").write_text("version: 1\ntables: [{name: t, table: 'delta:/t'}]\n")
        policy = load(tmp_path / "tables.yaml").effective("t")
        order = Order(DONE.operation, DONE.run_id, bucket_place)
        assert reason_to_skip(case_of(policy, order, DONE.started_at)) is None
        faults.fail(403, request="GET .*/holds/t.json", times=2)
        with pytest.raises(Unreachable, match=r"expected a hold, or none, found .*access denied"):
            reason_to_skip(case_of(policy, order, DONE.started_at))
        with pytest.raises(Unreachable, match="access denied"):
            release(bucket_place, "t")
        assert held(bucket_place, "t") is None
        # A bucket that is not there is no bucket without holds.
        for act in (held, release):
            with pytest.raises(Unreachable, match="no such bucket"):
                act("s3://nowhere/reports", "t")

    @pytest.mark.parametrize("times", [1, 2])
    def test_a_hold_that_cannot_be_written_is_tried_in_another_way_and_reported(
        self, faults: S3Faults, bucket_place: str, times: int
    ) -> None:
        store(document("t"), bucket_place)
        faults.fail(403, request="PUT .*/holds/t.json", times=times)
        told = str(hold_or_note(bucket_place, document("t")).reason)
        assert "the hold cannot be written: " in told
        if times == 2:
            assert "NOTHING HOLDS THE TABLE" in told and held(bucket_place, "t") is None
            return
        assert "the run's document holds the table until nightkeep release t" in told
        with pytest.raises(CorruptMetadata):
            held(bucket_place, "t")
        assert release(bucket_place, "t") is not None and held(bucket_place, "t") is None

    @pytest.mark.parametrize("way", [Way.BEFORE, Way.AFTER])
    def test_each_write_may_fail_or_lose_its_answer_once(self, faults: S3Faults, bucket_place: str, way: Way) -> None:
        """The client asks again: what a lost answer was about is there, once."""
        folders = ("holds", "~53hop.orders", "~ledger/tables", "~ledger/formats", "_nightkeep")
        met = [faults.drop(request=f"PUT .*/{folder}/", way=way) for folder in folders]
        secure(DONE, bucket_place)
        stored, address = store_or_note(DONE, bucket_place)
        assert stored == DONE and address is not None and load_document(address) == DONE
        assert len(measured_of_format(bucket_place, DONE.format, DONE.operation)) == 1
        lines = report_store(bucket_place).read("~ledger/formats/delta-optimize.jsonl").data.splitlines()
        assert len(lines) == 1
        assert hold_or_note(bucket_place, document("t")).reason == document("t").reason
        met.append(faults.drop(request="PUT .*/holds/t.json", way=way))
        assert isinstance(release(bucket_place, "t"), Hold) and held(bucket_place, "t") is None
        assert all(len(fault.seen) == 1 for fault in met)

    def test_what_is_denied_is_reported_before_the_work_and_after_it(self, faults: S3Faults, bucket_place: str) -> None:
        secure(DONE, bucket_place)
        faults.fail(403, request="PUT .*hop.orders/", times=2)
        with pytest.raises(EvidenceError, match=r"document can be written, found .*access denied.*nothing was done"):
            secure(DONE, bucket_place)
        told, address = store_or_note(DONE, bucket_place)
        assert address is None and "version 5 was published, but its document cannot be written" in str(told.reason)
        faults.fail(403, request="PUT .*/~ledger/tables/")
        assert store_or_note(DONE, bucket_place)[1] is not None

    @pytest.mark.parametrize("forgotten", ["if-none-match", "if-match"])
    def test_a_store_that_ignores_a_condition_is_refused_before_any_work(
        self, faults: S3Faults, bucket_place: str, forgotten: str
    ) -> None:
        faults.forget_conditions(forgotten)
        for refused in (lambda: secure(DONE, bucket_place), lambda: require_writable(bucket_place, "t")):
            assert_refused(refused, forgotten)
        assert load_history(bucket_place) == () and names(report_store(bucket_place), "_nightkeep") == []

    def test_the_last_outcomes_cost_no_read_of_every_document(self, faults: S3Faults, bucket_place: str) -> None:
        for table in range(3):
            for night in range(4):
                store(replace(document(f"t{table}"), run_id=f"night {night}"), bucket_place)
        before = len(faults.requests)
        assert len(last_outcomes(bucket_place, [*(f"t{n}" for n in range(3)), *(f"none{n}" for n in range(50))])) == 3
        assert len(faults.requests) - before == 1 + 3 * (1 + 2)

    def test_documents_are_read_as_far_as_they_are_asked_for(self, faults: S3Faults, bucket_place: str) -> None:
        for night in range(30):
            store(replace(document("t"), run_id=f"night {night:02}"), bucket_place)
        store(replace(document("t"), run_id="week", operation=Operation.SWEEP), bucket_place)
        before = len(faults.requests)
        found = table_documents(bucket_place, "t")
        assert next(found.newest_first(Operation.SWEEP)).run_id == "week"
        assert next(found.newest_first(Operation.UPGRADE)).operation is Operation.UPGRADE
        assert len(faults.requests) - before == 1 + 1 + 2
        assert len([*found.newest_first()]) == 31 == len(load_history(bucket_place))
        assert [*table_documents(bucket_place, "nobody").newest_first()] == []


def assert_refused(work: Callable[[], None], header: str) -> None:
    with pytest.raises(RefusedTable) as raised:
        work()
    assert header in str(raised.value).lower()


def test_a_mark_of_a_removed_hold_is_no_hold_and_other_bytes_are(s3_bucket: Bucket, bucket_place: str) -> None:
    hold(bucket_place, "t", document("t"))
    assert release(bucket_place, "t") is not None and release(bucket_place, "t") is None
    path = s3_bucket.folder / "team a" / "reports" / "holds" / "t.json"
    for text in ("", "{}", json.dumps({"removed": True})):
        path.write_text(text)
        with pytest.raises(CorruptMetadata):
            held(bucket_place, "t")
    store_, name = located(f"{bucket_place}/holds/t.json")
    assert store_.read(name).data == b'{"removed": true}'


def test_expectations_of_a_checked_run_are_kept_beside_it(bucket_place: str) -> None:
    checked = replace(DONE, expectations=Expectations(CheckStatus.PASSED))
    kept = keep_validations(checked, [{"success": True}], bucket_place)
    assert kept.expectations.docs == f"{bucket_place}/shop.orders/expectations/monday-optimize.json".replace(
        "shop.orders", "~53hop.orders"
    )
    assert read_validations(kept, bucket_place) == ({"success": True},)
