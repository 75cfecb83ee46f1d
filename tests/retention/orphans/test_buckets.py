"""Sweeps of a table in a bucket, whose server fails requests: nothing is lost, and what failed is named or mended."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.drivers.fault_proxy import Fault, Way
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import Bucket, S3Server
from tests.retention.toy_table import NOW, Toy, age, run_of

from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.lease import LEASE_MS
from nightkeep.retention.orphans.quarantine import close, restore
from nightkeep.retention.orphans.removal import _Progress
from nightkeep.retention.orphans.sets import ORPHANS
from nightkeep.storage import LocalStorage
from nightkeep.storage.objects import clients
from nightkeep.storage.objects.store import ObjectStorage

if TYPE_CHECKING:
    from obstore import ObjectMeta

OLD = ["data/day=1/old one.dat", *(f"data/old-{n}.dat" for n in range(5)), "data/\u00e9%20.dat"]
LIVE = ["data/a.dat", "data/day=1/b.dat"]


@pytest.fixture
def faults(s3_server: S3Server, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Faults]:
    """A proxy before the server; each request is tried twice."""
    monkeypatch.setattr(clients, "RETRIES", 1)
    monkeypatch.setattr(clients, "FIRST_WAIT_MS", 1)
    with S3Faults(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def toy(s3_bucket: Bucket, faults: S3Faults) -> Toy:
    """A table in a bucket, written on the server's disk: times that a bucket lists are not of whole seconds."""
    made = Toy.at(s3_bucket.folder / "t")
    made.write(*LIVE, *OLD)
    made.commit(1, *LIVE)
    for name in OLD:
        age(made.folder / name, 30)
        times = os.stat(made.folder / name).st_mtime_ns + 123_456_789
        os.utime(made.folder / name, ns=(times, times))
    return Toy(ObjectStorage(f"{s3_bucket.uri}/t"))


@pytest.fixture
def disk(s3_bucket: Bucket) -> Toy:
    """The same table as the server has it."""
    return Toy(LocalStorage(str(s3_bucket.folder / "t")))


def contents(toy: Toy) -> dict[str, bytes]:
    return {name: content for name, (content, _) in toy.files().items()}


def test_orphans_of_a_bucket_are_quarantined_restored_deleted(toy: Toy, disk: Toy) -> None:
    before = contents(disk)
    assert toy.looked()[1] == sorted(OLD)
    told = toy.swept(SweepMode.QUARANTINE)
    assert (told.outcome, told.acted.files, told.left.files, told.failed) == (Outcome.VERIFIED, len(OLD), 0, ())
    assert contents(disk).keys() == before.keys() - set(OLD) and len(disk.aside()) == len(OLD)
    assert toy.swept().outcome is Outcome.UNCHANGED
    assert restore(toy.table_files(), "run-1", now_ms=NOW).files == len(OLD)
    assert contents(disk) == before and disk.aside() == []
    for name in OLD:
        age(disk.folder / name, 30)
    assert toy.swept(SweepMode.DELETE, "run-2").acted.files == len(OLD)
    assert contents(disk).keys() == before.keys() - set(OLD)


FAULTS = {
    "copy never seen": (r"PUT .*_nightkeep.*file", Way.BEFORE, 500),
    "copy done, answer lost": (r"PUT .*_nightkeep.*file", Way.AFTER, 0),
    "delete never seen": (r"(DELETE|POST) .*", Way.BEFORE, 503),
    "delete done, answer lost": (r"(DELETE|POST) .*", Way.AFTER, 0),
    "list of files lost": (r"PUT .*plan-", Way.AFTER, 0),
    "list of files not written": (r"PUT .*plan-", Way.BEFORE, 500),
    "mark lost": (r"PUT .*done-", Way.AFTER, 0),
    "mark not written": (r"PUT .*done-", Way.BEFORE, 500),
    "looks throttled": (r"HEAD .*old", Way.BEFORE, 503),
}
ALWAYS = 1_000


@pytest.mark.few(5)
@pytest.mark.in_turn("times")
@pytest.mark.parametrize("times", [1, 3, ALWAYS])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_a_bucket_fails_a_rerun_leaves_each_file_in_one_place(
    toy: Toy, disk: Toy, faults: S3Faults, fault: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It deletes the first file of all, and nothing can be told of the rest where it cannot.
    monkeypatch.setattr("nightkeep.retention.orphans.sweep_table.store_ahead_ms", lambda *_: 0)
    before, (request, way, status) = contents(disk), FAULTS[fault]
    broken = _set_off(faults, request, way, status=status, times=times)
    first = toy.swept(SweepMode.QUARANTINE)
    assert first.outcome is Outcome.FAILED or first.acted.files == len(OLD)
    if fault == "delete done, answer lost":
        assert (first.outcome, first.acted.files, first.failed) == (Outcome.VERIFIED, len(OLD), ())
    elif times == ALWAYS:
        assert first.outcome is Outcome.FAILED and first.failed
    assert broken.seen, "no request that could fail"
    assert {*contents(disk).values(), *(content for content, _ in disk.aside())} == {*before.values()}
    broken.times = 0
    toy.swept(SweepMode.QUARANTINE, "run-2")
    assert sorted(content for content, _ in disk.aside()) == sorted(before[name] for name in OLD)
    assert contents(disk).keys() == before.keys() - set(OLD)
    for run_id in ("run-1", "run-2"):
        if not any(path.name.startswith(f"{run_id}-") for path in _quarantines(disk)):
            continue
        assert restore(toy.table_files(), run_id, now_ms=NOW).conflicts == ()
    assert contents(disk) == before


@pytest.mark.parametrize("when", ["compared", "before its source goes"])
def test_a_mover_that_took_too_long_leaves_what_another_host_settled(
    toy: Toy, disk: Toy, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other host closes the part in favour of home: while both are compared, by a clock that is ahead; later."""
    before, now = contents(disk), [0]
    monkeypatch.setattr("nightkeep.storage.many_requests.THREADS", 1)

    class Slow(ObjectStorage):
        def _is_copy(self, source: "ObjectMeta", copy: "ObjectMeta | None") -> bool:
            found = super()._is_copy(source, copy)
            if when != "compared" and source["path"].endswith("old-2.dat"):
                now[0] += LEASE_MS
                assert close(toy.table_files(), run_of("run-2")) == ("run-1",)
            return found

        def _digest(self, found: "ObjectMeta") -> bytes:
            digest = super()._digest(found)
            if when == "compared" and found["path"].endswith("00003.file"):
                assert close(toy.table_files(), run_of("run-2")) == ("run-1",)
            return digest

    table_files = replace(toy.table_files(), storage=Slow(toy.storage.root))
    work = _Progress(table_files, run_of("run-1"), clock=lambda: now[0])
    found = [toy.storage.stat(name) for name in sorted(OLD)]
    rows = [{"name": f.name, "bytes": f.bytes, "modified_ms": f.modified_ms, "kind": "data"} for f in found if f]
    work.quarantine(pa.RecordBatch.from_pylist(rows, schema=ORPHANS))
    assert work.gone.files == (len(OLD) - 1 if when == "compared" else 3)
    assert sorted(contents(disk).values()) == sorted({*before.values()} - {content for content, _ in disk.aside()})
    restore(toy.table_files(), "run-1", now_ms=NOW)
    assert contents(disk) == before


def _quarantines(disk: Toy) -> list[Path]:
    return sorted(path.parent for path in (disk.folder / "_nightkeep/quarantine").glob("*/plan-*"))


def _set_off(faults: S3Faults, request: str, way: Way, *, status: int, times: int) -> Fault:
    if status:
        return faults.fail(status, request=request, way=way, times=times)
    return faults.drop(request=request, way=way, times=times)
