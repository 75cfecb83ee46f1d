"""Sweeps of Iceberg tables in this process, and what a table's folder and metadata say of its files by other means."""

import gzip
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.runs import folder, opened

from nightkeep.model import Run
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import OpenFiles, Retention, Root
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

OLD_DAYS = 30
UUID = "0123abcd-0000-4000-8000-00000000beef"


@dataclass(frozen=True)
class Found:
    """A sweep, and its orphans: kinds by name in storage."""

    swept: SweepResult
    orphans: Mapping[str, str]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def swept(table: Table, mode: SweepMode = SweepMode.DRY_RUN, *, of: OpenFiles | None = None, **order: Any) -> Found:
    """With whatever share of the table to go: those here are small."""
    sets = MemorySets()
    asked = SweepOrder(mode, **{"max_share": 1.0, **order})
    done = sweep_table(of or opened(table).retention, asked, Run("sweep", "0" * 16, "a", now_ms()), sets=sets)
    rows = [row for batch in sets.orphans() for row in batch.to_pylist()]
    sets.close()
    return Found(done, {row["name"]: row["kind"] for row in rows})


def aged(*paths: Path, days: float = OLD_DAYS) -> None:
    """As if every file in the folders had been written days ago."""
    then = time.time() - days * 24 * 3600
    for path in paths:
        for file in [path, *path.rglob("*")]:
            if file.is_file():
                os.utime(file, (then, then))


def old(table: Table, *, days: float = 10) -> None:
    """As if its snapshots had been made so many days ago, an hour after each other."""
    snapshots = table.document()["snapshots"]
    for place, snapshot in enumerate(snapshots):
        snapshot["timestamp-ms"] = now_ms() - int(days * DAY_MS) + place * DAY_MS // 24
    rewritten(table, snapshots=snapshots)


def planted(table: Table, *names: str, days: float = OLD_DAYS) -> frozenset[str]:
    """New files of these names below the table's folder, as storage calls them."""
    paths = [folder(table) / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left behind")
        aged(path, days=days)
    return frozenset(map(stored, paths))


def stored(path: Path | str) -> str:
    """What storage calls a file of this machine, by its path or its URI."""
    return str(path).removeprefix("file:").lstrip("/")


def listed(table: Table) -> frozenset[str]:
    return frozenset(stored(path) for path in folder(table).rglob("*") if path.is_file() and path.suffix != ".crc")


def live_names(table: OpenFiles, *, older_than_ms: int = 7 * DAY_MS) -> tuple[frozenset[str], frozenset[str]]:
    """Needed names and merely protected ones, by our own account."""
    needed, protected = set[str](), set[str]()
    for files in reached(table, table.roots(Retention(now_ms(), older_than_ms))):
        for row in files.to_pylist():
            (needed if row["needed"] else protected).add(row["name"])
    return frozenset(needed), frozenset(protected - needed)


def reached(table: OpenFiles, roots: Sequence[Root]) -> Iterator[pa.Table | pa.RecordBatch]:
    for root in roots:
        reach = table.reach(root)
        yield reach.files
        for source in reach.sources:
            yield from table.live(source)


def needed_by(table: Table) -> frozenset[str]:
    """What readers of any snapshot open: by table metadata and Avro alone, an obvious way to read them."""
    names = {stored(table.metadata)}
    for snapshot in table.document().get("snapshots", ()):
        names.add(stored(snapshot["manifest-list"]))
        for manifest in records(snapshot["manifest-list"]):
            names.add(stored(manifest["manifest_path"]))
            live = (entry for entry in records(manifest["manifest_path"]) if entry["status"] != 2)
            names |= {stored(entry["data_file"]["file_path"]) for entry in live}
    return frozenset(names)


def named_by(table: Table) -> frozenset[str]:
    """What the current metadata names besides of snapshots."""
    document = table.document()
    names = {entry["metadata-file"] for entry in document.get("metadata-log", ())}
    for key in ("statistics", "partition-statistics"):
        names |= {entry["statistics-path"] for entry in document.get(key) or ()}
    return frozenset(map(stored, names))


def records(location: str) -> Iterator[Any]:
    with open("/" + stored(location), "rb") as source:
        yield from fastavro.reader(source)


def rewritten(table: Table, **changes: Any) -> None:
    """The current metadata file with other values at its top level."""
    data = json.dumps({**table.document(), **changes}).encode()
    # Of what it was before, to Hadoop's file system.
    (table.metadata.parent / f".{table.metadata.name}.crc").unlink(missing_ok=True)
    table.metadata.write_bytes(gzip.compress(data) if table.metadata.name.endswith(".gz.metadata.json") else data)
