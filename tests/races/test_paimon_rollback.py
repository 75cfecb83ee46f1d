"""A rollback, or a table created anew, gives numbers away again while a run works: no row of before comes back.

Paimon's Java is the one that rolls back and commits; the run waits between two of its steps.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.breaking import waiting
from tests.formats.paimon.contents import files, opened
from tests.formats.paimon.upgrade import upgrade
from tests.races.test_paimon import assert_clean_loss, merged, shown
from tests.support.extended import some_extended

from nightkeep.formats.paimon.metadata import versions
from nightkeep.model import Outcome, VersionIdentity

PLANNED = 4
OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
LAYOUT = Layout([("id", "INT NOT NULL"), ("text", "STRING")], ["id"], options=OPTIONS)


@pytest.fixture
def table(paimon_java: PaimonJava, tmp_path: Path) -> Path:
    """Files on a level above 0, and two on level 0; the newest of them is what is rolled back."""
    folder = tmp_path / "shop.db" / "orders"
    _create(paimon_java, folder, "first")
    return folder


def _create(engine: PaimonJava, folder: Path, text: str) -> None:
    engine.create(folder, LAYOUT)
    _write(engine, folder, range(200), f"{text} base")
    engine.compact(folder, Compaction(full=True, user="compactor"))
    _write(engine, folder, range(0, 200, 10), f"{text} kept")
    _write(engine, folder, range(35), f"{text} rolled back")


def _write(engine: PaimonJava, folder: Path, keys: range, text: str) -> None:
    engine.write(folder, [["+U", key, f"{text} {key}"] for key in keys], Writer(user="shop-writer"))


def _roll_back(engine: PaimonJava, folder: Path, commits: int) -> None:
    engine.rollback(folder, snapshot=PLANNED - 1)
    for number in range(commits):
        _write(engine, folder, range(1000 + number, 1049 + number), "new")


before_the_link = pytest.mark.parametrize("before", ["execute", "verify", "publish", "commit"])


@pytest.mark.few(4)
@before_the_link
@pytest.mark.parametrize("commits", some_extended([0, 1, 2, 5], keep=2))
def test_a_rollback_meanwhile_is_a_conflict(paimon_java: PaimonJava, table: Path, before: str, commits: int) -> None:
    with waiting(table, before=before) as ours:
        _roll_back(paimon_java, table, commits)
        truth, at_start = merged(paimon_java, table), files(table)
        document = ours.go_on()
    assert_clean_loss(table, document, at_start)
    assert f"version {PLANNED}" in document["reason"] or f"version {PLANNED}" in document["units"][0]["reason"]
    assert "rows differ" not in document["reason"]
    assert merged(paimon_java, table) == truth
    again = upgrade(table, run_id="next")
    assert again.outcome is Outcome.VERIFIED
    assert shown(paimon_java, table) == merged(paimon_java, table) == truth


@before_the_link
def test_a_table_that_is_dropped_and_created_again_is_another_one(
    paimon_java: PaimonJava, table: Path, before: str
) -> None:
    with waiting(table, before=before) as ours:
        shutil.rmtree(table)
        _create(paimon_java, table, "second")
        truth, at_start = merged(paimon_java, table), files(table)
        document = ours.go_on()
    assert_clean_loss(table, document, at_start)
    assert merged(paimon_java, table) == truth
    assert upgrade(table, run_id="next").outcome is Outcome.VERIFIED
    assert shown(paimon_java, table) == truth


@pytest.mark.parametrize("commits", [0, 1])
def test_a_rollback_in_the_moment_of_the_link_is_reported_and_holds_the_table(
    paimon_java: PaimonJava, table: Path, commits: int
) -> None:
    """No file system makes a link conditional on another file: what cannot be prevented is noticed."""
    with waiting(table, before="link") as ours:
        _roll_back(paimon_java, table, commits)
        truth, at_start = merged(paimon_java, table), files(table)
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.MISMATCH, PLANNED + 1)
    assert f"snapshot {PLANNED}, which it was staged on" in document["reason"]
    assert document["go_back"].endswith(f"version => '{PLANNED - 1 + commits}')")
    assert {unit["outcome"] for unit in document["units"]} == {Outcome.MISMATCH}
    # Staged names and the hint apart, every file is there.
    assert {name for name in at_start if "/staged-" not in name} <= files(table).keys()
    held = upgrade(table, run_id="next")
    assert held.outcome is Outcome.SKIPPED and "on hold" in str(held.reason)
    # A retry of the run does not take it for proven, either: by what the snapshot itself names.
    assert upgrade(table, run_id="ours").outcome is Outcome.MISMATCH
    if commits == 0:
        # Its hint was not moved: engines that follow it do not see the snapshot.
        assert merged(paimon_java, table) == truth
    else:
        paimon_java.rollback(table, snapshot=PLANNED)
        assert merged(paimon_java, table) == truth


@pytest.mark.parametrize("commits", [2, 5])
def test_a_rollback_in_the_moment_of_the_link_whose_numbers_are_taken_is_a_conflict(
    paimon_java: PaimonJava, table: Path, commits: int
) -> None:
    with waiting(table, before="link") as ours:
        _roll_back(paimon_java, table, commits)
        truth, at_start = merged(paimon_java, table), files(table)
        document = ours.go_on()
    assert_clean_loss(table, document, at_start)
    assert merged(paimon_java, table) == truth


def test_expiry_of_the_parent_right_after_the_link_is_no_rollback(paimon_java: PaimonJava, table: Path) -> None:
    truth = merged(paimon_java, table)
    assert upgrade(table, run_id="ours").outcome is Outcome.VERIFIED
    paimon_java.expire(table, retain_max=1)
    document = upgrade(table, run_id="ours")
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, PLANNED + 1)
    assert shown(paimon_java, table) == truth


@pytest.mark.parametrize("before", ["execute", "verify"])
def test_a_base_that_expires_during_a_run_is_a_conflict(paimon_java: PaimonJava, table: Path, before: str) -> None:
    """Not a failure: what it reads as missing was never damaged."""
    with waiting(table, before=before) as ours:
        paimon_java.compact(table, Compaction(full=True, user="compactor"))
        paimon_java.expire(table, retain_max=1)
        truth, at_start = merged(paimon_java, table), files(table)
        document = ours.go_on()
    assert_clean_loss(table, document, at_start)
    assert f"version {PLANNED}, which was planned on, is gone" in document["reason"]
    assert merged(paimon_java, table) == truth


def test_a_newest_snapshot_that_expires_while_it_is_read_is_followed_by_another(
    paimon_java: PaimonJava, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, pending = versions.load, [True]

    def late(*arguments: Any, **named: Any) -> Any:
        while pending:
            pending.pop()
            _write(paimon_java, table, range(300, 310), "new")
            paimon_java.expire(table, retain_max=1)
        return load(*arguments, **named)

    monkeypatch.setattr(versions, "load", late)
    document = upgrade(table)
    assert (document.outcome, document.base_version) == (Outcome.VERIFIED, PLANNED + 1), document.reason


def test_identities_are_reported_and_are_those_of_what_is_there(paimon_java: PaimonJava, table: Path) -> None:
    base = opened(table).snapshot().identity
    document = upgrade(table)
    (commit,) = document.commits
    assert document.base_identity == commit.parent_identity == str(base)
    assert commit.identity == str(opened(table).snapshot().identity)
    assert VersionIdentity.parse(commit.identity).version == PLANNED + 1
    paimon_java.rollback(table, snapshot=PLANNED - 1)
    _write(paimon_java, table, range(5), "new")
    assert opened(table).snapshot().version == PLANNED
    assert opened(table).snapshot().identity != base
