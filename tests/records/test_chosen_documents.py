"""A choice of documents by the index: what it reads, and that it is what a look at all documents would choose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.records.test_kept_index import NIGHT, Requests, bucket_place, document, job, requests

import nightkeep
from nightkeep.api.stored import shown_history
from nightkeep.commands.app import main
from nightkeep.model import Outcome
from nightkeep.records import hold, read_history, store
from nightkeep.records.chosen_documents import chosen_documents
from nightkeep.records.kept_index import NEWEST, keep_index, remove_index

__all__ = ["bucket_place", "requests"]

TABLES = ("a", "b", "c")


def nights(place: str | Path, count: int, *, indexed: bool = True) -> None:
    for night in range(count):
        bad = Outcome.FAILED if night % 5 == 0 else Outcome.VERIFIED
        job(place, *(document(table, night, bad if table == "b" else Outcome.UNCHANGED) for table in TABLES))
    if indexed:
        keep_index(place, prefix="x")


@pytest.mark.slow
def test_the_last_runs_cost_what_they_show(requests: Requests, bucket_place: str) -> None:
    nights(bucket_place, 12)
    found = list[object]()
    cost = requests.of(lambda: found.extend(nightkeep.history(last=2, reports=bucket_place)))
    # The index and the documents; that there is an index, and which bundles came since; of each table its releases.
    assert len(found) == 2 * len(TABLES) and cost[0] == 1 + 2 * len(TABLES) and cost[2] == 0
    assert cost[1] <= 3


@pytest.mark.parametrize("count", [3, NEWEST - 1, NEWEST, NEWEST + 5])
@pytest.mark.parametrize(
    "asked",
    [{"last": 1}, {"last": 7}, {"last": NEWEST + 1}, {"failed": True}, {"last": 3, "failed": True},
     {"since": "2026-11-03"}, {"since": f"{NIGHT.date()}"}, {"since": "2026-12-05", "operation": "optimize"},
     {"last": 2, "operation": "sweep"}],
)  # fmt: skip
def test_what_is_chosen_by_the_index_is_what_a_look_at_all_documents_chooses(
    tmp_path: Path, asked: dict[str, object], count: int
) -> None:
    nights(tmp_path, count)
    by_index = [*nightkeep.history(reports=tmp_path, **asked)]  # type: ignore[arg-type]
    remove_index(tmp_path)
    assert by_index == [*nightkeep.history(reports=tmp_path, **asked)]  # type: ignore[arg-type]


def test_where_the_index_does_not_reach_all_documents_are_looked_at(tmp_path: Path) -> None:
    nights(tmp_path, NEWEST + 5)
    assert chosen_documents(tmp_path, lambda each: each, lambda _: None) is None
    assert chosen_documents(tmp_path, lambda each: each, lambda _: NIGHT) is None
    found = chosen_documents(tmp_path, lambda each: [*each][-2:], lambda some: some[0].started_at)
    assert found is not None and len(found.documents) == 2
    remove_index(tmp_path)
    assert chosen_documents(tmp_path, lambda each: each, lambda _: None) is None


def test_one_that_is_gone_is_left_out_and_a_damaged_one_is_one_line(tmp_path: Path) -> None:
    nights(tmp_path, 3)
    gone, damaged = (Path(store(document(table, 2), tmp_path)) for table in "ac")
    keep_index(tmp_path, prefix="x")
    gone.unlink()
    damaged.write_text("{")
    found = nightkeep.history(last=1, reports=tmp_path)
    assert [each.table for each in found] == ["b"]
    assert [each.path for each in found.unreadable] == [str(damaged)]
    assert {each.table for each in read_history(tmp_path).documents} == {*TABLES}


@pytest.mark.parametrize(
    "asked", [{}, {"last": 3}, {"since": "2026-11-03"}, {"failed": True}, {"operation": "optimize"}]
)
@pytest.mark.parametrize("count", [3, 19, 20, 21, NEWEST + 5])
def test_what_people_are_shown_is_the_text_of_the_documents(
    tmp_path: Path, asked: dict[str, object], count: int
) -> None:
    nights(tmp_path, count)
    limited = count >= 20 and not asked
    full = nightkeep.history(reports=tmp_path, **({"last": 20} if limited else asked))  # type: ignore[arg-type]
    shown = shown_history(reports=tmp_path, **asked)  # type: ignore[arg-type]
    note = "\nThe newest 20 runs; more by --last N or --since DATE"
    assert str(shown) == str(full) + (note if limited else "")
    assert str(shown_history("b", reports=tmp_path)) == str(nightkeep.history("b", reports=tmp_path))


@pytest.mark.slow
def test_what_people_are_shown_reads_what_changed_something(requests: Requests, bucket_place: str) -> None:
    nights(bucket_place, 21)
    found = list[object]()
    cost = requests.of(lambda: found.append(str(shown_history(reports=bucket_place))))
    # The index, and of 20 nights the documents of one table of three.
    assert cost[0] == 1 + 20 and cost[1] <= 3 and cost[2] == 0


def test_the_command_prints_the_newest_runs_and_all_documents_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nights(tmp_path, 22)
    for arguments, expected in ((["--json"], 66), (["--last", "21", "--json"], 63)):
        with pytest.raises(SystemExit, match="0"):
            main(["history", "--reports", str(tmp_path), *arguments])
        assert len(json.loads(capsys.readouterr().out)) == expected
    with pytest.raises(SystemExit, match="0"):
        main(["history", "--reports", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "nightly-2," in printed and "nightly-1," not in printed and "The newest 20 runs" in printed


def test_releases_are_shown_beside_the_newest_runs(tmp_path: Path) -> None:
    nights(tmp_path, 30)
    hold(tmp_path, "b", document("b", 1, Outcome.MISMATCH))
    nightkeep.release("b", reason="looked at", reports=tmp_path)
    assert "looked at" in str(shown_history(reports=tmp_path))
    assert "looked at" not in str(shown_history(last=20, reports=tmp_path))
