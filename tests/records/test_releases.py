"""Who released a table, when and why: kept beside its holds, and shown by the history."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.commands import said

import nightkeep
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, hold, store
from nightkeep.records.releases import Released, keep_release, read_releases

NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)


def held(reports: Path, run_id: str) -> RunDocument:
    document = RunDocument(
        run_id=run_id,
        table="t",
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=Outcome.MISMATCH,
        reason="the check of published version 7 failed",
        committed_version=7,
        started_at=NOW,
        finished_at=NOW,
    )
    store(document, reports)
    hold(reports, "t", document)
    return document


@pytest.fixture
def where(tmp_path: Path) -> list[str]:
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:\n  - {{name: t, table: 'delta:{tmp_path}/t'}}\n")
    return ["--policy", str(tmp_path / "tables.yaml"), "--reports", str(tmp_path / "reports")]


def test_the_history_states_who_when_and_why(
    tmp_path: Path, where: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    held(tmp_path / "reports", "night-1")
    done = said(capsys, "release", "t", "--reason", "rolled back by hand", "--json", *where)
    assert (done.status, done.json["lifted"], done.json["run_id"]) == (0, True, "night-1")
    assert (done.json["released"]["user"], done.json["released"]["reason"]) == ("ada", "rolled back by hand")
    (document,) = said(capsys, "history", "t", "--json", *where).json
    at = datetime.fromisoformat(document["released"].pop("at"))
    assert document["released"] == done.json["released"] and at.tzinfo is not None
    text = said(capsys, "history", *where).out
    assert "t: hold of night-1 released by ada at " in text and text.endswith("UTC: rolled back by hand\n")
    (kept,) = read_releases(tmp_path / "reports", "t")
    assert kept.hold["committed_version"] == 7 and kept.hold["reason"] == "the check of published version 7 failed"
    # A second hold and its release do not hide the first one.
    held(tmp_path / "reports", "night-2")
    assert said(capsys, "release", "t", *where).out == "t: hold of run night-2 released\n"
    past = said(capsys, "history", "t", "--json", *where).json
    assert [each["released"]["reason"] for each in past] == ["rolled back by hand", None]


def test_a_hold_that_cannot_be_read_is_in_the_history_too(tmp_path: Path, where: list[str]) -> None:
    document = held(tmp_path / "reports", "night-1")
    (tmp_path / "reports/holds/t.json").write_text("{")
    nightkeep.release("t", reason="damaged", policy=where[1], reports=where[3])
    (kept,) = read_releases(tmp_path / "reports", "t")
    assert kept.runs == () and "holds/t.json" in str(kept.hold["unreadable"])
    found = nightkeep.history(policy=where[1], reports=where[3])
    assert found.releases == (kept,) and found.documents == (document,)


def test_nothing_is_kept_of_a_release_from_nothing(tmp_path: Path, where: list[str]) -> None:
    assert nightkeep.release("t", policy=where[1], reports=where[3]).released is None
    assert read_releases(tmp_path / "reports", "t") == ()


def test_where_it_cannot_be_kept_the_table_is_released_and_the_answer_says_so(tmp_path: Path, where: list[str]) -> None:
    held(tmp_path / "reports", "night-1")
    (tmp_path / "reports/holds/t~releases.json").mkdir()
    done = nightkeep.release("t", policy=where[1], reports=where[3])
    assert done.hold is not None and not (tmp_path / "reports/holds/t.json").exists()
    assert "; the history does not have it: " in str(done)


@pytest.mark.parametrize("text", ["{", "{}", '[{"table": "t"}]'])
def test_a_damaged_file_is_none_to_readers_and_is_not_written_over(tmp_path: Path, text: str) -> None:
    file = tmp_path / "holds/t~releases.json"
    file.parent.mkdir()
    file.write_text(text)
    assert read_releases(tmp_path, "t") == ()
    assert keep_release(tmp_path, Released(table="t", runs=(), user="ada", at=NOW)) is not None
    assert file.read_text() == text


def test_the_newest_are_kept_and_unknown_keys_with_them(tmp_path: Path) -> None:
    for number in range(103):
        assert keep_release(tmp_path, Released(table="t", runs=(f"r{number}",), user="ada", at=NOW)) is None
    file = tmp_path / "holds/t~releases.json"
    listed = json.loads(file.read_text())
    assert [each["runs"] for each in (listed[0], listed[-1])] == [["r3"], ["r102"]] and len(listed) == 100
    file.write_text(json.dumps([{**listed[0], "later": 1}]))
    assert keep_release(tmp_path, Released(table="t", runs=(), user="ada", at=NOW)) is None
    assert json.loads(file.read_text())[0]["later"] == 1
