"""Reports that cannot be written: nothing is published before they can, and what was published is checked and told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.drivers.memory_engine import MemoryEngine
from tests.formats.delta.lake import Lake
from tests.formats.delta.runs import policy
from tests.groups.session.test_run_group import Checking
from tests.records.test_documents import document
from tests.retention.test_remove import Place, place, without_spark
from tests.support.commands import said

from nightkeep.admission.order import Order
from nightkeep.commands.job import run_job
from nightkeep.errors import UsageError
from nightkeep.formats import open_table
from nightkeep.groups.one_operation import run_one
from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.nights.settled import awaits_check, parse, refresh_result
from nightkeep.policy import load
from nightkeep.records import CheckStatus, load_history, store
from nightkeep.records.check_report import CheckReport, ExpectationResult
from nightkeep.spark.engine import Engine
from nightkeep.storage.kept import KeptFile
from nightkeep.storage.local.kept import KeptOnDisk
from nightkeep.tasks import inline, inline_exchange

__all__ = ["place", "without_spark"]

POLICY = "version: 1\ntables: [{{name: one, table: 'memory:{0}/one'}}, {{name: two, table: 'memory:{0}/two'}}]"


class Full:
    """A reports folder whose writes fail, all from the `first` to the `last`, counted from 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.first, self.last, self.writes = 0, 0, 0
        real, swap_real = KeptOnDisk.write, KeptOnDisk.swap

        def write(store: KeptOnDisk, name: str, data: bytes) -> None:
            self.note(name)
            real(store, name, data)

        def swap(store: KeptOnDisk, name: str, data: bytes, *, read: KeptFile | None) -> bool:
            if name.startswith("holds/"):
                self.note(name)
            return swap_real(store, name, data, read=read)

        monkeypatch.setattr(KeptOnDisk, "write", write)
        monkeypatch.setattr(KeptOnDisk, "swap", swap)

    def note(self, name: str) -> None:
        """Writes of the index are not counted: they fail where the next other one would."""
        is_counted = not name.startswith("~index/")
        self.writes += is_counted
        if self.first <= self.writes + (not is_counted) <= self.last:
            raise OSError(28, "No space left on device", name)

    def fails(self, first: int, last: int | None = None) -> None:
        self.first, self.last, self.writes = first, last or first, 0


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Full:
    return Full(monkeypatch)


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, MemoryEngine]:
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("paimon", "delta", "iceberg", "memory"))
    monkeypatch.setattr("nightkeep.groups.session.run_group.beside", lambda engine: engine)
    monkeypatch.setattr("nightkeep.checking.on_spark.check", lambda request, engine: engine.check(request))
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.setattr(Engine, "exchange", lambda engine: inline_exchange)
    made = {name: MemoryEngine(f"{tmp_path}/{name}") for name in ("one", "two")}
    for engine in made.values():
        engine.append("2026-11-01", range(10))
        engine.append("2026-11-01", range(10, 20))
    (tmp_path / "tables.yaml").write_text(POLICY.format(tmp_path))
    return made


class Judging(Checking):
    """Says what it is told to, whatever is stored."""

    def check(self, request: CheckRequest) -> CheckReport:
        self.asked.append((request.address.name, request.version, CheckStatus.NOT_RUN))
        said = self.said.pop(0) if self.said else CheckStatus.PASSED
        assert isinstance(said, CheckStatus)
        return CheckReport(said, "all of it", results=(ExpectationResult("same rows", None, said, ""),))


def night(folder: Path, engine: Any) -> list[StoredDocument]:
    group = TableGroup(
        load(folder / "tables.yaml"), ("one", "two"), "night-1", str(folder / "reports"), one_by_one=True
    )
    return [*run_group(group, (Operation.OPTIMIZE,), cast(Engine, engine))]


def version(engine: MemoryEngine) -> int:
    return open_table(engine.address).snapshot().version


def test_nothing_is_published_before_a_document_could_be_written(
    tmp_path: Path, engines: dict[str, MemoryEngine], full: Full
) -> None:
    before = version(engines["one"])
    full.fails(1, 2)
    one, two = night(tmp_path, Judging(tmp_path))
    assert (one.document.outcome, one.path, version(engines["one"])) == (Outcome.FAILED, None, before)
    assert "a place where the run's document can be written, found No space left on device; nothing was done" in str(
        one.document.reason
    )
    assert (two.document.outcome, two.document.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED)


@pytest.mark.parametrize("first", [2, 3])
@pytest.mark.parametrize("status", [CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERRORED])
def test_what_was_published_is_checked_and_reported_whatever_fails_afterwards(
    tmp_path: Path, engines: dict[str, MemoryEngine], full: Full, first: int, status: CheckStatus
) -> None:
    """Every write after the first fails, then every write after the second: the hold's too."""
    full.fails(first, 99)
    engine = Judging(tmp_path, status)
    found = night(tmp_path, engine)
    assert engine.asked[0][:2] == ("one", 4)
    one = found[0]
    outcomes = {
        CheckStatus.PASSED: Outcome.VERIFIED,
        CheckStatus.FAILED: Outcome.MISMATCH,
        CheckStatus.ERRORED: Outcome.FAILED,
    }
    assert (one.document.outcome, one.document.expectations.status, one.path) == (outcomes[status], status, None)
    assert "version 4 was published, but its document cannot be written: No space left" in str(one.document.reason)
    # The other table of the group ends by its own outcome too.
    assert found[1].document.outcome is Outcome.FAILED and version(engines["two"]) == 3
    (entry, _) = parse(json.dumps([each.to_json() for each in found]))
    assert (refresh_result(entry).outcome, awaits_check(entry)) == (outcomes[status], status is CheckStatus.ERRORED)
    if status is CheckStatus.FAILED:
        again = night(tmp_path, Judging(tmp_path))
        assert version(engines["one"]) == 4 and again[0].document.outcome is not Outcome.UNCHANGED


def test_a_table_is_held_although_its_hold_cannot_be_written(
    tmp_path: Path, engines: dict[str, MemoryEngine], full: Full
) -> None:
    full.fails(3, 99)
    night(tmp_path, Judging(tmp_path, CheckStatus.FAILED))
    full.fails(0)
    later = TableGroup(load(tmp_path / "tables.yaml"), ("one",), "night-2", str(tmp_path / "reports"))
    (held,) = run_group(later, (Operation.OPTIMIZE,), cast(Engine, Judging(tmp_path)))
    assert held.document.outcome is Outcome.SKIPPED
    assert "to release it: nightkeep release one" in str(held.document.reason)


@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_command_ends_as_its_outcome_states(
    tmp_path: Path, engines: dict[str, MemoryEngine], full: Full, first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    full.fails(first, 99)
    where = ["--policy", str(tmp_path / "tables.yaml"), "--reports", str(tmp_path / "reports")]
    told = said(capsys, "run", "one", "--operation", "optimize", "--no-check", *where, "--json")
    assert (told.status, told.json["outcome"]) == ((1, "failed") if first == 1 else (0, "verified"))
    assert "Traceback" not in told.err
    assert (told.json["committed_version"], version(engines["one"])) == ((None, 3) if first == 1 else (4, 4))


def test_a_run_that_ends_half_way_has_left_a_document(
    tmp_path: Path, engines: dict[str, MemoryEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("nightkeep.running.rewrites.run_operation.publish", ended)
        night(tmp_path, Judging(tmp_path))
    (left,) = load_history(tmp_path / "reports", "one")
    assert (left.outcome, left.committed_version, left.awaits_check) == (Outcome.FAILED, None, False)
    assert str(left.reason).startswith("ended before it was done")
    assert [unit.outcome for unit in left.units] == [Outcome.FAILED]
    assert {each.document.outcome for each in night(tmp_path, Judging(tmp_path))} == {Outcome.VERIFIED}


def test_a_job_states_before_any_work_that_it_cannot_report(tmp_path: Path, engines: dict[str, MemoryEngine]) -> None:
    arguments = ["--policy", f"{tmp_path}/tables.yaml", "--tables", "one", "--run-id-prefix", "n", "--reports"]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--result: expected a file that can be written"):
        run_job([*arguments, f"{tmp_path}/reports", "--result", f"{tmp_path}/file/result.json"], operations=())
    assert version(engines["one"]) == 3 and not (tmp_path / "reports").exists()


def test_pages_that_cannot_be_written_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(document(), tmp_path)
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing"), Path("/dev/null")):
        told = said(capsys, "report", "--reports", str(tmp_path), "--out", str(out))
        assert (told.status, told.out, told.err.count("\n")) == (1, "", 1)
        assert told.err.startswith(f"nightkeep: {out}/pages/")


class TestUpkeep:
    """A sweep, what it brings back, and an expiry."""

    def test_removes_nothing_before_its_document_could_be_written(self, place: Place, full: Full) -> None:
        before = place.data
        for mode in (SweepMode.QUARANTINE, SweepMode.DELETE):
            full.fails(1, 99)
            found = place.swept(mode)
            assert (found.outcome, place.data) == (Outcome.FAILED, before)
            assert "nothing was done" in str(found.reason)

    def test_reports_what_it_removed_whatever_fails_afterwards(self, place: Place, full: Full) -> None:
        full.fails(2, 99)
        found = place.checked(SweepMode.DELETE)
        assert (found.outcome, found.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED)
        assert "its document cannot be written: No space left on device" in str(found.reason)
        assert not place.old.exists()

    def test_brings_nothing_back_before_its_document_could_be_written(self, place: Place, full: Full) -> None:
        place.swept(SweepMode.QUARANTINE)
        full.fails(1, 99)
        assert (place.restored().outcome, place.old.exists()) == (Outcome.FAILED, False)
        full.fails(2, 99)
        found = place.restored()
        assert (found.outcome, place.old.exists()) == (Outcome.VERIFIED, True)
        assert "its document cannot be written" in str(found.reason)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte; where nobody may mount one there is none."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "none", folder], check=False).returncode:
        pytest.skip("expected to be allowed to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
def test_a_full_disk_shared_with_the_table_loses_nothing_of_what_was_published(small_disk: Path) -> None:
    """From no space at all to enough for everything, in steps of a block."""
    ended: dict[Outcome, int] = {}
    for blocks in [*range(0, 24, 2), 60]:
        found, published = on_disk(small_disk, blocks)
        ended[found.outcome] = ended.get(found.outcome, 0) + 1
        assert (found.committed_version is not None) == published, f"{blocks} blocks free: {found.reason}"
    assert set(ended) >= {Outcome.FAILED, Outcome.VERIFIED}


def on_disk(disk: Path, blocks: int) -> tuple[Any, bool]:
    """One optimize with so many free blocks; its document, and whether the table has a new version."""
    for path in disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    lake = Lake(disk / "lake", pa.schema([("id", pa.int64())]))
    lake.append(pa.table({"id": range(10)}), files=4)
    before = lake.snapshot.version
    told = os.statvfs(disk)
    with (disk / "filler").open("wb") as filler:
        filler.write(b"\0" * max(0, (told.f_bavail - blocks) * told.f_bsize))
    engine = cast(Engine, InProcess())
    order = Order(Operation.OPTIMIZE, "r", str(disk / "reports"), checks=False)
    found = run_one(policy(disk / "lake"), order, engine).document
    return found, lake.snapshot.version > before


class InProcess:
    mapper = staticmethod(lambda: inline)
    exchange = staticmethod(lambda: inline_exchange)


def test_a_reports_folder_without_rights_is_a_sentence(
    tmp_path: Path, engines: dict[str, MemoryEngine], capsys: pytest.CaptureFixture[str]
) -> None:
    """A file where the folder should be stands for it: root may write anywhere."""
    (tmp_path / "reports").write_text("")
    where = ["--policy", str(tmp_path / "tables.yaml"), "--reports", str(tmp_path / "reports")]
    told = said(capsys, "run", "one", "--operation", "optimize", "--no-check", *where, "--json")
    assert (told.status, told.json["committed_version"], version(engines["one"])) == (1, None, 3)
    assert "nothing was done" in told.json["reason"]
