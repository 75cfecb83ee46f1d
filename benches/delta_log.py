"""A Delta log of very many commits: what a plan takes, what our checkpoint and its proof take, and a plan from that.

Run by `make bench-delta BENCH="--log"`. Each step is a process of its own, with its own CPU seconds and peak.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nightkeep.formats import open_table
from nightkeep.formats.delta.metadata.head import head
from nightkeep.formats.delta.upkeep.checkpointing import write_checkpoint
from nightkeep.model import Address, Operation, Request, Run
from nightkeep.stages.plan import plan
from nightkeep.storage import open_storage

MB = 1 << 20
STATS = json.dumps({"numRecords": 10_000, "minValues": {"id": 1}, "maxValues": {"id": 9}, "nullCount": {"id": 0}})
PACKED = 20
"""Every so many commits, one replaces the files of those since the last such one."""


def write_log(folder: Path, commits: int) -> None:
    """A file a commit, as a sink writes; of every twenty, the last one packs the nineteen before. No checkpoint."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for version in range(commits):
        lines = [json.dumps(action) for action in _actions(version)]
        (log / f"{version:020d}.json").write_text("".join(f"{line}\n" for line in lines))


def _actions(version: int) -> Iterator[Mapping[str, object]]:
    now_ms = int(time.time() * 1000)
    yield {"commitInfo": {"timestamp": now_ms, "operation": "WRITE", "operationMetrics": {"numFiles": "1"}}}
    if version == 0:
        yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
        schema = json.dumps({"type": "struct", "fields": fields})
        told = {"id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
        yield {"metaData": {**told, "partitionColumns": [], "configuration": {}}}
    packs = version % PACKED == PACKED - 1
    file = {
        "path": _name(version),
        "partitionValues": {},
        "size": 200 * MB if packs else MB,
        "modificationTime": now_ms,
    }
    yield {"add": {**file, "dataChange": True, "stats": STATS}}
    for old in range(version - PACKED + 1, version) if packs else ():
        yield {"remove": {"path": _name(old), "deletionTimestamp": now_ms, "dataChange": True}}


def _name(version: int) -> str:
    return f"part-{version:08d}-6f1f5dd5-4d0c-4f55-9a7b-4f0c9d8a2f11.c000.snappy.parquet"


def plan_table(folder: Path) -> str:
    table = open_table(Address("delta", str(folder), "events"))
    snapshot = table.snapshot()
    found = plan(table, snapshot, Request(operation=Operation.OPTIMIZE, now_ms=0))
    return f"{len(snapshot.sizes.bytes):,} files, {len(found.units)} units"


def checkpoint_table(folder: Path) -> str:
    storage, now_ms = open_storage(str(folder)), int(time.time() * 1000)
    newest = head(storage, table="events")
    run = Run("bench", "f" * 16, uuid.uuid4().hex[:8], now_ms)
    written = write_checkpoint(Address("delta", str(folder), "events"), storage, newest, run)
    assert written is not None
    return f"{written.actions:,} actions, {written.bytes / MB:.1f} MiB"


def measure_log(folder: Path, commits: int) -> None:
    started = time.perf_counter()
    write_log(folder, commits)
    size = sum(path.stat().st_size for path in (folder / "_delta_log").iterdir())
    print(f"a log of {commits:,} commits, {size / MB:,.0f} MiB, written in {time.perf_counter() - started:.0f} s")
    for name, work in (
        ("plan without a checkpoint", plan_table),
        ("write the checkpoint, compare it with the log", checkpoint_table),
        ("plan from the checkpoint", plan_table),
    ):
        print(f"  {name:<46} {_apart(work, folder)}")


def _apart(work: Callable[[Path], str], folder: Path) -> str:
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    child = context.Process(target=_answer, args=(work, folder, answers))
    child.start()
    answer: str = answers.get()
    child.join()
    return answer


def _answer(work: Callable[[Path], str], folder: Path, answers: multiprocessing.Queue[str]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    said = work(folder)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.put(f"{wall:6.1f} s, {cpu:6.1f} CPU s, peak {peak:6,.0f} MiB: {said}")
