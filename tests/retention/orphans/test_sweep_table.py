"""What a sweep does to orphans: quarantined, restored, deleted, purged; and what it leaves where it is."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import cast

import pyarrow as pa
import pytest
from tests.retention.toy_table import NOW, Toy, ToyWithHistory, age, run_of

from nightkeep.errors import CorruptMetadata, EvidenceError, RefusedTable, UsageError
from nightkeep.model import Operation, Outcome, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.retention.orphans import lease
from nightkeep.retention.orphans.quarantine import close, purge, restore
from nightkeep.retention.orphans.quarantine_manifest import Mark, PlannedMove, folder_of, parts, quarantines, read_mark
from nightkeep.retention.orphans.reconcile import Where, reconcile
from nightkeep.retention.orphans.removal import _Progress, remove
from nightkeep.retention.orphans.sets import ORPHANS, FileTotals
from nightkeep.retention.orphans.sweep_request import RestoreResult
from nightkeep.retention.sweep import sweep_facts as document
from nightkeep.storage import ListedFile, LocalStorage, MovedFolders
from nightkeep.storage.verbs import always

OLD = ("data/day=1/old one.dat", "data/old.dat", "meta/l-lost.json")
ACTING = [SweepMode.QUARANTINE, SweepMode.DELETE]


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """One snapshot over two files, and three orphans."""
    return _filled(Toy.at(tmp_path / "toy"))


def _filled(toy: Toy) -> Toy:
    toy.write("data/a.dat", "data/day=1/b.dat", *OLD)
    toy.commit(1, "data/a.dat", "data/day=1/b.dat")
    return toy


def test_orphans_are_quarantined_and_restored_byte_for_byte(toy: Toy) -> None:
    before = toy.files()
    told = toy.swept(SweepMode.QUARANTINE)
    assert told.outcome is Outcome.VERIFIED and told.acted == told.counted.orphans  # type: ignore[union-attr]
    assert toy.files() == {name: file for name, file in before.items() if name not in OLD}
    assert toy.aside() == [before[name] for name in OLD]
    assert told.folder == folder_of(toy.table_files(), run_of("run-1"))
    assert toy.swept().outcome is Outcome.UNCHANGED
    back = restore(toy.table_files(), "run-1", now_ms=NOW)
    assert (back.outcome, back.files, back.bytes) == (Outcome.VERIFIED, 3, told.acted.bytes)
    assert toy.files() == before and toy.aside() == []
    assert restore(toy.table_files(), "run-1", now_ms=NOW).outcome is Outcome.UNCHANGED


def test_the_list_of_a_quarantine_states_what_when_and_why(toy: Toy) -> None:
    folder = toy.folder / (toy.swept(SweepMode.QUARANTINE, "manual__2026-11-21T00:00:00+00:00/x").folder or "")
    assert folder.parent == toy.folder / "_nightkeep/quarantine"
    assert folder.name.startswith("manual-2026-11-21T00-00-00-00-00-x-")
    head, *files = map(json.loads, (folder / "plan-00000.jsonl").read_text().splitlines())
    assert head["run_id"] == "manual__2026-11-21T00:00:00+00:00/x" and head["why"] == "nothing needs these files"
    assert [file["path"] for file in files] == list(OLD)
    assert [(toy.folder / file["to"]).stat().st_size for file in files] == [file["bytes"] for file in files]
    assert files[0]["modified_at"] == "2026-10-23T00:00:00.000+00:00"
    names = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert names == ["00000.file", "00001.file", "00002.file", "done-00000.json", "plan-00000.jsonl"]


def test_orphans_are_deleted_when_asked_to(toy: Toy) -> None:
    before = toy.files()
    told = toy.swept(SweepMode.DELETE)
    assert (told.outcome, told.acted.files, told.folder) == (Outcome.VERIFIED, 3, None)
    assert toy.files() == {name: file for name, file in before.items() if name not in OLD}
    assert not any(path.is_file() for path in (toy.folder / "_nightkeep").rglob("*"))


def test_a_part_that_takes_too_long_is_given_up(toy: Toy) -> None:
    late = lease.LEASE_MS // 2 + 1
    before, clock = toy.files(), iter([0, 1, 2, 3, late, late])
    work = _Progress(toy.table_files(), run_of("run-1"), clock=lambda: next(clock))
    work.quarantine(_orphans(before))
    assert work.gone.files == 1 and [name for name, _ in work.failed] == list(OLD[1:])
    assert "it took too long; it is left" in work.failed[0][1] and "its part took too long" in work.failed[1][1]
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 1
    assert toy.files() == before


def _orphans(files: dict[str, tuple[bytes, int]]) -> pa.RecordBatch:
    rows = [
        {"name": name, "bytes": len(files[name][0]), "modified_ms": files[name][1] // 1_000_000, "kind": "data"}
        for name in OLD
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ORPHANS)


@pytest.mark.parametrize("hours", [0, 1], ids=["clocks apart", "in the same time"])
def test_a_mover_that_took_too_long_leaves_what_another_host_settled(toy: Toy, hours: int) -> None:
    """Between the second name and the end of the first one, the other host closes the part in favour of home."""
    before, now = toy.files(), [0]

    @dataclass(frozen=True)
    class Slow(LocalStorage):
        def _linked(self, source: int, target: int, name: str, other: str) -> None:
            LocalStorage._linked(self, source, target, name, other)
            if name == OLD[1]:
                now[0] += hours * 3_600_000
                assert close(toy.table_files(), run_of("run-2")) == ("run-1",)

    table_files = replace(toy.table_files(), storage=Slow(toy.storage.root))
    work = _Progress(table_files, run_of("run-1"), clock=lambda: now[0])
    work.quarantine(_orphans(before))
    assert (toy.folder / OLD[1]).exists() and OLD[1] in [name for name, _ in work.failed]
    assert work.gone.files == (1 if hours else 2)
    restore(toy.table_files(), "run-1", now_ms=NOW)
    assert toy.files() == before


def test_two_names_are_settled_only_while_home_stays_as_it_is(toy: Toy) -> None:
    """Read at length, as a bucket's large objects are: meanwhile the one at home goes."""
    before = toy.files()

    @dataclass(frozen=True)
    class Slow(LocalStorage):
        def open(self, name: str) -> pa.NativeFile:
            opened = LocalStorage.open(self, name)
            if name.endswith(".file"):
                (toy.folder / OLD[0]).unlink()
            return opened

    (toy.folder / "copy").hardlink_to(toy.folder / OLD[0])
    (toy.folder / "copy").rename(toy.folder / "copy.file")
    file = PlannedMove(OLD[0], "copy.file", 0, 0, "data")
    with pytest.raises(OSError, match="nobody else to change it"):
        reconcile(Slow(toy.storage.root), file)
    assert (toy.folder / "copy.file").read_bytes() == before[OLD[0]][0]
    assert reconcile(toy.storage, file) is Where.ASIDE


def test_what_is_in_quarantine_is_neither_listed_nor_swept(toy: Toy) -> None:
    toy.swept(SweepMode.QUARANTINE)
    for path in (toy.folder / "_nightkeep").rglob("*.file"):
        path.rename(path.with_suffix(".dat"))
    counted = toy.swept().counted
    assert counted is not None and counted.listed.files == 4


def test_a_retry_of_a_run_adds_to_its_quarantine(toy: Toy) -> None:
    before = toy.files()
    toy.swept(SweepMode.QUARANTINE)
    toy.write("data/more.dat")
    before |= toy.files()
    assert toy.swept(SweepMode.QUARANTINE, attempt="a2").acted.files == 1
    assert len(toy.aside()) == 4
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 4
    assert toy.files() == before


def test_operations_of_one_run_have_a_quarantine_each_and_are_restored_together(toy: Toy) -> None:
    before, runs = toy.files(), {}
    for operation, name in ((Operation.SWEEP, OLD[0]), (Operation.EXPIRE, OLD[1])):
        runs[operation] = run = replace(run_of("run-1"), token=run_token("run-1", operation))
        work = _Progress(toy.table_files(), run)
        work.quarantine(_orphans(before).filter(pa.array([each == name for each in OLD])))
        assert work.folder == folder_of(toy.table_files(), run)
    assert folder_of(toy.table_files(), runs[Operation.SWEEP]) != folder_of(toy.table_files(), runs[Operation.EXPIRE])
    # A run whose own id is spelled as the folder of another.
    other = folder_of(toy.table_files(), runs[Operation.SWEEP]).rpartition("/")[2]
    assert toy.swept(SweepMode.QUARANTINE, other).acted.files == 1
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 2
    assert toy.files() == {name: file for name, file in before.items() if name != OLD[2]}
    assert restore(toy.table_files(), other, now_ms=NOW).files == 1
    assert toy.files() == before


def test_what_an_earlier_release_quarantined_is_restored_too(toy: Toy) -> None:
    before, folder = toy.files(), toy.folder / str(toy.swept(SweepMode.QUARANTINE).folder)
    earlier = folder.with_name(folder.name.rpartition("-")[0])
    folder.rename(earlier)
    plan = earlier / "plan-00000.jsonl"
    plan.write_text(plan.read_text().replace(f"{folder.name}/", f"{earlier.name}/"))
    toy.write("data/more.dat")
    before |= toy.files()
    assert toy.swept(SweepMode.QUARANTINE, attempt="a2").acted.files == 1
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 4
    assert toy.files() == before


def test_what_a_table_left_where_it_was_before_is_restored_there(tmp_path: Path) -> None:
    """By the folder that the run's document names, and by no other's."""
    toy = _filled(Toy.at(tmp_path / "toy"))
    before, folder = toy.files(), str(toy.swept(SweepMode.QUARANTINE).folder)
    moved = replace(toy.table_files(), home="new/home")
    with pytest.raises(UsageError, match="there is nothing"):
        restore(moved, "run-1", now_ms=NOW)
    with pytest.raises(UsageError, match="there is nothing"):
        restore(moved, "run-2", now_ms=NOW, vouched=[folder, "elsewhere", ""])
    assert restore(moved, "run-1", now_ms=NOW, vouched=[folder, folder]).files == 3
    assert toy.files() == before


def test_many_orphans_are_quarantined_in_parts(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightkeep.retention.orphans.removal.PART", 2)
    before = toy.files()
    told = toy.swept(SweepMode.QUARANTINE)
    assert told.acted.files == 3
    plans = sorted(path.name for path in (toy.folder / str(told.folder)).glob("plan-*"))
    assert plans == ["plan-00000.jsonl", "plan-00001.jsonl"]
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 3
    assert toy.files() == before


def test_nothing_of_a_run_in_quarantine_is_a_mistake_that_names_those_that_are(toy: Toy) -> None:
    with pytest.raises(UsageError, match="nothing of run run-9 is in quarantine; there is nothing"):
        restore(toy.table_files(), "run-9", now_ms=NOW)
    toy.swept(SweepMode.QUARANTINE)
    with pytest.raises(UsageError, match="there is run-1"):
        restore(toy.table_files(), "run-9", now_ms=NOW)


def test_restoring_overwrites_nothing_and_names_what_is_in_the_way(toy: Toy) -> None:
    before = toy.files()
    toy.swept(SweepMode.QUARANTINE)
    (toy.folder / "data/old.dat").write_text("somebody else's")
    for _ in range(2):
        back = restore(toy.table_files(), "run-1", now_ms=NOW)
        assert back.outcome is Outcome.FAILED
        assert [name for name, _ in back.conflicts] == ["data/old.dat"]
        assert (toy.folder / "data/old.dat").read_text() == "somebody else's"
        assert toy.aside() == [before["data/old.dat"]]
    (toy.folder / "data/old.dat").unlink()
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 1
    assert toy.files() == before


def test_a_file_lost_from_quarantine_is_named(toy: Toy) -> None:
    folder = str(toy.swept(SweepMode.QUARANTINE).folder)
    (toy.folder / folder / "00000/00001.file").unlink()
    back = restore(toy.table_files(), "run-1", now_ms=NOW)
    assert (back.outcome, back.files) == (Outcome.FAILED, 2)
    assert back.conflicts == ((OLD[1], "neither at home nor in quarantine any more"),)


def test_a_restore_names_what_a_later_run_took_of_its_restored_files(toy: Toy) -> None:
    toy.swept(SweepMode.QUARANTINE, "run-1")
    before = restore(toy.table_files(), "run-1", now_ms=NOW).files
    toy.swept(SweepMode.QUARANTINE, "run-2")
    again = restore(toy.table_files(), "run-1", now_ms=NOW)
    assert again.conflicts == tuple((name, "in quarantine of run run-2, which restores it") for name in OLD)
    count = len(OLD)
    assert again.reason == (
        f"0 files restored, {count} could not be, of which {count} are in quarantine of another run"
    )
    assert restore(toy.table_files(), "run-2", now_ms=NOW).files == before == count
    assert toy.swept(SweepMode.DELETE, "run-3").acted.files == count
    last = restore(toy.table_files(), "run-1", now_ms=NOW)
    assert last.conflicts == tuple(
        (name, "this run was restored before, and the file was removed since") for name in OLD
    )
    assert last.reason == (
        f"0 files restored, {count} could not be, of which {count} were restored before and removed since"
    )


@pytest.mark.parametrize("by", ["restore", "sweep"])
def test_a_file_of_a_quarantine_cut_short_that_is_nowhere_is_named(toy: Toy, by: str) -> None:
    folder = toy.folder / str(toy.swept(SweepMode.QUARANTINE).folder)
    (folder / "done-00000.json").unlink()
    (folder / "00000/00001.file").unlink()
    if by == "sweep":
        assert close(toy.table_files(), run_of("run-2")) == ("run-1",)
    for brought in (2, 0):
        back = restore(toy.table_files(), "run-1", now_ms=NOW)
        assert (back.outcome, back.files, back.conflicts) == (
            Outcome.FAILED,
            brought,
            ((OLD[1], "neither at home nor in quarantine any more"),),
        )
        assert back.reason == f"{brought} files restored, 1 could not be, of which 1 are lost"


def _dead_in_a_purge(toy: Toy, at: str) -> None:
    @dataclass(frozen=True)
    class Dies(LocalStorage):
        def removed(self, folder: int, last: str, name: str) -> None:
            if at in name:
                raise KeyboardInterrupt
            LocalStorage.removed(self, folder, last, name)

    with pytest.raises(KeyboardInterrupt):
        late = NOW + 31 * DAY_MS
        purge(replace(toy.table_files(), storage=Dies(toy.storage.root)), now_ms=late, older_than_ms=0)


@pytest.mark.parametrize(
    ("at", "files", "lost"),
    [
        ("/00001/00000.file", 1, list(OLD[:2])),
        ("plan-00000", 0, list(OLD)),
        ("plan-00001", 0, ["plan-00000.jsonl", OLD[2]]),
    ],
)
def test_what_a_purge_that_was_killed_took_is_named(
    toy: Toy, at: str, files: int, lost: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightkeep.retention.orphans.removal.PART", 2)
    folder = str(toy.swept(SweepMode.QUARANTINE).folder)
    _dead_in_a_purge(toy, at)
    back = restore(toy.table_files(), "run-1", now_ms=NOW)
    assert (back.outcome, back.files) == (Outcome.FAILED, files)
    assert [name.removeprefix(f"{folder}/") for name, _ in back.conflicts] == lost
    assert back.reason == f"{files} files restored, {len(lost)} could not be, of which {len(lost)} are lost"


def test_a_part_whose_list_is_gone_since_all_were_restored_lost_nothing(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a purge leaves it that is killed between the lists."""
    monkeypatch.setattr("nightkeep.retention.orphans.removal.PART", 2)
    before, folder = toy.files(), toy.folder / str(toy.swept(SweepMode.QUARANTINE).folder)
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 3
    (folder / "plan-00000.jsonl").unlink()
    assert restore(toy.table_files(), "run-1", now_ms=NOW).outcome is Outcome.UNCHANGED
    assert toy.files() == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: text.replace("_nightkeep/quarantine", "data"),
        lambda text: text.replace('"quarantine": 1', '"quarantine": 2'),
        lambda text: "",
    ],
    ids=["cut", "elsewhere", "newer", "empty"],
)
def test_a_damaged_list_restores_nothing(toy: Toy, damage: object) -> None:
    folder = str(toy.swept(SweepMode.QUARANTINE).folder)
    plan = toy.folder / folder / "plan-00000.jsonl"
    plan.write_text(damage(plan.read_text()))  # type: ignore[operator]
    before = toy.files()
    with pytest.raises(CorruptMetadata, match="plan-00000"):
        restore(toy.table_files(), "run-1", now_ms=NOW)
    assert toy.files() == before and len(toy.aside()) == 3


def test_old_quarantines_are_purged_and_younger_ones_kept(toy: Toy) -> None:
    toy.swept(SweepMode.QUARANTINE, "run-1", now_ms=NOW)
    toy.write("data/more.dat")
    toy.swept(SweepMode.QUARANTINE, "run-2", now_ms=NOW + DAY_MS)
    assert len(toy.aside()) == 4
    late = NOW + 30 * DAY_MS + 1
    assert toy.swept(SweepMode.DRY_RUN, "run-3", now_ms=late).purged == FileTotals()
    told = toy.swept(SweepMode.DELETE, "run-3", now_ms=late)
    assert told.purged.files == 3 and "3 files purged" in told.reason
    assert len(toy.aside()) == 1
    with pytest.raises(UsageError):
        restore(toy.table_files(), "run-1", now_ms=late)
    assert restore(toy.table_files(), "run-2", now_ms=late).files == 1


def test_nothing_is_purged_that_was_cut_short(toy: Toy) -> None:
    folder = str(toy.swept(SweepMode.QUARANTINE).folder)
    (toy.folder / folder / "done-00000.json").unlink()
    assert purge(toy.table_files(), now_ms=NOW + 999 * DAY_MS, older_than_ms=0) == FileTotals()
    assert close(toy.table_files(), run_of("run-2", now_ms=NOW + 999 * DAY_MS)) == ("run-1",)
    assert close(toy.table_files(), run_of("run-2")) == ()
    assert purge(toy.table_files(), now_ms=NOW + 999 * DAY_MS, older_than_ms=0) == FileTotals()
    assert purge(toy.table_files(), now_ms=NOW + 1000 * DAY_MS, older_than_ms=0).files == 3


@dataclass(frozen=True)
class _Interrupted(LocalStorage):
    """A store in which something happens once, before the first move, or before the first bulk deletion."""

    verb: str
    happens: list[Callable[[], object]]

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        self._happen("move")
        return LocalStorage.move(self, name, to, may_go=may_go)

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        failed = LocalStorage.delete_all(self, names)
        self._happen("delete_all")
        return failed

    def _happen(self, verb: str) -> None:
        if verb == self.verb and self.happens:
            self.happens.pop()()


@pytest.mark.parametrize("older_than_ms", [30 * DAY_MS, 0])
def test_a_purge_keeps_off_what_is_being_restored(toy: Toy, older_than_ms: int) -> None:
    before, late = toy.files(), NOW + 31 * DAY_MS
    toy.swept(SweepMode.QUARANTINE)
    purged: list[FileTotals] = []
    meanwhile = _Interrupted(
        toy.storage.root,
        "move",
        [lambda: purged.append(purge(toy.table_files(), now_ms=late, older_than_ms=older_than_ms))],
    )
    back = restore(replace(toy.table_files(), storage=meanwhile), "run-1", now_ms=late)
    assert (purged, back.outcome, back.files) == ([FileTotals()], Outcome.VERIFIED, 3)
    assert toy.files() == before


def test_what_a_failed_restore_kept_ages_anew(toy: Toy) -> None:
    before, late = toy.files(), NOW + 29 * DAY_MS
    toy.swept(SweepMode.QUARANTINE)
    (toy.folder / "data/old.dat").write_text("somebody else's")
    for days in (0, 1):
        assert restore(toy.table_files(), "run-1", now_ms=late + days * DAY_MS).outcome is Outcome.FAILED
    late += DAY_MS
    assert purge(toy.table_files(), now_ms=late + 30 * DAY_MS, older_than_ms=30 * DAY_MS) == FileTotals()
    assert toy.aside() == [before["data/old.dat"]]
    assert purge(toy.table_files(), now_ms=late + 30 * DAY_MS + 1, older_than_ms=30 * DAY_MS).files == 1
    assert not any(path.is_file() for path in (toy.folder / "_nightkeep").rglob("*"))


def test_a_purge_ends_where_a_restore_begins_which_names_what_is_lost(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightkeep.retention.orphans.removal.PART", 2)
    before, late = toy.files(), NOW + 31 * DAY_MS
    toy.swept(SweepMode.QUARANTINE)
    told: list[RestoreResult] = []
    meanwhile = _Interrupted(
        toy.storage.root, "delete_all", [lambda: told.append(restore(toy.table_files(), "run-1", now_ms=late))]
    )
    table_files = replace(toy.table_files(), storage=meanwhile)
    assert purge(table_files, now_ms=late, older_than_ms=30 * DAY_MS).files == 2
    assert (told[0].outcome, told[0].files) == (Outcome.FAILED, 1)
    assert told[0].conflicts == tuple((name, "neither at home nor in quarantine any more") for name in OLD[:2])
    assert toy.files() == {name: file for name, file in before.items() if name not in OLD[:2]}


def test_a_list_that_is_purged_under_a_restore_is_named(toy: Toy) -> None:
    folder = str(toy.swept(SweepMode.QUARANTINE).folder)

    @dataclass(frozen=True)
    class Purged(LocalStorage):
        def replace(self, name: str, data: bytes, *, temporary: str) -> None:
            purge(toy.table_files(), now_ms=NOW + 31 * DAY_MS, older_than_ms=0)
            LocalStorage.replace(self, name, data, temporary=temporary)

    table_files = replace(toy.table_files(), storage=Purged(toy.storage.root))
    back = restore(table_files, "run-1", now_ms=NOW + 31 * DAY_MS)
    assert (back.outcome, [name for name, _ in back.conflicts]) == (Outcome.FAILED, [f"{folder}/plan-00000.jsonl"])


def test_a_restore_mark_that_is_damaged_keeps_what_it_marks(toy: Toy) -> None:
    folder = str(toy.swept(SweepMode.QUARANTINE).folder)
    (toy.folder / folder / "restoring.json").write_text("{")
    with pytest.raises(CorruptMetadata, match=r"restoring\.json"):
        purge(toy.table_files(), now_ms=NOW + 31 * DAY_MS, older_than_ms=0)
    assert len(toy.aside()) == 3


def test_never_purged_where_nobody_states_when(toy: Toy) -> None:
    toy.swept(SweepMode.QUARANTINE)
    toy.swept(SweepMode.DELETE, "run-2", now_ms=NOW + 999 * DAY_MS, purge_after_ms=None)
    assert len(toy.aside()) == 3


def test_a_quarantine_that_another_process_fills_is_left_alone(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(toy.swept(SweepMode.QUARANTINE).folder)
    (toy.folder / folder / "done-00000.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(lease.os, "getpid", lambda: os.getppid())
        for act in (
            lambda: restore(toy.table_files(), "run-1", now_ms=NOW),
            lambda: toy.swept(SweepMode.DELETE, "run-2"),
        ):
            with pytest.raises(
                RefusedTable, match=r"run run-1 moving files to quarantine since .*; wait until it is done"
            ):
                act()
    assert toy.swept(SweepMode.DRY_RUN, "run-2").closed == ()
    assert len(toy.aside()) == 3
    assert toy.swept(SweepMode.DELETE, "run-2").closed == ("run-1",)


def test_a_process_of_another_host_is_waited_for_as_long_as_it_may_work() -> None:
    elsewhere = lease.Lease("another host", 1, "5")
    assert lease.may_be_at_work(elsewhere, 1_000, now_ms=1_000 + lease.LEASE_MS - 1)
    assert not lease.may_be_at_work(elsewhere, 1_000, now_ms=1_000 + lease.LEASE_MS)
    assert not lease.may_be_at_work(lease.ourselves(), 1_000, now_ms=1_000)


def test_a_process_that_lives_on_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = lease.ourselves()
    monkeypatch.setattr(lease.os, "getpid", lambda: os.getppid())
    assert lease.may_be_at_work(ours, 1_000, now_ms=1_000 + lease.LEASE_MS - 1)
    assert not lease.may_be_at_work(ours, 1_000, now_ms=1_000 + lease.LEASE_MS)


@dataclass(frozen=True)
class _Meddled(LocalStorage):
    """A store in which something happens right before a file is looked at for the last time."""

    at: str
    happens: list[str] = field(default_factory=list)

    def looked_at(self, folder: int, last: str) -> os.stat_result:
        if last == PurePosixPath(self.at).name and self.happens:
            path = Path(self.root, self.at)
            match self.happens.pop():
                case "grew":
                    path.write_text(path.read_text() + "more")
                    age(path, 30)
                case "was written anew":
                    path.write_bytes(path.read_bytes())
                case "went":
                    path.unlink()
        return LocalStorage.looked_at(self, folder, last)


@pytest.mark.parametrize("mode", ACTING)
@pytest.mark.parametrize("what", ["grew", "was written anew", "went"])
def test_a_file_that_changed_since_the_look_is_left(tmp_path: Path, mode: SweepMode, what: str) -> None:
    toy = _filled(Toy(_Meddled(str(tmp_path), "data/old.dat", [what])))
    told = toy.swept(mode)
    assert (told.acted.files, told.left.files, told.failed) == (2, 1, ())
    assert told.reason.endswith("1 left, as they had changed")
    assert (toy.folder / "data/old.dat").exists() == (what != "went")
    assert len(toy.aside()) == (2 if mode is SweepMode.QUARANTINE else 0)


@pytest.mark.parametrize("mode", ACTING)
def test_a_snapshot_committed_right_before_acting_keeps_its_files(toy: Toy, mode: SweepMode) -> None:
    def commit(look: int) -> None:
        if look == 3:
            toy.commit(2, "data/old.dat")

    toy.before_roots = commit
    told = toy.swept(mode)
    assert toy.looks > 3 and told.counted is not None and told.counted.orphans.files == 3
    assert (told.outcome, told.acted.files) == (Outcome.VERIFIED, 2)
    assert (toy.folder / "data/old.dat").exists()


@pytest.mark.parametrize("mode", ACTING)
def test_a_snapshot_committed_between_parts_keeps_its_files(
    toy: Toy, mode: SweepMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightkeep.retention.orphans.memory_sets._BATCH", 1)

    def commit(look: int) -> None:
        if look == 4:
            assert not (toy.folder / OLD[0]).exists()
            toy.commit(2, OLD[1])

    toy.before_roots = commit
    assert toy.swept(mode).acted.files == 2
    assert (toy.folder / OLD[1]).exists() and not (toy.folder / OLD[2]).exists()


@pytest.mark.parametrize("mode", ACTING)
def test_metadata_that_breaks_while_acting_ends_it_and_what_was_done_is_reported(
    toy: Toy, mode: SweepMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightkeep.retention.orphans.memory_sets._BATCH", 1)

    def corrupt(look: int) -> None:
        if look == 4:
            (toy.folder / "meta/s-2.json").write_text("{")

    toy.before_roots = corrupt
    told = toy.swept(mode)
    assert (told.outcome, told.acted.files) == (Outcome.FAILED, 1)
    assert told.failed[0][0] == "." and "meta/s-2.json" in told.failed[0][1]


@pytest.mark.parametrize("mode", ACTING)
def test_a_table_with_a_history_is_reported_before_and_after(tmp_path: Path, mode: SweepMode) -> None:
    toy = ToyWithHistory.at(tmp_path / "toy")
    _filled(toy)
    told = toy.swept(mode)
    assert told.acted.files == 3
    assert [(word, removal.files, removal.failed) for word, removal in toy.told] == [
        ("announce", 3, 0),
        ("conclude", 3, 0),
    ]
    assert {removal.bytes for _, removal in toy.told} == {told.acted.bytes}
    assert {removal.older_than_ms for _, removal in toy.told} == {7 * DAY_MS}
    toy.told.clear()
    toy.swept(mode, "run-2")
    assert toy.told == []


def test_a_table_that_forbids_removals_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = ToyWithHistory.at(tmp_path / "toy")
    before = _filled(toy).files()

    def forbid(*_: object) -> None:
        raise RefusedTable("toy", "is append-only", "leave it")

    monkeypatch.setattr(ToyWithHistory, "announce", forbid)
    with pytest.raises(RefusedTable, match="append-only"):
        toy.swept(SweepMode.DELETE)
    assert toy.files() == before and toy.told == []


@pytest.mark.parametrize("mode", ACTING)
@pytest.mark.parametrize(
    "failure",
    [OSError("no answer"), EvidenceError("log", "a free version", "another writer's")],
    ids=["silent", "lost"],
)
def test_a_history_that_cannot_record_the_end_hides_nothing(
    tmp_path: Path, mode: SweepMode, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = ToyWithHistory.at(tmp_path / "toy")
    before = _filled(toy).files()

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(ToyWithHistory, "conclude", fail)
    told = toy.swept(mode)
    assert (told.outcome, told.acted.files, told.changed) == (Outcome.FAILED, 3, True)
    assert told.failed == ((".", f"the table's history does not record the end: {failure}"),)
    assert not any((toy.folder / name).exists() for name in OLD)
    if mode is SweepMode.QUARANTINE:
        assert told.folder == folder_of(toy.table_files(), run_of("run-1"))
        assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 3
        assert before.items() <= toy.files().items()


@dataclass(frozen=True)
class _Stubborn(LocalStorage):
    """A store that keeps one file."""

    kept: str

    def removed(self, folder: int, last: str, name: str) -> None:
        if name == self.kept:
            raise PermissionError(f"{name}: not permitted")
        LocalStorage.removed(self, folder, last, name)
        if name == OLD[0]:
            raise PermissionError(f"{name}: not permitted, and yet deleted")


@pytest.mark.parametrize("mode", ACTING)
def test_what_could_not_be_removed_is_named_and_the_rest_goes(tmp_path: Path, mode: SweepMode) -> None:
    toy = ToyWithHistory(_Stubborn(str(tmp_path), "data/old.dat"))
    _filled(toy)
    told = toy.swept(mode)
    assert (told.outcome, told.acted.files) == (Outcome.FAILED, 2)
    assert [name for name, _ in told.failed] == ["data/old.dat"] and "not permitted" in told.failed[0][1]
    assert toy.told[-1][1].failed == 1 and toy.told[-1][1].files == 2
    assert (toy.folder / "data/old.dat").exists()


@dataclass(frozen=True)
class _Remote(MovedFolders):
    """A folder that is not taken for one of this machine: nothing in it moved."""

    folders_moved: frozenset[str] = frozenset()
    home: str = ""


@dataclass(frozen=True)
class _Silent(_Remote):
    """A store that deletes all but one, and says nothing of it, nor of anything after that."""

    asked: list[str] = field(default_factory=list)

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        self.whole.delete_all([name for name in names if name != OLD[1]])
        self.asked.append("to delete")
        return tuple((name, "no answer") for name in names)

    def stat(self, name: str) -> ListedFile | None:
        if self.asked:
            self.asked.append(name)
            raise OSError("no answer")
        return self.whole.stat(name)


def test_what_a_store_falls_silent_about_is_named_and_may_have_gone(tmp_path: Path) -> None:
    toy = ToyWithHistory(_Silent(LocalStorage(str(tmp_path))))
    before = _filled(toy).files()
    told = toy.swept(SweepMode.DELETE, purge_after_ms=None)
    assert (told.outcome, told.acted.files, told.unknown.files) == (Outcome.FAILED, 0, 3)
    assert told.unknown.bytes == sum(len(before[name][0]) for name in OLD)
    assert told.failed == tuple((name, "no answer") for name in OLD)
    assert told.reason == "3 could not be removed; 3 of them may be gone"
    said = document(told, root="/lake/toy")
    assert said["changed"] and said["failed"][0] == {"path": f"/lake/toy/{OLD[0]}", "reason": "no answer"}  # type: ignore[index]
    assert toy.told[-1][1].failed == 3
    assert cast(_Silent, toy.storage).asked == ["to delete", OLD[0]]
    assert toy.files().keys() == before.keys() - {OLD[0], OLD[2]} | {"meta/s-901.json", "meta/l-901.json"}


@pytest.mark.parametrize(
    "failure", [OSError("no answer"), CorruptMetadata("name", "a name", "another")], ids=["os", "ours"]
)
def test_what_became_of_a_part_is_reported_whatever_its_files_and_marks_raise(toy: Toy, failure: Exception) -> None:
    @dataclass(frozen=True)
    class Fails(LocalStorage):
        def looked_at(self, folder: int, last: str) -> os.stat_result:
            if last == PurePosixPath(OLD[1]).name:
                raise failure
            return LocalStorage.looked_at(self, folder, last)

        def stat(self, name: str) -> ListedFile | None:
            if name == OLD[1]:
                raise failure
            return LocalStorage.stat(self, name)

    before = toy.files()
    work = _Progress(replace(toy.table_files(), storage=Fails(toy.storage.root)), run_of("run-1"))
    with pytest.raises(OSError, match="may be in two"):
        work.quarantine(_orphans(before))
    assert (work.gone.files, work.unknown.files, work.failed) == (2, 1, [(OLD[1], str(failure))])
    assert work.at == f"{work.folder}/plan-00000.jsonl"
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 2
    assert toy.files() == before


def test_what_ends_a_removal_names_the_file_that_was_next(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(self: _Remote, name: str) -> ListedFile | None:
        raise OSError("no answer")

    before, toy.storage = toy.files(), _Remote(toy.storage)
    monkeypatch.setattr("nightkeep.retention.orphans.sweep_table.store_ahead_ms", lambda *_: 0)
    monkeypatch.setattr(_Remote, "stat", silent)
    told = toy.swept(SweepMode.DELETE, purge_after_ms=None)
    assert (told.outcome, told.failed, told.changed) == (Outcome.FAILED, ((OLD[0], "no answer"),), False)
    assert toy.files() == before


def test_a_file_that_has_another_size_or_time_than_listed_is_left(toy: Toy) -> None:
    row = {"name": "data/old.dat", "bytes": 1, "modified_ms": 1, "kind": "data"}
    batch = pa.RecordBatch.from_pylist([row], schema=ORPHANS)
    for mode in ACTING:
        done = remove(
            toy.table_files(), iter([batch]), run_of("run-1"), mode=mode, total=FileTotals(1, 1), older_than_ms=0
        )
        assert (done.gone.files, done.left.files, done.failed) == (0, 1, ())
    assert (toy.folder / "data/old.dat").exists()


def test_a_quarantine_that_cannot_be_purged_does_not_hide_what_was_done(toy: Toy) -> None:
    folder = str(toy.swept(SweepMode.QUARANTINE, "run-0").folder)
    (toy.folder / folder / "done-00000.json").write_text("{")
    toy.write("data/more.dat")
    told = toy.swept(SweepMode.DELETE)
    assert (told.outcome, told.acted.files) == (Outcome.FAILED, 1)
    assert told.failed[0][0] == "_nightkeep" and "done-00000.json" in told.failed[0][1]


def test_a_file_missing_while_it_is_moved_is_left(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(self: LocalStorage, source: int, target: int, name: str, other: str) -> None:
        if other.endswith(".file"):
            raise FileNotFoundError(f"{name}: no such file")
        linked(self, source, target, name, other)

    linked = LocalStorage._linked
    monkeypatch.setattr(LocalStorage, "_linked", gone)
    told = toy.swept(SweepMode.QUARANTINE)
    assert (told.outcome, told.left.files, told.failed) == (Outcome.UNCHANGED, 3, ())


def test_many_files_are_quarantined_at_once_and_the_one_that_stays_is_named(tmp_path: Path) -> None:
    toy = _filled(Toy(_Stubborn(str(tmp_path), "data/old.dat")))
    more = [f"data/day={number % 3}/old-{number}.dat" for number in range(70)]
    toy.write(*more)
    before = toy.files()
    told = toy.swept(SweepMode.QUARANTINE, max_share=1.0)
    assert (told.outcome, told.acted.files) == (Outcome.FAILED, len(OLD) + len(more) - 1)
    assert [name for name, _ in told.failed] == ["data/old.dat"]
    assert len(toy.aside()) == told.acted.files and (toy.folder / "data/old.dat").exists()
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == told.acted.files
    assert toy.files() == before


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["folder", "remote"])
@pytest.mark.parametrize("mode", ACTING)
def test_one_of_many_that_fails_is_named_and_the_journal_reports_the_rest(
    tmp_path: Path, mode: SweepMode, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several parts of several chunks in several folders; the report names what failed in the order of names."""
    monkeypatch.setattr("nightkeep.retention.orphans.removal.PART", 150)
    more = [f"data/day={number % 2}/old-{number:03d}.dat" for number in range(400)]
    stuck = sorted((more[7], more[201], more[202], more[398]))

    @dataclass(frozen=True)
    class Sticky(LocalStorage):
        def removed(self, folder: int, last: str, name: str) -> None:
            if name in stuck:
                raise PermissionError(f"{name}: not permitted")
            LocalStorage.removed(self, folder, last, name)

    store = Sticky(str(tmp_path))
    toy = ToyWithHistory(store if kind == "folder" else _Remote(store))
    toy.write("data/a.dat", *more)
    toy.commit(1, "data/a.dat")
    before = toy.files()
    told = toy.swept(mode, max_share=1.0)
    assert (told.outcome, told.acted.files, told.unknown.files) == (Outcome.FAILED, len(more) - len(stuck), 0)
    assert [name for name, _ in told.failed] == stuck
    assert all("not permitted" in why for _, why in told.failed)
    assert [(done.files, done.failed) for _, done in toy.told] == [(len(more), 0), (len(more) - len(stuck), len(stuck))]
    assert toy.files().keys() & {*more} == {*stuck}
    if mode is SweepMode.QUARANTINE:
        plain = Toy(LocalStorage(str(tmp_path))).table_files()
        (folder,) = quarantines(plain)
        marks = [read_mark(plain.storage, part, Mark.DONE)[1] for part in parts(plain.storage, folder)]
        assert len(marks) == 3 and sorted(name for left in marks for name in left) == stuck
        assert restore(plain, "run-1", now_ms=NOW).files == len(more) - len(stuck)
        assert {name: toy.files()[name] for name in before} == before
