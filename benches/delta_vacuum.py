"""Removed files of a Delta table: delta-spark's VACUUM and VACUUM LITE against a sweep by listing and from the log.

Run by `make bench-delta BENCH="--vacuum"`. Each side works on a copy of one table, whose files are hard links. The
session's start is in no figure. Files that only a listing finds are left out, so that all delete the same.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from benches.delta_log import checkpoint_table
from tests.drivers.delta_spark import DeltaSpark, named

from nightkeep.formats import open_table
from nightkeep.model import Address, Run
from nightkeep.model.sweep_rules import DAY_MS, FoundBy, SweepMode
from nightkeep.protocol.table_files import LogPoint
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

LINKS = 10_000
"""Names per file: file systems allow some ten thousand."""
PER_COMMIT = 1_000
TIMEOUT = 1800.0
ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """Files of the folder, how many of them a night removed, and how many older ones an earlier sweep has removed."""

    files: int
    removed: int
    swept: int = 0

    def __str__(self) -> str:
        before = f", {self.swept:,} more were removed and swept before" if self.swept else ""
        return f"{self.files:,} files, {self.removed:,} of them removed from the table{before}"


def write_vacuumed(folder: Path, size: Vacuumed) -> None:
    """Files by commits of 1,000, 30 days ago; removals by one commit each 1,000, 20 days ago, oldest files first. The
    newest version has a checkpoint."""
    (folder / "_delta_log").mkdir(parents=True)
    content = folder / "content.parquet"
    pq.write_table(pa.table({"id": [1]}), content)
    bytes_, all_ = content.stat().st_size, size.files + size.swept
    for number in range(size.swept, all_):
        if (number - size.swept) % LINKS == 0:
            source = folder / f"{uuid.uuid4()}.tmp"
            shutil.copy(content, source)
            os.utime(source, (_seconds(30),) * 2)
        os.link(source, folder / _name(number))
    for left in (content, *folder.glob("*.tmp")):
        left.unlink()
    adds = range(0, all_, PER_COMMIT)
    removes = range(0, size.swept + size.removed, PER_COMMIT)
    for version, start in enumerate(adds):
        numbers = range(start, min(start + PER_COMMIT, all_))
        _commit(folder, version, [_add(number, bytes_) for number in numbers], days=30)
    for version, start in enumerate(removes, start=len(adds)):
        numbers = range(start, min(start + PER_COMMIT, size.swept + size.removed))
        _commit(folder, version, [_remove(number) for number in numbers], days=20)
    _commit(folder, len(adds) + len(removes), [], days=0)
    checkpoint_table(folder)


def _commit(folder: Path, version: int, actions: list[Mapping[str, object]], *, days: float) -> None:
    at_s, adds = _seconds(days) + version / 1000, sum("add" in action for action in actions)
    metrics = {"numFiles": str(adds)}
    info = {"timestamp": int(at_s * 1000), "operation": "WRITE", "operationParameters": {}, "operationMetrics": metrics}
    lines = [{"commitInfo": info}, *(_head() if version == 0 else ()), *actions]
    path = folder / "_delta_log" / f"{version:020d}.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(path, (at_s, at_s))


def _head() -> Iterator[Mapping[str, object]]:
    yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    table = {"id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    yield {"metaData": {**table, "partitionColumns": [], "configuration": {}}}


def _add(number: int, size: int) -> Mapping[str, object]:
    file = {"path": _name(number), "partitionValues": {}, "size": size, "modificationTime": int(_seconds(30) * 1000)}
    return {"add": {**file, "dataChange": True, "stats": json.dumps({"numRecords": 1})}}


def _remove(number: int) -> Mapping[str, object]:
    return {"remove": {"path": _name(number), "deletionTimestamp": int(_seconds(20) * 1000), "dataChange": True}}


def _name(number: int) -> str:
    return f"part-{number:08d}-6f1f5dd5-4d0c-4f55-9a7b-4f0c9d8a2f11.c000.snappy.parquet"


def _seconds(days: float) -> float:
    return time.time() - days * DAY_MS / 1000


def measure_vacuum(folder: Path, sizes: tuple[Vacuumed, ...]) -> None:
    with DeltaSpark(timeout=TIMEOUT) as spark:
        spark.set({"spark.sql.sources.parallelPartitionDiscovery.parallelism": "2"})
        spark.sql("SELECT 1")
        for number, size in enumerate(sizes):
            print(size, flush=True)
            _measure(spark, folder / str(number), size)


def _measure(spark: DeltaSpark, folder: Path, size: Vacuumed) -> None:
    made = folder / "made"
    write_vacuumed(made, size)
    since = _reached(made, size)
    sides: tuple[tuple[str, Callable[[Path, SweepMode], object]], ...] = (
        ("VACUUM", lambda table, mode: _vacuum(spark, table, "", mode)),
        ("VACUUM LITE", lambda table, mode: _vacuum(spark, table, " LITE", mode)),
        ("sweep by a listing", lambda table, mode: _sweep(table, FoundBy.LISTING, None, mode)),
        ("sweep from the log", lambda table, mode: _sweep(table, FoundBy.LOG, since, mode)),
    )
    for name, act in sides:
        table = Path(shutil.copytree(made, folder / name.replace(" ", "-"), copy_function=os.link))
        for path in (made / "_delta_log").iterdir():
            # A commit's own bytes and time: links would share what another side writes.
            (table / "_delta_log" / path.name).unlink()
            shutil.copy2(path, table / "_delta_log" / path.name)
        if since is not None:
            info = {"latestCommitVersionOutsideOfRetentionWindow": since.version}
            (table / "_delta_log" / "_last_vacuum_info").write_text(json.dumps(info))
        looks = [_timed(partial(act, table, SweepMode.DRY_RUN)) for _ in range(ROUNDS)]
        deleting = _timed(partial(act, table, SweepMode.DELETE))
        left = sum(1 for _ in table.glob("*.parquet"))
        assert left == size.files - size.removed, (name, left)
        print(
            f"  {name:<20} dry run {looks[0]:7.2f} s first, {min(looks):7.2f} s best; deleting {deleting:7.2f} s",
            flush=True,
        )
        shutil.rmtree(table)
    shutil.rmtree(folder)


def _reached(made: Path, size: Vacuumed) -> LogPoint | None:
    """The point of an earlier sweep, in which the first files went."""
    if not size.swept:
        return None
    digest = open_table(Address("delta", str(made), "events")).digest
    version = -(-(size.files + size.swept) // PER_COMMIT) + size.swept // PER_COMMIT - 1
    first = json.loads((made / "_delta_log" / f"{0:020d}.json").read_text().splitlines()[2])
    return LogPoint(first["metaData"]["id"], version, digest(version) or "")


def _vacuum(spark: DeltaSpark, table: Path, kind: str, mode: SweepMode) -> object:
    spark.forget()
    return spark.sql(f"VACUUM {named(table)}{kind}{' DRY RUN' if mode is SweepMode.DRY_RUN else ''}", timeout=TIMEOUT)


def _sweep(table: Path, found_by: FoundBy, since: LogPoint | None, mode: SweepMode) -> SweepResult:
    order = SweepOrder(mode, max_share=1.0, found_by=found_by, since=since)
    files = open_table(Address("delta", str(table), "events")).retention
    assert files is not None
    run = Run("bench", "f" * 16, uuid.uuid4().hex[:8], int(time.time() * 1000))
    with closing(MemorySets()) as sets:
        result = sweep_table(files, order, run, sets=sets)
    assert result.outcome in ("skipped", "verified"), result.reason
    return result


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
