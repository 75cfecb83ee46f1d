"""A choice of documents by the index: what it reads, and that it is what a look at all documents would choose."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.records.test_kept_index import NIGHT, Requests, bucket_place, document, job, requests

import nightkeep
from nightkeep.model import Outcome
from nightkeep.records import read_history, store
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
