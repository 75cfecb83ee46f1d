"""A log that is cut, or a table created anew, gives numbers away again while a run works: no row of before comes back.

The other one writes the log by hand, as no engine cuts one: backups that are put back do, and scripts.
"""

import shutil
from pathlib import Path

import pytest
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.breaking import waiting
from tests.formats.delta.hand_made import HandMade, two_days
from tests.formats.delta.runs import files, opened, optimize
from tests.races.test_delta import assert_clean_loss, shown
from tests.support.extended import some_extended

from nightkeep.model import Outcome

PLANNED = 7
DAY = "2026-11-01"


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return two_days(tmp_path / "events")


def _commit_file(made: HandMade, version: int) -> Path:
    return made.folder / "_delta_log" / f"{version:020d}.json"


def _cut(made: HandMade, commits: int) -> None:
    """The planned version goes; as many new ones come as are asked for, the first with its number."""
    _commit_file(made, PLANNED).unlink()
    for number in range(commits):
        made.append(DAY, range(5000 + 10 * number, 5007 + 10 * number))


before_the_link = pytest.mark.parametrize("before", ["execute", "verify", "publish", "commit"])


@pytest.mark.few(4)
@before_the_link
@pytest.mark.parametrize("commits", some_extended([0, 1, 2, 5], keep=2))
def test_a_log_that_is_cut_meanwhile_is_a_conflict(made: HandMade, before: str, commits: int) -> None:
    with waiting(made.folder, before=before) as ours:
        _cut(made, commits)
        truth, at_start = shown(made.folder), files(made.folder)
        document = ours.go_on()
    assert_clean_loss(made.folder, document, at_start)
    assert f"version {PLANNED}" in document["reason"] + document["units"][0]["reason"]
    assert "rows differ" not in document["reason"]
    assert shown(made.folder) == truth
    assert optimize(made.folder, run_id="next").outcome is Outcome.VERIFIED
    assert shown(made.folder) == truth


def test_of_a_log_that_is_cut_readers_see_what_came_after(lakes: Lakes, made: HandMade) -> None:
    with waiting(made.folder, before="commit") as ours:
        _cut(made, 1)
        truth = len(shown(made.folder))
        assert ours.go_on()["outcome"] == Outcome.CONFLICTED
    assert len(lakes.delta_rs_read(made.folder).rows) == truth
    assert optimize(made.folder, run_id="next").outcome is Outcome.VERIFIED
    assert len(lakes.delta_rs_read(made.folder).rows) == truth


@before_the_link
def test_a_table_that_is_dropped_and_created_again_is_another_one(made: HandMade, before: str) -> None:
    with waiting(made.folder, before=before) as ours:
        shutil.rmtree(made.folder)
        again = two_days(made.folder)
        again.delete(DAY, [1, 2, 3])
        truth, at_start = shown(made.folder), files(made.folder)
        document = ours.go_on()
    assert_clean_loss(made.folder, document, at_start)
    assert shown(made.folder) == truth


@pytest.mark.parametrize("commits", [0, 1])
def test_a_cut_in_the_moment_of_the_link_is_reported_and_holds_the_table(made: HandMade, commits: int) -> None:
    """No store makes a new name conditional on another file: what cannot be prevented is noticed."""
    with waiting(made.folder, before="link") as ours:
        _cut(made, commits)
        at_start = files(made.folder)
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.MISMATCH, PLANNED + 1)
    assert f"version {PLANNED}, which it was staged on" in document["reason"]
    assert document["go_back"].endswith(f"TO VERSION AS OF {PLANNED - 1 + commits}")
    assert {name for name in at_start if ".staged-" not in name} <= files(made.folder).keys()
    held = optimize(made.folder, run_id="next")
    assert held.outcome is Outcome.SKIPPED and "on hold" in str(held.reason)


@pytest.mark.parametrize("commits", [2, 5])
def test_a_cut_in_the_moment_of_the_link_whose_numbers_are_taken_is_a_conflict(made: HandMade, commits: int) -> None:
    with waiting(made.folder, before="link") as ours:
        _cut(made, commits)
        truth, at_start = shown(made.folder), files(made.folder)
        document = ours.go_on()
    assert_clean_loss(made.folder, document, at_start)
    assert shown(made.folder) == truth


def test_a_version_is_the_same_read_from_commits_and_from_a_checkpoint(made: HandMade) -> None:
    before = opened(made.folder).snapshot().identity
    made.checkpoint()
    assert opened(made.folder).snapshot().identity == before
    made.append(DAY, [9000])
    assert opened(made.folder).snapshot(PLANNED).identity == before
    assert opened(made.folder).snapshot().identity != before


def test_a_version_with_another_past_is_another_one(made: HandMade) -> None:
    """Its own commit has the same bytes: what it holds has not."""
    before = opened(made.folder).snapshot().identity
    older = _commit_file(made, PLANNED - 1)
    older.write_text(older.read_text().splitlines()[0] + "\n")
    now = opened(made.folder).snapshot().identity
    assert now.commit == before.commit and now != before
