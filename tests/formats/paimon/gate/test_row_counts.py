"""A manifest's row count is compared with its snapshot's total and its file's footer before anything has its size."""

import multiprocessing
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.formats.paimon.contents import SAMPLES, files, opened
from tests.formats.paimon.metadata.test_hostile import _edit, _say
from tests.formats.paimon.upgrade import upgrade

import nightkeep
from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.gate import append_scan, scan
from nightkeep.model import Operation, Outcome, View
from nightkeep.storage import open_storage

ABSURD = 10**12
SPARE_BYTES = 512 << 20
"""What a task may take here beside what its process holds. A bitmap of so many rows takes 3 GB."""
OPERATIONS = {"orders": Operation.UPGRADE, "events_raw": Operation.OPTIMIZE, "ledger": Operation.OPTIMIZE}


def damaged(folder: Path, name: str, *, counted: bool) -> Path:
    """A sample with an absurd row count of one file of its newest commit; `counted`: its snapshot counts it as well."""
    table = Path(shutil.copytree(SAMPLES / name, folder / name))
    snapshot = opened(table).snapshot()
    live, added = {file.name for unit in snapshot.units for file in unit.files}, 0

    def absurd(entries: list[Record]) -> None:
        nonlocal added
        file = next(entry["_FILE"] for entry in entries if entry["_FILE"]["_FILE_NAME"] in live)
        added = ABSURD - file["_ROW_COUNT"]
        file["_ROW_COUNT"] = ABSURD

    _edit(table / "manifest" / str((*snapshot.delta_manifests, *snapshot.base_manifests)[0]["_FILE_NAME"]), absurd)
    if counted:
        total = int(str(snapshot.raw["totalRecordCount"])) + added
        _say(table / f"snapshot/snapshot-{snapshot.version}", totalRecordCount=total)
    return table


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_plan_compares_the_files_with_the_total(tmp_path: Path, name: str) -> None:
    table = damaged(tmp_path, name, counted=False)
    before = files(table)
    document = upgrade(table, operation=OPERATIONS[name], full=True)
    assert document.outcome is Outcome.FAILED
    assert "totalRecordCount" in str(document.reason) and f"{ABSURD} of them in" in str(document.reason)
    assert files(table) == before


@pytest.mark.slow
def test_tasks_and_readers_stay_small_whatever_the_manifest_counts(tmp_path: Path) -> None:
    tables = [str(damaged(tmp_path, name, counted=True)) for name in ("orders", "events_raw")]
    spawned = multiprocessing.get_context("spawn")
    results = spawned.SimpleQueue()
    child = spawned.Process(target=bounded, args=(tables, results))
    child.start()
    child.join()
    assert child.exitcode == 0
    found = results.get()
    assert len(found) == 4
    for outcome in found:
        assert f"expected {ABSURD} rows as its manifest states" in outcome, outcome


def bounded(tables: list[str], results: "multiprocessing.SimpleQueue[list[str]]") -> None:
    """What each reader ends with, in the limited address space of a child."""
    acts = [act for table in tables for act in readings(table)]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    results.put([ended(act) for act in acts])


def readings(table: str) -> Iterator[Callable[[], object]]:
    """The gate's task of the bucket, and a read for people."""
    storage, snapshot = open_storage(table), opened(Path(table)).snapshot()
    unit = next(unit for unit in snapshot.units if any(file.rows == ABSURD for file in unit.files))
    survivors = scan.survivors if snapshot.schema.primary_keys else append_scan.survivors
    yield lambda: survivors(storage, unit, View.MERGED)
    view = "merge-on-read" if snapshot.schema.primary_keys else None
    yield lambda: nightkeep.read(f"paimon:{table}", view=view).read_all()


def ended(act: Callable[[], object]) -> str:
    try:
        return f"no failure: {type(act())}"
    except CorruptMetadata as failure:
        return str(failure)
