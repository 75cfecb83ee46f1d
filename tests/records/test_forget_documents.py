"""Old documents and what belongs to them are removed: what goes, what stays, deaths, writers next door, links."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.s3_server import Bucket
from tests.records.test_kept_index import Requests, assert_complete, bucket_place, requests
from tests.records.test_kept_index import document as of_night
from tests.storage.test_kept import place

from nightkeep.errors import PolicyError
from nightkeep.model import Operation, Outcome, UnitKey
from nightkeep.nights.kept_reports import remove_old_reports
from nightkeep.nights.value_pages import write_value_pages
from nightkeep.places import report_store
from nightkeep.policy import load
from nightkeep.records import RunDocument, hold, load_history, page_name, store, write_page
from nightkeep.records.audit_spending import AuditSpending, add_audit_spending
from nightkeep.records.bundles import bundled
from nightkeep.records.check_report import Difference, UnitDifference
from nightkeep.records.file_names import document_name, slug
from nightkeep.records.forget_documents import Forgotten, forget_documents
from nightkeep.records.kept_index import keep_index, read_index, remove_index
from nightkeep.records.needed_documents import TableNeeds
from nightkeep.records.row_values import files_of_values, keep_values
from nightkeep.records.run_files import RunNames
from nightkeep.records.sent_marks import SentMark, claim, conclude, mark_name
from nightkeep.records.validations import docs_page_name, keep_validations, write_docs_page
from nightkeep.storage.kept import KeptFiles
from nightkeep.storage.local.kept import KeptOnDisk

__all__ = ["bucket_place", "place", "requests"]

# What a test writes has the time of today, so that the limit is in the future. Budgets that were spent have no time but
# that of their files.
FIRST = datetime.now(UTC) + timedelta(days=1000)
KEEP = timedelta(days=30)
OURS = '<p class="brand">Nightkeep</p>'


def document(table: str, night: int, outcome: Outcome = Outcome.VERIFIED) -> RunDocument:
    started = FIRST + timedelta(days=night)
    return replace(of_night(table, night, outcome), started_at=started, finished_at=started + timedelta(minutes=1))


def night(reports: str, number: int, *tables: str) -> None:
    """What a night leaves: documents, results, pages, marks."""
    prefix = f"nightly-{number}"
    with bundled(reports, prefix, [(table, f"{prefix}:{table}") for table in tables]):
        for table in tables:
            made = keep_validations(document(table, number), [{"suite_name": "s"}], reports)
            write_docs_page(reports, docs_page_name(made, 1), "<p>docs</p>")
            store(made, reports)
    keep_index(reports, prefix=prefix)
    write_page(reports, prefix, f"<html>{OURS}</html>")
    add_audit_spending(reports, prefix, AuditSpending(bytes=3))
    event = f"verified {prefix}:{tables[0]} {tables[0]}"
    mark = SentMark(event=event, receiver="a webhook", begun_at=FIRST + timedelta(days=number))
    claim(reports, mark_name(event, "key"), mark)
    conclude(reports, mark_name(event, "key"), replace(mark, ended="sent"))


def forget(reports: str, after: int, needs: Callable[[str], TableNeeds] = lambda _: TableNeeds()) -> Forgotten | None:
    """An hour before so many nights after the first."""
    return forget_documents(reports, keep=KEEP, needs_of=needs, now=FIRST + timedelta(days=after, hours=-1))


def tree(kept: KeptFiles) -> set[str]:
    """The files that are about runs, without those of the index."""
    folders = ["t", "t/expectations", "Shop.b", "~53hop.b", "~53hop.b/expectations", "pages", "pages/data-docs"]
    folders += ["~spent", "~sent", "holds"]
    return {f"{folder}/{each.name}" for folder in folders for each in kept.list(folder) if "." in each.name}


def nights_in(kept: KeptFiles) -> dict[str, list[int]]:
    """By folder the nights of which there is a file."""
    found: dict[str, list[int]] = {}
    for name in sorted(tree(kept)):
        folder, _, file = name.rpartition("/")
        found.setdefault(folder, []).append(int(file.partition("nightly-")[2].partition("~")[0].partition(".")[0]))
    return {folder: sorted(some) for folder, some in found.items()}


def test_old_runs_go_with_all_that_belongs_to_them(place: str) -> None:
    kept = report_store(place)
    for number in range(5):
        night(place, number, "t", "Shop.b")
    assert forget(place, 32) == Forgotten(documents=4, files=4 + 4 + 2 + 2 + 5)
    left = [2, 3, 4]
    folders = ("t", "t/expectations", "~53hop.b", "~53hop.b/expectations", "pages", "~sent")
    assert nights_in(kept) == dict.fromkeys(folders, left) | {"pages/data-docs": sorted(left * 2)}
    assert_complete(place, read_index(place))
    assert len(load_history(place)) == 6
    # Each of these documents can be stored again, in a bucket too.
    store(document("t", 0), place)
    assert_complete(place, keep_index(place, prefix="nightly-0"))
    assert load_history(place, "t")[0].run_id == "nightly-0:t"


def test_values_of_rows_go_with_their_document(place: str) -> None:
    kept, found = report_store(place), {}
    for number in (0, 5):
        difference = UnitDifference(UnitKey("p=1"), "published", Difference(1, 0, missing_rows=({"id": number},)))
        made = keep_values(document("t", number), place, differences=(difference,))
        store(made, place)
        write_value_pages([made], reports=place, folder=place, now=FIRST)
        found[number] = files_of_values(made)
    assert forget(place, 32) == Forgotten(1, 2)
    for number, is_left in ((0, False), (5, True)):
        folders = [name.rpartition("/") for name in found[number]]
        assert [file in {each.name for each in kept.list(folder)} for folder, _, file in folders] == [is_left] * 2


def test_it_is_done_once_a_day_and_by_one_process(place: str) -> None:
    for number in range(3):
        night(place, number, "t")
    start, found = threading.Barrier(4), list[Forgotten | None]()

    def machine() -> None:
        start.wait()
        found.append(forget(place, 31))

    machines = [threading.Thread(target=machine) for _ in range(4)]
    for each in machines:
        each.start()
    for each in machines:
        each.join(timeout=60)
    assert sorted(each is None for each in found) == [False, True, True, True]
    assert forget(place, 31) is None
    assert forget(place, 32) == Forgotten(1, 4)


@pytest.mark.parametrize("mark", [b"", b"yesterday", b"2026-01-01T00:00:00", b"9999-01-01T00:00:00+00:00", b"\xff"])
def test_a_mark_that_states_no_time_does_not_stop_it(tmp_path: Path, mark: bytes) -> None:
    night(str(tmp_path), 0, "t")
    night(str(tmp_path), 1, "t")
    (tmp_path / "~index" / "forgotten").write_bytes(mark)
    assert forget(str(tmp_path), 31) == Forgotten(1, 6)


def test_holds_keep_their_runs(tmp_path: Path) -> None:
    reports = str(tmp_path)
    for number in range(4):
        night(reports, number, "t", "u")
    hold(reports, "t", replace(document("t", 1), outcome=Outcome.MISMATCH))
    (tmp_path / "holds" / "u.json").write_text("{")
    event = "hold nightly-1:t t"
    mark = SentMark(event=event, receiver="x", begun_at=FIRST, ended="sent")
    claim(reports, mark_name(event, "key"), mark)
    assert forget(reports, 33) is not None
    assert [each.run_id for each in load_history(reports, "t")] == ["nightly-1:t", "nightly-3:t"]
    assert len(load_history(reports, "u")) == 4
    assert (tmp_path / mark_name(event, "key")).exists()
    assert (tmp_path / "pages" / page_name("nightly-1")).exists()


def test_a_message_that_may_have_arrived_keeps_its_mark(tmp_path: Path) -> None:
    reports, event = str(tmp_path), "failed nightly-0:t t"
    night(reports, 0, "t")
    claim(reports, mark_name(event, "key"), SentMark(event=event, receiver="x", begun_at=FIRST))
    (tmp_path / "~sent" / "damaged.json").write_text("{")
    forget(reports, 99)
    assert {each.name for each in (tmp_path / "~sent").iterdir()} == {
        mark_name(event, "key").partition("/")[2],
        "damaged.json",
    }


def test_what_a_table_needs_is_asked_by_its_name(tmp_path: Path) -> None:
    asked = list[str]()
    for number in range(2):
        night(str(tmp_path), number, "Shop.b", "t")

    def needs(table: str) -> TableNeeds:
        asked.append(table)
        return TableNeeds(held=None if table == "t" else frozenset())

    assert forget(str(tmp_path), 99, needs) == Forgotten(1, 1 + 1 + 2 + 2)
    assert sorted(asked) == ["Shop.b", "t"]


class _KilledError(BaseException):
    pass


CHANGES = ("write", "swap", "remove", "discard")


def killed_after(count: int, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> bool:
    """Let the process die before its change of this number. Whether it came so far."""
    left = [count]

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def change(self: KeptOnDisk, *args: object, **named: object) -> object:
            if not left[0]:
                raise _KilledError
            left[0] -= 1
            return real(self, *args, **named)

        return change

    with monkeypatch.context() as patched:
        for each in CHANGES:
            patched.setattr(KeptOnDisk, each, counted(getattr(KeptOnDisk, each)))
        try:
            work()
        except _KilledError:
            return True
    return False


def test_what_a_death_leaves_the_next_day_finishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tmp_path / "whole"
    for number in range(4):
        night(str(whole), number, "t", "Shop.b")
    expected = tmp_path / "expected"
    shutil.copytree(whole, expected)
    forget(str(expected), 32)
    deaths = 0
    while True:
        one = tmp_path / f"death-{deaths}"
        shutil.copytree(whole, one)
        died = killed_after(deaths, monkeypatch, lambda one=one: forget(str(one), 32))
        # At each moment every document that is there can be read, and results have one.
        there = {f"{each.table} {each.run_id}" for each in load_history(str(one))}
        assert len(there) >= 4
        results = {each.name for each in one.glob("*/expectations/*")}
        assert results <= {each.name for each in one.glob("*/*-optimize.json")}
        if not died:
            break
        # The mark of the day stands: nobody else does it again.
        later = FIRST + timedelta(days=32, hours=22)
        forget_documents(str(one), keep=KEEP + timedelta(hours=23), needs_of=lambda _: TableNeeds(), now=later)
        assert tree(report_store(str(one))) == tree(report_store(str(expected)))
        assert_complete(str(one), read_index(str(one)))
        deaths += 1
    assert deaths > 15


def test_a_document_that_is_written_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports, real = str(tmp_path), KeptOnDisk.discard
    for number in range(3):
        night(reports, number, "t")

    def discard(self: KeptOnDisk, name: str, *, read: object) -> bool:
        if name.startswith("t/nightly-0"):
            store(replace(document("t", 0), reason="checked again"), reports)
        return real(self, name, read=read)  # type: ignore[arg-type]

    monkeypatch.setattr(KeptOnDisk, "discard", discard)
    forget(reports, 32)
    assert [each.reason for each in load_history(reports, "t")][:1] == ["checked again"]
    assert len(load_history(reports, "t")) == 2


def test_nothing_is_removed_through_a_link_nor_what_is_not_ours(tmp_path: Path) -> None:
    reports, outside = tmp_path / "reports", tmp_path / "outside"
    for number in range(3):
        night(str(reports), number, "t")
        night(str(outside), number, "t", "u")
    (reports / "u").symlink_to(outside / "u")
    shutil.rmtree(reports / "t" / "expectations")
    (reports / "t" / "expectations").symlink_to(outside / "t" / "expectations")
    shutil.rmtree(reports / "pages" / "data-docs")
    (reports / "pages" / "data-docs").symlink_to(outside / "pages" / "data-docs")
    (reports / "pages" / "team.html").write_text("<p>our rota</p>")
    # A document in the folder of another table, and one of a name that is not its own.
    shutil.copy(outside / "u" / "nightly-0~3au-optimize.json", reports / "t")
    shutil.copy(outside / "t" / "nightly-0~3at-optimize.json", reports / "t" / "copied.json")
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    forget(str(reports), 32)
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert sorted(each.name for each in (reports / "t").glob("*.json")) == [
        "copied.json",
        "nightly-0~3au-optimize.json",
        "nightly-2~3at-optimize.json",
    ]
    assert (reports / "pages" / "team.html").exists()


def test_lists_of_orphan_files_go_with_their_document(tmp_path: Path) -> None:
    reports = str(tmp_path)
    for number in range(2):
        made = replace(document("t", number), operation=Operation.SWEEP, committed_version=None)
        store(made, reports)
        stem = document_name("t", run_id=made.run_id, operation=Operation.SWEEP).removesuffix(".json")
        for ending in ("orphans.jsonl", "orphans-17.jsonl"):
            (tmp_path / f"{stem}.{ending}").write_text("{}")
    assert forget(reports, 99) == Forgotten(1, 2)
    assert len([*(tmp_path / "t").glob("nightly-1*")]) == 3


def test_so_many_a_day(tmp_path: Path) -> None:
    for number in range(6):
        night(str(tmp_path), number, "t")
    now = FIRST + timedelta(days=35)
    found = forget_documents(str(tmp_path), keep=KEEP, needs_of=lambda _: TableNeeds(), now=now, most=2)
    assert found is not None and found.documents == 2
    assert next(each.run_id for each in load_history(str(tmp_path))) == "nightly-2:t"
    assert_complete(tmp_path, read_index(tmp_path))


def test_older_documents_are_counted_anew(tmp_path: Path) -> None:
    for number in range(50):
        store(document("t", number), tmp_path)
    assert keep_index(tmp_path, prefix="x").older == 10
    forget(str(tmp_path), 35)
    assert read_index(tmp_path).older == 5
    forget(str(tmp_path), 70)
    assert (read_index(tmp_path).older, len(read_index(tmp_path).documents)) == (0, 10)
    remove_index(tmp_path)
    assert (read_index(tmp_path).older, len(read_index(tmp_path).documents)) == (0, 10)


@pytest.mark.slow
def test_it_costs_what_goes_and_not_what_is_stored(requests: Requests, s3_bucket: Bucket, bucket_place: str) -> None:
    def aged(number: int) -> None:
        """The files of a night are as old as the night."""
        night(bucket_place, number, "t", "Shop.b")
        for each in s3_bucket.folder.rglob(f"*nightly-{number}[.~]*"):
            os.utime(each, ((FIRST + timedelta(days=number)).timestamp(),) * 2)

    for number in range(3):
        aged(number)
    costs = []
    for number in range(3, 6):
        aged(number)
        costs.append(requests.of(lambda number=number: forget(bucket_place, number + 28)))
    # Read are the mark of the day, the index twice, each document that goes twice, the page and the mark of a message.
    # Listed are holds, all folders, two folders of tables, bundles, and for each of these tables results, lists of
    # files and Data Docs; budgets, found tables, pages and marks of messages.
    # Changed are the mark of the day and the index; two results, two pages of Data Docs and a budget are looked for and
    # deleted; two documents, a page and a mark are marked as removed first.
    assert costs == [(3 + 2 * 2 + 2, 5 + 2 * 3 + 4, 2 + 5 * 2 + 4 * 3)] * 3
    assert requests.of(lambda: forget(bucket_place, 33)) == (1, 0, 0)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(run=NAMES, table=NAMES.filter(bool), other=NAMES)
def test_a_page_has_a_run_by_the_names_of_its_documents(run: str, table: str, other: str) -> None:
    for operation in (Operation.OPTIMIZE, Operation.PERSIST_DELETES):
        for run_id in (run, f"{run}:{table}"):
            name = document_name(table, run_id=run_id, operation=operation).partition("/")[2]
            assert RunNames.of([name]).has(slug(run))
    if not slug(other).startswith(slug("nightly-1")) and "~~" not in slug(other) and other != "nightly":
        assert not RunNames.of(["nightly-1~3at-optimize.json"]).has(slug(other))


def test_the_policy_names_the_age(tmp_path: Path) -> None:
    policy, reports = tmp_path / "tables.yaml", str(tmp_path / "reports")
    for number in range(2):
        night(reports, number, "t")
    policy.write_text("version: 1\nreports: {keep: 13d}\n")
    with pytest.raises(PolicyError, match=r"tables.yaml:2: reports.keep: expected at least 14d, found 13d"):
        load(policy)
    policy.write_text("version: 1\n")
    assert remove_old_reports(load(policy), reports, FIRST + timedelta(days=900)) is None
    policy.write_text("version: 1\nreports: {keep: 30d}\n")
    found = remove_old_reports(load(policy), reports, FIRST + timedelta(days=32))
    assert found == f"1 document and 7 other files of runs before {FIRST + timedelta(days=2):%Y-%m-%d} removed"
    assert remove_old_reports(load(policy), reports, FIRST + timedelta(days=34)) is None


def test_a_place_that_fails_hinders_no_night(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    policy, reports = tmp_path / "tables.yaml", tmp_path / "reports"
    policy.write_text("version: 1\nreports: {keep: 30d}\n")
    night(str(reports), 0, "t")
    night(str(reports), 1, "t")
    os.chmod(reports / "t", 0o000)
    (reports / "holds").write_text("in the way")
    assert remove_old_reports(load(policy), str(reports / "none"), FIRST + timedelta(days=99)) is None
    (reports / "~index" / "forgotten").mkdir()
    assert remove_old_reports(load(policy), str(reports), FIRST + timedelta(days=99)) is None
    assert "old reports are not removed" in caplog.text
