"""Commits that show hidden rows again: told once, and the table is held."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nightkeep.formats.memory.format import table_of
from nightkeep.model import Address, Outcome
from nightkeep.protocol import Seen, Undone, Watch
from nightkeep.records import last_look
from nightkeep.running.rewrites.undone_deletes import find_undone_deletes, hold_if_undone, undone_facts

ADDRESS = Address("paimon", "/lake/t", "t")
HEAD = Seen(9, "nine")
FIRST, SECOND = (Undone(Seen(n, f"id{n}"), f"writer {n}", (f"rows of {n}",)) for n in (5, 7))


@dataclass
class Table:
    """A table whose history holds `undone`; it is asked from where it was looked at last."""

    undone: tuple[Undone, ...]
    since: list[Seen | None] = field(default_factory=list)
    address: Address = ADDRESS

    def watch(self, head: Any, since: Seen | None, *, now_ms: int) -> Watch | None:
        self.since.append(since)
        return Watch(HEAD, self.undone)

    @property
    def commits(self) -> Any:
        return SimpleNamespace(rollback=lambda version: f"roll back to {version}")


@pytest.fixture
def reports(tmp_path: Path) -> str:
    return str(tmp_path / "reports")


def looked(table: Any, reports: str) -> Watch:
    found = find_undone_deletes(table, table, reports, now_ms=0)
    assert found is not None
    return found


def test_a_commit_is_reported_once(reports: str) -> None:
    table = Table((FIRST,))
    assert looked(table, reports).undone == (FIRST,)
    hold_if_undone(looked(table, reports), None, reports=reports, table="t")
    table.undone = (FIRST, SECOND)
    assert looked(table, reports).undone == (SECOND,)
    hold_if_undone(looked(table, reports), None, reports=reports, table="t")
    assert looked(table, reports).undone == ()
    assert table.since[0] is None and table.since[-1] == HEAD


def test_another_commit_under_the_number_of_one_that_was_reported_is_new(reports: str) -> None:
    hold_if_undone(Watch(HEAD, (FIRST,)), None, reports=reports, table="t")
    again = Undone(Seen(FIRST.commit.version, "another"), "writer", ("rows",))
    assert looked(Table((FIRST, again)), reports).undone == (again,)


def test_what_was_reported_is_kept_up_to_a_number(reports: str) -> None:
    many = tuple(Undone(Seen(n, "id"), "writer", ()) for n in range(150))
    hold_if_undone(Watch(HEAD, many), None, reports=reports, table="t")
    look = last_look(reports, "t")
    assert look is not None and look.version == HEAD.version
    assert look.reported == tuple(f"{n} id" for n in range(50, 150))
    # The key that earlier releases wrote, and read.
    stored = [json.loads(file.read_text()) for file in Path(reports).rglob("*.json")]
    assert [each["told"] for each in stored if "identity" in each] == [[*look.reported]]


def test_a_format_without_such_commits_is_not_asked(reports: str) -> None:
    table: Any = table_of(Address("memory", "t", "t"))
    assert find_undone_deletes(table, table, reports, now_ms=0) is None


@pytest.mark.parametrize(("dry_run", "end"), [(True, "a run puts the table on hold"), (False, "on hold")])
def test_the_first_commit_is_the_one_to_go_back_before(dry_run: bool, end: str) -> None:
    table: Any = Table(())
    found = undone_facts(table, Watch(HEAD, (FIRST, SECOND)), dry_run=dry_run)
    assert found["outcome"] is Outcome.MISMATCH
    assert (found["base_version"], found["go_back"]) == (4, "roll back to 4")
    assert found["reason"] == (
        "version 5, a compaction by 'writer 5', shows rows again which version 4 hides: rows of 5; "
        f"so do 1 later versions; {end}; going back drops what was committed since"
    )
    assert [(each["version"], each["details"], each["details_total"]) for each in found["extra"]["undone"]] == [
        (5, ["rows of 5"], 1),
        (7, ["rows of 7"], 1),
    ]


def test_details_of_a_commit_are_cut_and_counted() -> None:
    table: Any = Table(())
    many = Undone(Seen(5, "id5"), "w" * 200, tuple(f"d{n}" for n in range(30)))
    (one,) = undone_facts(table, Watch(HEAD, (many,)), dry_run=False)["extra"]["undone"]
    assert (len(one["details"]), one["details_total"], len(one["commit_user"])) == (20, 30, 80)
