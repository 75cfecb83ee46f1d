"""Compactions that Paimon Java prepared before a commit of ours and commits after it: its committer accepts them.

What cannot be prevented is noticed: rows that our vectors hid are shown again, and the table is held.
"""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compacted, Compaction, Layout
from tests.formats.paimon.breaking import waiting
from tests.formats.paimon.contents import files, opened
from tests.formats.paimon.stale_compactions import COLUMNS, found, latest, merged, race, write
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.model import Outcome
from nightkeep.protocol import Seen
from nightkeep.records import held, last_look, release

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_RACES", "60:70").split(":"))


def reports(table: Path) -> Path:
    return table.parent / f"{table.name}-reports"


def create(engine: PaimonJava, table: Path, **options: str) -> Path:
    """One bucket: a base on the top level, a level above it of half its rows, and vectors between them."""
    needed = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    engine.create(table, Layout(COLUMNS, ["id"], options=needed | options))
    write(engine, table, range(2000), "base")
    engine.compact(table, Compaction(full=True, user="compactor"))
    write(engine, table, range(0, 2000, 2), "second")
    engine.compact(table, Compaction(user="compactor"))
    return table


@pytest.fixture(params=["false", "true"], ids=["bitmap32", "bitmap64"])
def levels(paimon_java: PaimonJava, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return create(paimon_java, tmp_path / "shop.db" / "levels", **{"deletion-vectors.bitmap64": request.param})


@pytest.fixture
def table(paimon_java: PaimonJava, tmp_path: Path) -> Path:
    return create(paimon_java, tmp_path / "shop.db" / "levels")


def keys(engine: PaimonJava, table: Path) -> set[int]:
    return {row[0] for row in merged(engine, table)}


def commit(engine: PaimonJava, prepared: Compacted) -> None:
    assert prepared.handle is not None
    engine.commit_prepared(prepared.handle)


def undo_our_deletes(engine: PaimonJava, table: Path) -> list[tuple[Any, ...]]:
    """Lets Java bring back 20 deleted keys for good, and 40 old rows of replaced ones; the rows as they should be."""
    prepared = engine.prepare_compact(table, Compaction(full=True, user="compactor"))
    write(engine, table, range(0, 2000, 50), "third")
    write(engine, table, range(1, 2000, 100), "gone", kind="-D")
    truth = merged(engine, table)
    assert upgrade(table).outcome is Outcome.VERIFIED
    commit(engine, prepared)
    return truth


def test_rows_that_come_back_put_the_table_on_hold(paimon_java: PaimonJava, levels: Path) -> None:
    truth = undo_our_deletes(paimon_java, levels)
    # Replaced rows are there twice, which a later gate sees; deleted keys are back for good.
    assert keys(paimon_java, levels) == {row[0] for row in truth} | {*range(1, 2000, 100)}
    before = files(levels)
    document = upgrade(levels)
    assert (document.outcome, document.committed_version, document.base_version) == (Outcome.MISMATCH, None, 7)
    assert "version 8, a compaction by 'compactor', shows rows again which version 7 hides" in str(document.reason)
    assert "2,000 rows were written of 2 files which show 1,940" in str(document.reason)
    assert document.go_back == "CALL sys.rollback(table => '" + document.table + "', version => '7')"
    (told,) = document.to_json()["undone"]  # type: ignore[misc]
    assert (told["version"], told["parent_version"], told["commit_user"]) == (8, 7, "compactor")
    hold = held(reports(levels), document.table)
    assert hold is not None and (hold.base_version, hold.go_back) == (7, document.go_back)
    assert upgrade(levels).outcome is Outcome.SKIPPED
    assert files(levels) == before


def test_a_rollback_to_the_version_before_brings_the_rows_back_to_what_they_were(
    paimon_java: PaimonJava, table: Path
) -> None:
    truth = undo_our_deletes(paimon_java, table)
    document = upgrade(table)
    assert document.base_version is not None
    paimon_java.rollback(table, snapshot=document.base_version)
    assert merged(paimon_java, table) == truth
    release(reports(table), document.table)
    assert upgrade(table).outcome is Outcome.UNCHANGED


def test_what_was_released_is_not_held_again(paimon_java: PaimonJava, table: Path) -> None:
    undo_our_deletes(paimon_java, table)
    document = upgrade(table)
    assert document.outcome is Outcome.MISMATCH
    release(reports(table), document.table)
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    # A look that starts over finds the same commit, and knows it.
    look = last_look(reports(table), document.table)
    assert look is not None and look.version == 8
    (marker,) = (reports(table) / "holds").glob("*~look.json")
    marker.write_text(marker.read_text().replace(look.identity, "0" * 32, 1))
    assert upgrade(table).outcome is Outcome.UNCHANGED
    # The next one is another one.
    write(paimon_java, table, range(0, 2000, 2), "fourth")
    paimon_java.compact(table, Compaction(user="compactor"))
    undo_our_deletes(paimon_java, table)
    again = upgrade(table)
    assert again.outcome is Outcome.MISMATCH
    assert again.base_version == latest(paimon_java, table) - 1


def test_a_dry_run_reports_and_writes_nothing(paimon_java: PaimonJava, table: Path) -> None:
    undo_our_deletes(paimon_java, table)
    shutil.rmtree(reports(table))
    document = upgrade(table, dry_run=True)
    assert document.outcome is Outcome.MISMATCH
    assert "a run puts the table on hold" in str(document.reason)
    assert not reports(table).exists()


def test_appends_and_upgrades_since_do_not_hide_it(paimon_java: PaimonJava, table: Path) -> None:
    """The compaction in between was committed while a run of ours had looked already."""
    undo_our_deletes(paimon_java, table)
    shutil.rmtree(reports(table))
    write(paimon_java, table, [5001], "fourth")
    paimon_java.compact(table, Compaction(user="compactor"))
    write(paimon_java, table, [5002], "fifth")
    assert [undone.commit.version for undone in found(table)] == [8]
    assert upgrade(table).base_version == 7


def test_vectors_that_a_compaction_of_other_levels_replaces_are_missed(paimon_java: PaimonJava, table: Path) -> None:
    """Java rewrites levels 3 and 4, and with them the vector file in which we hid rows of level 5."""
    write(paimon_java, table, range(0, 1600, 2), "third")
    assert upgrade(table).outcome is Outcome.VERIFIED
    assert {file.level for file in paimon_java.files(table)} == {3, 4, 5}
    eager = {"num-sorted-run.compaction-trigger": "2", "num-levels": "6"}
    prepared = paimon_java.prepare_compact(table, Compaction(user="compactor", options=eager, single_pick=True))
    assert {file["level"] for unit in prepared.units for file in unit["before"]} == {3, 4}
    write(paimon_java, table, range(1, 2000, 100), "gone", kind="-D")
    truth = merged(paimon_java, table)
    assert upgrade(table).outcome is Outcome.VERIFIED
    commit(paimon_java, prepared)
    assert len(merged(paimon_java, table)) == len(truth) + 20
    document = upgrade(table)
    assert document.outcome is Outcome.MISMATCH
    assert "20 rows of data-" in str(document.reason)
    assert "are no longer hidden by its deletion vector" in str(document.reason)


def test_marks_in_a_file_that_we_rewrote_hide_nothing(paimon_java: PaimonJava, table: Path) -> None:
    """The other way round: Java prepares an upgrade of level 0, and a full compaction of ours takes the files below."""
    with waiting(table, full=True) as ours:
        write(paimon_java, table, range(0, 2000, 50), "third")
        write(paimon_java, table, range(1, 2000, 100), "gone", kind="-D")
        truth = merged(paimon_java, table)
        prepared = paimon_java.prepare_compact(table, Compaction(user="compactor"))
        assert ours.go_on()["outcome"] == Outcome.VERIFIED
    # A look in between remembers our commit as seen; what it removed is read again.
    now_ms = time.time_ns() // 1_000_000
    ours_seen = opened(table).watch(opened(table).snapshot(), None, now_ms=now_ms)
    assert ours_seen is not None and not ours_seen.undone
    commit(paimon_java, prepared)
    assert keys(paimon_java, table) == {row[0] for row in truth} | {*range(1, 2000, 100)}
    again = opened(table).watch(opened(table).snapshot(), ours_seen.head, now_ms=now_ms)
    assert again is not None and [undone.commit.version for undone in again.undone] == [8]
    document = upgrade(table)
    assert document.outcome is Outcome.MISMATCH
    assert "rows were marked as deleted in data-" in str(document.reason)
    assert document.base_version == 7


def test_an_accepted_compaction_that_hurts_nothing_is_left_alone(paimon_java: PaimonJava, table: Path) -> None:
    prepared = paimon_java.prepare_compact(table, Compaction(full=True, user="compactor"))
    write(paimon_java, table, range(5000, 5100), "new")
    assert upgrade(table).outcome is Outcome.VERIFIED
    truth = merged(paimon_java, table)
    commit(paimon_java, prepared)
    assert latest(paimon_java, table) == 7
    assert merged(paimon_java, table) == sorted(paimon_java.read(table).rows) == truth
    assert found(table) == ()
    assert upgrade(table).outcome is Outcome.UNCHANGED


def test_what_expired_cannot_be_reported(paimon_java: PaimonJava, table: Path) -> None:
    undo_our_deletes(paimon_java, table)
    assert paimon_java.expire(table, retain_max=1) > 0
    assert found(table) == ()


def test_a_look_starts_where_the_last_one_ended(paimon_java: PaimonJava, table: Path) -> None:
    undo_our_deletes(paimon_java, table)
    there, now_ms = opened(table), time.time_ns() // 1_000_000
    head = there.snapshot()
    all_of_it = there.watch(head, None, now_ms=now_ms)
    assert all_of_it is not None and all_of_it.head.version == 8 and len(all_of_it.undone) == 1
    from_the_head = there.watch(head, all_of_it.head, now_ms=now_ms)
    assert from_the_head is not None and from_the_head.undone == ()
    # Numbers are given out again after a rollback: another content is another version.
    other = there.watch(head, Seen(8, "another"), now_ms=now_ms)
    assert other == all_of_it
    first = there.watch(there.snapshot(4), None, now_ms=now_ms)
    # What is over a week older than the newest version, nobody looks at, unless the last look was before.
    write(paimon_java, table, [5000], "later")
    newest = table / "snapshot/snapshot-9"
    later_ms = now_ms + 8 * 24 * 3600 * 1000
    newest.write_text(json.dumps({**json.loads(newest.read_text()), "timeMillis": later_ms}))
    late = opened(table)
    from_late, from_first = (
        late.watch(late.snapshot(), seen, now_ms=later_ms) for seen in (None, first and first.head)
    )
    assert from_late is not None and from_late.head.version == 9 and from_late.undone == ()
    assert from_first is not None and from_first.undone == all_of_it.undone
    # A clock of ours that is ahead makes nothing older.
    assert there.watch(head, None, now_ms=later_ms) == all_of_it


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=4))
def test_every_race_that_hurts_is_found_and_no_other(paimon_java: PaimonJava, tmp_path: Path, seed: int) -> None:
    ended = race(paimon_java, seed, tmp_path)
    assert bool(ended.found) == ended.hurt
