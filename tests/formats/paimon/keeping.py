"""Sweeps and expiries of a table's folder by the shared flow, without Spark; tables of many versions to do it on."""

import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan, Writer
from tests.formats.paimon.contents import opened

from nightkeep.model import Operation, Run, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, ExpiryResult, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

COLUMNS = (("id", "INT NOT NULL"), ("day", "STRING NOT NULL"), ("text", "STRING"))
DAYS = ("2026-11-01", "a b/c%")
VECTORS = {"deletion-vectors.enabled": "true", "bucket": "1", "snapshot.num-retained.min": "1"}
KEYLESS = {"bucket": "-1", "snapshot.num-retained.min": "1"}

Rows = list[tuple[Any, ...]]


def run(run_id: str, operation: Operation) -> Run:
    return Run(run_id, run_token(run_id, operation), uuid.uuid4().hex[:8], time.time_ns() // 1_000_000)


def retention() -> Retention:
    return Retention(time.time_ns() // 1_000_000, 7 * DAY_MS)


def aged(table: Path, *, days: float = 30) -> None:
    """As if every file had been written some days ago."""
    then = time.time() - days * 86400
    for path in table.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def swept(table: Path, order: SweepOrder | None = None, *, run_id: str = "weekly") -> tuple[SweepResult, list[str]]:
    """What a sweep says, and the names of what it calls orphans. Ages are as they are: see `aged`."""
    with closing(MemorySets()) as sets:
        found = sweep_table(opened(table).retention, order or SweepOrder(), run(run_id, Operation.SWEEP), sets=sets)
        return found, _names(sets.orphans())


def orphans(table: Path) -> list[str]:
    return swept(table)[1]


def expired(table: Path, *, mode: SweepMode = SweepMode.DELETE, run_id: str = "weekly", **request: Any) -> ExpiryResult:
    """What an expiry says; `request` as ExpireRequest has it."""
    now_ms = time.time_ns() // 1_000_000
    order = ExpireOrder(mode, ExpireRequest(**{"now_ms": now_ms, **request}), retention())
    sets = MemorySets()
    try:
        return expire_versions(
            opened(table).retention, order, run(run_id, Operation.EXPIRE), sets=lambda: sets, before=lambda *_: None
        )
    finally:
        sets.close()


def live_names(table: Path) -> dict[str, int | None]:
    """Every file that readers of any root need, with the size that metadata states, None where it does not."""
    found = opened(table)
    sources: dict[object, None] = {}
    parts: list[Any] = []
    for root in found.retention.roots(retention()):
        reach = found.retention.reach(root)
        parts.append(reach.files)
        sources |= dict.fromkeys(reach.sources)
    parts += [batch for source in sources for batch in found.retention.live(source)]
    return {row["name"]: row["bytes"] for part in parts for row in part.to_pylist() if row["needed"]}


def names(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}


def busy(
    java: PaimonJava,
    table: Path,
    *,
    options: Mapping[str, str] = VECTORS,
    keys: tuple[str, ...] = ("id", "day"),
    rounds: int = 3,
) -> Path:
    """Per round two commits of each day and, for keys, a compaction that rewrites files, every other time in full."""
    java.create(table, Layout(COLUMNS, keys, ["day"], dict(options)))
    for number in range(rounds):
        for half in range(2):
            rows = [("+I", key, day, f"{number}.{half}") for day in DAYS for key in range(half, 6 + number)]
            java.write(table, rows, Writer())
        if keys:
            java.compact(table, Compaction(full=number % 2 == 1))
    return table


def reads(java: PaimonJava, table: Path) -> dict[int, Rows]:
    """Rows of every snapshot that Java lists, merged on read."""
    ids = [int(snapshot["id"]) for snapshot in java.snapshots(table)]
    return {number: rows(java, table, number) for number in ids}


def rows(java: PaimonJava, table: Path, snapshot: int | None = None, **options: str) -> Rows:
    pinned = {} if snapshot is None else {"scan.snapshot-id": str(snapshot)}
    scan = Scan(
        options={
            **MERGE_ON_READ,
            **pinned,
            **{key.replace("__", "-").replace("_", "."): v for key, v in options.items()},
        }
    )
    return sorted(java.read(table, scan).rows)


def _names(batches: Iterator[pa.RecordBatch]) -> list[str]:
    return [name for batch in batches for name in batch.column("name").to_pylist()]
