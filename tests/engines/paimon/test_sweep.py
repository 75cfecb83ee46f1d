"""Sweeps of Paimon tables: planted orphans are found as Java finds them, and nothing that any version needs goes."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction
from tests.drivers.pypaimon_oracle import PyPaimon
from tests.formats.paimon.breaking import breaking, upgrade_and_die
from tests.formats.paimon.contents import SAMPLES, contents, files, leftovers, opened
from tests.formats.paimon.keeping import (
    DAYS,
    KEYLESS,
    VECTORS,
    aged,
    busy,
    expired,
    live_names,
    names,
    orphans,
    reads,
    rows,
    run,
    swept,
)
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended
from tests.support.faulty_store import Fuse
from tests.support.processes import child

from nightkeep.errors import EvidenceError
from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import OpenFiles, Root, TableFiles
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

UUID = "c2d8813c-5e9f-4ab4-8fad-662173002a2f"
DAY = "day=2026-11-01/bucket-0"
ODD = "day=a b%2Fc%25/bucket-0"
ORPHANS = (
    f"{DAY}/data-{UUID}-0.parquet",
    f"{ODD}/data-{UUID}-1.parquet",
    f"{ODD}/data-{UUID}-2.parquet.index",
    f"{DAY}/changelog-{UUID}-0.parquet",
    f"day=gone/bucket-0/data-{UUID}-3.parquet",
    f"day=2026-11-01/bucket-postpone/data-u-x-s-0-w-{UUID}-4.avro",
    f"{DAY}/.data-{UUID}-5.parquet.{UUID}.tmp",
    f"manifest/manifest-{UUID}-0",
    f"manifest/manifest-list-{UUID}-0",
    f"manifest/index-manifest-{UUID}-0",
    f"index/index-{UUID}-0",
    f"statistics/stat-{UUID}-0",
    f"snapshot/.snapshot-99.{UUID}.tmp",
    f"changelog/.changelog-99.{UUID}.tmp",
    f"branch/branch-dev/snapshot/.snapshot-99.{UUID}.tmp",
    f"{DAY}/data-nk-117e5f8cd5acfc0c-8fad6621-a1-0.parquet",
    "snapshot/staged-nk-117e5f8cd5acfc0c-table-a1-0",
)
ONLY_JAVA = (
    f"{DAY}/report.txt",
    "manifest/notes.txt",
    "index/keep.me",
    f"other=1/bucket-0/data-{UUID}-6.parquet",
    f"day=2026-11-01/bucket-x/data-{UUID}-7.parquet",
    "snapshot/notes.txt",
)
NOBODY = (
    f"{DAY}/data-{UUID}-8.managed.blob",
    f"{DAY}/deeper/data-{UUID}-9.parquet",
    "schema/notes.txt",
    "tag/.t.tmp",
    f"bucket-0/data-{UUID}-10.parquet",
    "_nightkeep/notes.txt",
    "README.md",
    "consumer/notes.txt",
)


@pytest.mark.few(1)
@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_planted_orphans_are_those_that_java_finds(
    producer: str, paimon_java: PaimonJava, pypaimon: PyPaimon, tmp_path: Path
) -> None:
    table = busy(paimon_java, tmp_path / "table", options={**VECTORS, "changelog-producer": producer})
    paimon_java.create_tag(table, "t", snapshot=4)
    branch = paimon_java.create_branch(table, "dev", tag="t")
    paimon_java.write(branch, [("+I", 1, DAYS[0], "branch")])
    paimon_java.expire(table, retain_max=3)
    assert orphans(table) == [] == paimon_java.delete_orphans(table)["files"]
    _plant(table, (*ORPHANS, *ONLY_JAVA, *NOBODY))
    aged(table)
    before, of_branch, there = reads(paimon_java, table), reads(paimon_java, branch), names(table)

    found = orphans(table)
    theirs = paimon_java.delete_orphans(table, older_than_millis=None)["files"]

    assert found == sorted(ORPHANS)
    assert sorted(str(Path(name).relative_to(table)) for name in theirs) == sorted((*ORPHANS, *ONLY_JAVA))
    done, _ = swept(table, SweepOrder(SweepMode.DELETE))
    assert done.outcome is Outcome.VERIFIED and done.acted.files == len(ORPHANS)
    assert there - names(table) == {*ORPHANS}
    assert reads(paimon_java, table) == before and reads(paimon_java, branch) == of_branch
    assert sorted(pypaimon.read(table).rows) == sorted(paimon_java.read(table).rows)
    paimon_java.write(table, [("+I", 1, DAYS[0], "after")])
    assert len(rows(paimon_java, table)) == len(before[max(before)])


def test_what_is_quarantined_is_out_of_engines_sight_and_comes_back(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    _plant(table, ORPHANS[:5])
    (table / ORPHANS[0]).write_bytes(b"another one")
    aged(table)
    before, there = reads(paimon_java, table), files(table)

    done, _ = swept(table, SweepOrder(SweepMode.QUARANTINE), run_id="weekly-7")

    assert done.outcome is Outcome.VERIFIED and done.acted.files == 5
    assert not {*ORPHANS[:5]} & names(table)
    aged(table)
    assert orphans(table) == [] == paimon_java.delete_orphans(table, dry_run=False)["files"]
    assert reads(paimon_java, table) == before
    back = restore(opened(table).retention.table_files(), "weekly-7", now_ms=time.time_ns() // 1_000_000)
    assert (back.files, back.conflicts) == (5, ())
    assert {name: digest for name, digest in files(table).items() if not name.startswith("_nightkeep/")} == there


def test_a_table_without_keys_is_swept_as_well(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", options=KEYLESS, keys=(), rounds=1)
    planted = (f"{DAY}/data-{UUID}-0.parquet", f"manifest/manifest-{UUID}-0")
    _plant(table, planted)
    aged(table)
    theirs = paimon_java.delete_orphans(table)["files"]
    assert orphans(table) == sorted(planted) == sorted(str(Path(name).relative_to(table)) for name in theirs)


def test_young_files_stay(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    old, young = f"{DAY}/data-{UUID}-0.parquet", f"{DAY}/data-{UUID}-1.parquet"
    _plant(table, (old,))
    aged(table)
    _plant(table, (young,))
    assert orphans(table) == [old]


@pytest.mark.few(4)
@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir()))
def test_every_live_file_of_every_sample_survives(sample: str, tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / sample, tmp_path / sample))
    aged(table)
    needed, before = live_names(table), contents(table)

    swept(table, SweepOrder(SweepMode.DELETE, max_share=1.0))

    assert {*needed} <= names(table)
    assert contents(table) == before


# ---- others at work meanwhile ----


class _Meanwhile(MemorySets):
    """Sets with something going on beside: `after_listing` once the candidates are listed, `after_live` once after
    the first names became live."""

    def __init__(self, *, after_listing: Callable[[], object] = lambda: None, after_live: Callable[[], object]) -> None:
        super().__init__()
        self._after_listing, self._pending = after_listing, [after_live]

    def list(self, table_files: TableFiles) -> None:
        super().list(table_files)
        self._after_listing()

    def live(self, table: OpenFiles, roots: Sequence[Root], *, expected: bool) -> None:
        super().live(table, roots, expected=expected)
        while self._pending:
            self._pending.pop()()


def _sweep(table: Path, sets: MemorySets) -> SweepResult:
    with closing(sets):
        order = SweepOrder(SweepMode.DELETE, max_share=1.0)
        return sweep_table(opened(table).retention, order, run("weekly", Operation.SWEEP), sets=sets)


def test_snapshots_that_all_expire_meanwhile_end_the_sweep(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """apache/paimon#7710: what was listed expired before it was read, so that nothing seemed to be in use."""
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    aged(table)
    after: set[str] = set()

    def moves_on() -> None:
        paimon_java.write(table, [("+I", 1, DAYS[0], "meanwhile")])
        paimon_java.expire(table)
        aged(table)
        after.update(names(table))

    with pytest.raises(EvidenceError):
        _sweep(table, _Meanwhile(after_listing=moves_on, after_live=lambda: None))
    assert {name for name in names(table) if not name.startswith("_nightkeep/")} >= {
        name for name in after if not name.startswith("_nightkeep/")
    }
    assert len(reads(paimon_java, table)) == 1


def test_a_commit_of_old_files_meanwhile_survives(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """apache/paimon#3074: files that were listed as unused when their commit was on its way."""
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    paimon_java.write(table, [("+I", key, DAYS[0], "late") for key in range(3)])
    prepared = paimon_java.prepare_compact(table, Compaction(full=True))
    assert prepared.handle is not None
    aged(table)
    fresh = orphans(table)
    assert any(name.endswith(".parquet") for name in fresh)

    done = _sweep(table, _Meanwhile(after_live=lambda: paimon_java.commit_prepared(str(prepared.handle))))

    assert done.outcome is Outcome.UNCHANGED
    assert {*fresh} <= names(table)
    assert (0, DAYS[0], "late") in rows(paimon_java, table)


def test_a_branch_keeps_what_the_main_one_let_go(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """apache/paimon, PR 3970: only the main branch was asked which files it uses."""
    table = busy(paimon_java, tmp_path / "table")
    paimon_java.create_tag(table, "t", snapshot=2)
    branch = paimon_java.create_branch(table, "dev", tag="t")
    paimon_java.write(branch, [("+I", 1, DAYS[0], "branch")])
    before, of_main = reads(paimon_java, branch), rows(paimon_java, table)
    (table / "tag/tag-t").unlink()
    options = {"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"}
    paimon_java.alter(table, *({"change": "set_option", "name": n, "value": v} for n, v in options.items()))
    aged(table)

    assert expired(table).outcome is Outcome.VERIFIED
    assert orphans(table) == []
    assert reads(paimon_java, branch) == before

    paimon_java.drop_branch(table, "dev")
    aged(table)
    theirs = paimon_java.delete_orphans(table)["files"]
    # What main's entries say was removed stays in Java's eyes; the branch needed it, and nobody does now.
    only_ours = {*orphans(table)} - {str(Path(name).relative_to(table)) for name in theirs}
    assert len(theirs) == len(orphans(table)) - len(only_ours) > 0
    assert only_ours and all(name.startswith("day=") for name in only_ours)
    swept(table, SweepOrder(SweepMode.DELETE, max_share=1.0))
    assert rows(paimon_java, table) == of_main


def test_what_a_killed_expiry_leaves_is_found(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Java's cleaning keeps whatever an entry names, also one that says that the file was removed."""
    table = busy(paimon_java, tmp_path / "table")
    kept = shutil.copytree(table, tmp_path / "kept")
    paimon_java.expire(table)
    lost = sorted(name for name in names(kept) - names(table) if name.startswith("day="))
    for name in lost:
        shutil.copy(kept / name, table / name)
    aged(table)
    before = reads(paimon_java, table)

    assert lost and orphans(table) == lost
    assert paimon_java.delete_orphans(table)["files"] == []
    assert swept(table, SweepOrder(SweepMode.DELETE))[0].outcome is Outcome.VERIFIED
    assert reads(paimon_java, table) == before


def test_a_table_in_a_partition_of_ours_is_left_alone(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    inner = busy(paimon_java, table / "day=inner", options={"bucket": "1"}, rounds=1)
    _plant(table, (f"day=gone/bucket-0/data-{UUID}-0.parquet", f"day=inner/bucket-0/data-{UUID}-1.parquet"))
    aged(table)
    before = reads(paimon_java, inner)
    assert orphans(table) == [f"day=gone/bucket-0/data-{UUID}-0.parquet"]
    swept(table, SweepOrder(SweepMode.DELETE))
    assert reads(paimon_java, inner) == before


@pytest.mark.parametrize("lost", ["data", "index"])
def test_a_needed_file_that_is_missing_ends_the_sweep(lost: str, tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))
    _plant(table, (f"manifest/manifest-{UUID}-0",))
    gone = max(name for name in live_names(table) if name.rpartition("/")[2].startswith(f"{lost}-"))
    (table / gone).unlink()
    aged(table)
    with pytest.raises(EvidenceError, match=gone):
        swept(table, SweepOrder(SweepMode.DELETE))
    assert (table / f"manifest/manifest-{UUID}-0").exists()


# ---- what runs of ours leave ----

RUN = "nightly-2026-11-21"
POINTS = (2, 5, 9, 14, 18, 21, 24, 27, 29, 31, 33, 36, 38, 40)


@pytest.mark.few(2)
@pytest.mark.parametrize("at", some_extended(POINTS, keep=5))
def test_leftovers_of_a_killed_run_are_found_once_they_are_old(at: int, tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / "stock", tmp_path / "stock"))
    there = {*orphans(table)}
    before = files(table)
    with child(upgrade_and_die, table, RUN, at) as process:
        assert process.end() == -signal.SIGKILL
    left = leftovers(table, before)
    assert orphans(table) == sorted(there)
    aged(table)

    assert {*orphans(table)} - there == left
    assert swept(table, SweepOrder(of_run=RUN))[1] == sorted(left)
    assert swept(table, SweepOrder(of_run="another"))[1] == []


def test_points_are_those_of_a_whole_run(tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / "stock", tmp_path / "stock"))
    fuse = Fuse()
    with breaking(fuse):
        assert upgrade(table, run_id=RUN).outcome is Outcome.VERIFIED
    assert POINTS[-1] <= len(fuse.passed) < POINTS[-1] + 4


def _plant(table: Path, planted: Sequence[str]) -> None:
    for name in planted:
        os.makedirs((table / name).parent, exist_ok=True)
        (table / name).write_bytes(b"left over")
