"""Two processes on one table, the other one always committing while ours is between two stages.

Nothing is lost, nothing is there twice, and whoever could not publish has removed what it wrote.
"""

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan, Writer
from tests.formats.paimon.breaking import breaking, upgrade_and_die, waiting
from tests.formats.paimon.contents import SAMPLES, commits_of, files, leftovers
from tests.formats.paimon.upgrade import upgrade
from tests.support.faulty_store import Fuse
from tests.support.processes import child

from nightkeep.model import Outcome
from nightkeep.records import release

Document = dict[str, Any]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """One bucket."""
    return Path(shutil.copytree(SAMPLES / "events_input", tmp_path / "events_input"))


def merged(engine: PaimonJava, table: Path) -> Rows:
    return sorted(engine.read(table, Scan(options=MERGE_ON_READ)).rows, key=repr)


def shown(engine: PaimonJava, table: Path) -> Rows:
    return sorted(engine.read(table).rows, key=repr)


def assert_clean_loss(table: Path, document: Document, before: dict[str, bytes]) -> None:
    """Conflicted, nothing of ours published and nothing of ours left."""
    assert document["outcome"] == Outcome.CONFLICTED, document["reason"]
    assert document["committed_version"] is None
    assert all(unit["outcome"] == Outcome.CONFLICTED and unit["reason"] for unit in document["units"])
    assert not [name for name in leftovers(table, before) if "nk-" in name]


def assert_next_run_finishes(engine: PaimonJava, table: Path, truth: Rows) -> None:
    assert upgrade(table, run_id="next").outcome is Outcome.VERIFIED
    assert shown(engine, table) == merged(engine, table) == truth


@pytest.mark.parametrize("before", ["publish", "link"])
def test_an_append_meanwhile_is_kept_and_waits_for_the_next_run(
    paimon_java: PaimonJava, orders: Path, before: str
) -> None:
    first = merged(paimon_java, orders)
    with waiting(orders, before=before) as ours:
        paimon_java.write(orders, [_order(10_001, "late"), _order(99_999, "new")], Writer(user="shop-writer"))
        truth = merged(paimon_java, orders)
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED
    assert (document["base_version"], document["parent_version"], document["committed_version"]) == (7, 8, 9)
    assert shown(paimon_java, orders) == first
    assert merged(paimon_java, orders) == truth
    assert_next_run_finishes(paimon_java, orders, truth)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("before", ["publish", "link"])
def test_a_compaction_of_the_same_bucket_wins(paimon_java: PaimonJava, events: Path, before: str, full: bool) -> None:
    truth = merged(paimon_java, events)
    with waiting(events, before=before) as ours:
        at_gate = files(events)
        paimon_java.compact(events, Compaction(full=full, user="compactor"))
        document = ours.go_on()
    assert_clean_loss(events, document, {name: data for name, data in at_gate.items() if "nk-" not in name})
    assert shown(paimon_java, events) == merged(paimon_java, events) == truth
    assert upgrade(events).outcome is Outcome.UNCHANGED


@pytest.fixture
def levels(paimon_java: PaimonJava, tmp_path: Path) -> Path:
    """One bucket with a base on the top level and vectors on it, and a level above large enough to stay."""
    table = tmp_path / "shop.db" / "levels"
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    paimon_java.create(table, Layout([("id", "INT NOT NULL"), ("text", "STRING")], ["id"], options=options))
    _write(paimon_java, table, range(2000), "base")
    paimon_java.compact(table, Compaction(full=True, user="compactor"))
    _write(paimon_java, table, range(0, 2000, 2), "second")
    paimon_java.compact(table, Compaction(user="compactor"))
    return table


def test_a_full_compaction_prepared_before_our_plan_wins(paimon_java: PaimonJava, levels: Path) -> None:
    prepared = paimon_java.prepare_compact(levels, Compaction(full=True, user="compactor"))
    _write(paimon_java, levels, range(0, 2000, 50), "third")
    truth = merged(paimon_java, levels)
    with waiting(levels) as ours:
        at_gate = {name: data for name, data in files(levels).items() if "nk-" not in name}
        assert prepared.handle is not None
        paimon_java.commit_prepared(prepared.handle)
        document = ours.go_on()
    assert_clean_loss(levels, document, at_gate)
    assert merged(paimon_java, levels) == truth
    assert_next_run_finishes(paimon_java, levels, truth)


def test_a_full_compaction_while_we_hold_stale_levels_wins(paimon_java: PaimonJava, levels: Path) -> None:
    _write(paimon_java, levels, range(0, 2000, 50), "third")
    with waiting(levels, before="execute") as ours:
        paimon_java.compact(levels, Compaction(full=True, user="compactor"))
        _write(paimon_java, levels, range(1, 2000, 50), "fourth")
        truth = merged(paimon_java, levels)
        before = files(levels)
        document = ours.go_on()
    assert_clean_loss(levels, document, before)
    assert_next_run_finishes(paimon_java, levels, truth)


def test_a_foreign_commit_that_ignores_ours_is_found_by_the_next_run(paimon_java: PaimonJava, levels: Path) -> None:
    """The other order of E9 is Java's to prevent, and it does not: it puts back rows that our vectors hid."""
    prepared = paimon_java.prepare_compact(levels, Compaction(full=True, user="compactor"))
    _write(paimon_java, levels, range(0, 2000, 50), "third")
    truth = merged(paimon_java, levels)
    assert upgrade(levels).outcome is Outcome.VERIFIED
    assert prepared.handle is not None
    paimon_java.commit_prepared(prepared.handle)
    assert len(shown(paimon_java, levels)) > len(truth)
    document = upgrade(levels)
    assert (document.outcome, document.committed_version) == (Outcome.MISMATCH, None)
    release(levels.parent / f"{levels.name}-reports", document.table)
    # Whoever lifts the hold without going back is still told by the gate, and may mend replaced keys.
    _write(paimon_java, levels, [5001], "fourth")
    document = upgrade(levels)
    assert document.outcome is Outcome.MISMATCH
    assert document.committed_version is None
    assert upgrade(levels, full=True).outcome is Outcome.VERIFIED
    assert len(shown(paimon_java, levels)) == len(truth) + 1


def test_a_compaction_of_another_bucket_and_ours_keep_each_others_vectors(
    paimon_java: PaimonJava, orders: Path
) -> None:
    truth = merged(paimon_java, orders)
    with waiting(orders, where="dt = '2026-11-01'") as ours:
        paimon_java.compact(orders, Compaction(partition=["2026-11-02"], user="compactor"))
        theirs = _vectors(paimon_java, orders)
        document = ours.go_on()
    assert (document["outcome"], document["parent_version"], document["committed_version"]) == ("verified", 8, 9)
    now = _vectors(paimon_java, orders)
    mine = {("2026-11-01", 0), ("2026-11-01", 1)}
    assert {place: v for place, v in now.items() if place not in mine} == {
        place: v for place, v in theirs.items() if place not in mine
    }
    assert all(now[place] != theirs[place] for place in mine)
    assert merged(paimon_java, orders) == truth
    assert_next_run_finishes(paimon_java, orders, truth)


def test_only_the_bucket_that_was_compacted_meanwhile_is_left_out(paimon_java: PaimonJava, orders: Path) -> None:
    truth = merged(paimon_java, orders)
    before = files(orders)
    with waiting(orders) as ours:
        paimon_java.compact(orders, Compaction(partition=["2026-11-02"], buckets=[1], user="compactor"))
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, 9)
    outcomes = {(unit["partition"], unit["bucket"]): unit["outcome"] for unit in document["units"]}
    assert outcomes.pop(("dt=2026-11-02", 1)) == Outcome.CONFLICTED
    assert set(outcomes.values()) == {Outcome.VERIFIED}
    assert not [name for name in leftovers(orders, before) if "nk-" in name]
    assert shown(paimon_java, orders) == merged(paimon_java, orders) == truth


@pytest.mark.few(2)
@pytest.mark.parametrize("before", ["publish", "link"])
@pytest.mark.parametrize("other", ["ours", "another run"])
def test_of_two_of_us_one_commits(paimon_java: PaimonJava, orders: Path, before: str, other: str) -> None:
    """Two runs, and two attempts of one run whose scheduler took the first for dead."""
    truth, at_start = merged(paimon_java, orders), files(orders)
    with waiting(orders, before=before) as first, waiting(orders, before=before, run_id=other) as second:
        first.release()
        second.release()
        documents = [first.document(), second.document()]
    # An attempt that lost to another one of its run tells of what the run published.
    lost = (Outcome.VERIFIED, 8) if other == "ours" else (Outcome.CONFLICTED, 0)
    found = sorted((document["outcome"], document["committed_version"] or 0) for document in documents)
    assert found == [lost, (Outcome.VERIFIED, 8)]
    assert not (orders / "snapshot/snapshot-9").exists()
    assert not [name for name in leftovers(orders, at_start) if "nk-" in name]
    assert shown(paimon_java, orders) == merged(paimon_java, orders) == truth


Change = dict[str, str]
ADDED: Change = {"change": "add_column", "name": "colour", "type": "STRING"}


@pytest.mark.few(1)
@pytest.mark.parametrize("before", ["execute", "verify", "publish", "link"])
def test_an_added_column_does_not_stop_us(paimon_java: PaimonJava, orders: Path, before: str) -> None:
    truth = merged(paimon_java, orders)
    with waiting(orders, before=before) as ours:
        paimon_java.alter(orders, ADDED)
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.VERIFIED, 8), document["reason"]
    assert shown(paimon_java, orders) == [(*row, None) for row in truth]


def test_an_added_column_with_rows_in_it_is_rebased_on(paimon_java: PaimonJava, orders: Path) -> None:
    with waiting(orders) as ours:
        paimon_java.alter(orders, ADDED)
        paimon_java.write(orders, [[*_order(10_001, "late"), "red"]], Writer(user="shop-writer"))
        truth = merged(paimon_java, orders)
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.VERIFIED, 9), document["reason"]
    snapshot = paimon_java.snapshot(orders)
    assert snapshot is not None and snapshot["schemaId"] == 1
    assert merged(paimon_java, orders) == truth
    assert_next_run_finishes(paimon_java, orders, truth)


@pytest.mark.in_turn("before")
@pytest.mark.parametrize("before", ["execute", "verify", "publish"])
@pytest.mark.parametrize(
    "change",
    [
        {"change": "drop_column", "name": "note"},
        {"change": "rename_column", "name": "note", "to": "remark"},
        {"change": "set_option", "name": "snapshot.num-retained.max", "value": "20"},
        {"change": "set_option", "name": "target-file-size", "value": "64 mb"},
    ],
    ids=lambda change: change["change"] + " " + change["name"],
)
def test_any_other_schema_change_wins(paimon_java: PaimonJava, orders: Path, change: Change, before: str) -> None:
    at_start = files(orders)
    with waiting(orders, before=before) as ours:
        paimon_java.alter(orders, change)
        truth = merged(paimon_java, orders)
        document = ours.go_on()
    assert_clean_loss(orders, document, at_start)
    assert "schema" in document["units"][0]["reason"]
    assert_next_run_finishes(paimon_java, orders, truth)


def test_a_dropped_partition_stays_dropped(paimon_java: PaimonJava, orders: Path) -> None:
    with waiting(orders) as ours:
        paimon_java.truncate(orders, {"dt": "2026-11-02"})
        truth = merged(paimon_java, orders)
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, 9)
    outcomes = {unit["partition"]: unit["outcome"] for unit in document["units"]}
    assert outcomes == {"dt=2026-11-01": "verified", "dt=2026-11-02": "conflicted", "dt=2026-11-03": "verified"}
    assert shown(paimon_java, orders) == merged(paimon_java, orders) == truth


@pytest.mark.parametrize("rewritten", [False, True], ids=["emptied", "filled again"])
def test_a_truncated_table_is_not_filled_by_us(paimon_java: PaimonJava, events: Path, rewritten: bool) -> None:
    before = files(events)
    with waiting(events) as ours:
        paimon_java.truncate(events)
        if rewritten:
            paimon_java.write(events, [["+I", 1, "view", 1]], Writer(user="shop-writer"))
        document = ours.go_on()
    assert_clean_loss(events, document, before)
    assert merged(paimon_java, events) == ([(1, "view", 1)] if rewritten else [])


def test_expiry_of_older_versions_does_not_stop_us(paimon_java: PaimonJava, orders: Path) -> None:
    truth = merged(paimon_java, orders)
    with waiting(orders) as ours:
        assert paimon_java.expire(orders, retain_max=1) > 0
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.VERIFIED, 8)
    assert shown(paimon_java, orders) == truth


def test_expiry_of_the_planned_version_leaves_the_work_to_the_next_run(paimon_java: PaimonJava, orders: Path) -> None:
    before = files(orders)
    with waiting(orders) as ours:
        paimon_java.write(orders, [_order(10_001, "late")], Writer(user="shop-writer"))
        truth = merged(paimon_java, orders)
        paimon_java.expire(orders, retain_max=1)
        document = ours.go_on()
    assert_clean_loss(orders, document, before)
    assert_next_run_finishes(paimon_java, orders, truth)


def test_expiry_after_our_commit_keeps_what_we_committed(paimon_java: PaimonJava, orders: Path) -> None:
    truth = merged(paimon_java, orders)
    assert upgrade(orders).outcome is Outcome.VERIFIED
    paimon_java.write(orders, [_order(10_001, "late")], Writer(user="shop-writer"))
    assert paimon_java.expire(orders, retain_max=1) > 0
    assert shown(paimon_java, orders) == truth


def test_a_retry_after_a_kill_behind_the_commit_finds_it_below_newer_ones(
    paimon_java: PaimonJava, orders: Path, tmp_path: Path
) -> None:
    fuse = Fuse()
    with breaking(fuse):
        upgrade(Path(shutil.copytree(orders, tmp_path / "clean")))
    (linked,) = (n for n, point in enumerate(fuse.passed, start=1) if str(point) == "after link snapshot-8")
    with child(upgrade_and_die, orders, "ours", linked) as process:
        assert process.end() == -signal.SIGKILL
    paimon_java.write(orders, [_order(10_001, "late")], Writer(user="shop-writer"))
    truth = merged(paimon_java, orders)
    document = upgrade(orders, run_id="ours")
    assert (document.outcome, document.parent_version, document.committed_version) == (Outcome.VERIFIED, 7, 8)
    assert commits_of(orders, "ours") == [8]
    assert_next_run_finishes(paimon_java, orders, truth)


def _order(number: int, status: str) -> list[Any]:
    day = ("2026-11-01", "2026-11-02", "2026-11-03")[(number - 10_000) % 3]
    return ["+U", day, number, "C-00001", status, "1.00", None, "2026-11-04T00:00:00.000000"]


def _write(engine: PaimonJava, table: Path, keys: range | list[int], text: str) -> None:
    engine.write(table, [["+U", key, f"{text} {key}"] for key in keys], Writer(user="writer"))


def _vectors(engine: PaimonJava, table: Path) -> dict[tuple[Any, int], dict[str, Any]]:
    found = engine.vectors(table)
    return {(one.partition[0], one.bucket): {n: f["positions"] for n, f in one.files.items()} for one in found}
