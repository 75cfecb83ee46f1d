"""Planning of tables of a million files: seconds and peak memory of `nightkeep plan` and `status`, each in a process of
its own.

Run by `make bench-planning`. A Delta log is a checkpoint of each kind that readers accept, and commits after it. An
Iceberg table has manifests of 20,000 entries, a Paimon table ten files in each of 10,000 buckets. A plain decode of the
same manifests into records is beside them. Fails if a plan of a Delta table takes more than `--seconds` of CPU or more
than `--memory`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from benches.planned_tables import decode_iceberg, decode_paimon, iceberg_table, paimon_table

from nightkeep.policy.units import parse_size

DAYS = 28
VERSION = 10
COMMITS = 5
COMMIT_FILES = 200
PARTS = 10


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process took."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int

    def __str__(self) -> str:
        return f"{self.seconds:6.1f} s, {self.cpu_seconds:6.1f} CPU s, peak {self.peak_bytes >> 20:6,} MiB"


def adds(files: int) -> pa.Table:
    """The add actions of small files of some days, with statistics, as columns."""
    numbers = np.arange(files)
    texts = pc.cast(pa.array(numbers), pa.string())
    day = pc.utf8_lpad(pc.cast(pa.array(numbers % DAYS + 1), pa.string()), 2, "0")
    date = _joined("2026-01-", day)
    stats = _joined(
        '{"numRecords":',
        texts,
        ',"minValues":{"id":',
        texts,
        ',"name":"a',
        texts,
        '"},"maxValues":{"id":',
        texts,
        ',"name":"b',
        texts,
        '"},"nullCount":{"id":0,"name":0}}',
    )
    offsets = pa.array(np.arange(files + 1, dtype=np.int32))
    columns = {
        "path": _joined("day=", date, "/part-", pc.utf8_lpad(texts, 8, "0"), f"-{uuid.uuid4()}-c000.snappy.parquet"),
        "partitionValues": pa.MapArray.from_arrays(offsets, pa.array(["day"] * files), date),  # type: ignore[call-overload]
        "size": pa.array(numbers % 4_000_000 + 1000),
        "modificationTime": pa.array(1_767_268_800_000 + numbers),
        "dataChange": pa.repeat(pa.scalar(value=False), files),
        "stats": stats,
    }
    return pa.table({"add": pa.StructArray.from_arrays([*columns.values()], [*columns])})


def _joined(*texts: str | pa.Array) -> pa.Array:  # type: ignore[type-arg]
    found: pa.Array = pc.call_function("binary_join_element_wise", [*texts, ""])  # type: ignore[type-arg]
    return found


def head(*, sidecars: bool) -> pa.Table:
    """The protocol and the metadata of the table."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("name", "string"), ("day", "date"))
    ]
    protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if sidecars:
        features = ["v2Checkpoint"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet"},
        "partitionColumns": ["day"],
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
    }
    return pa.table({"protocol": [protocol, None], "metaData": [None, metadata]})


def _together(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default")


def classic(log: Path, first: pa.Table, files: pa.Table) -> None:
    pq.write_table(_together(first, files), log / f"{VERSION:020d}.checkpoint.parquet")


def parts(log: Path, first: pa.Table, files: pa.Table) -> None:
    step = -(-files.num_rows // PARTS)
    for number in range(PARTS):
        some = files.slice(number * step, step)
        name = f"{VERSION:020d}.checkpoint.{number + 1:010d}.{PARTS:010d}.parquet"
        pq.write_table(some if number else _together(first, some), log / name)


def sidecars(log: Path, first: pa.Table, files: pa.Table) -> None:
    (log / "_sidecars").mkdir()
    step, named = -(-files.num_rows // PARTS), []
    for number in range(PARTS):
        path = log / "_sidecars" / f"{uuid.uuid4()}.parquet"
        pq.write_table(files.slice(number * step, step), path)
        named.append({"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 0})
    beside = pa.table({"sidecar": named}), pa.table({"checkpointMetadata": [{"version": VERSION}]})
    pq.write_table(_together(first, *beside), log / f"{VERSION:020d}.checkpoint.{uuid.uuid4()}.parquet")


CHECKPOINTS: Mapping[str, Callable[[Path, pa.Table, pa.Table], None]] = {
    "classic": classic,
    "parts": parts,
    "sidecars": sidecars,
}


def write_log(folder: Path, kind: str, files: int) -> None:
    log = folder / "_delta_log"
    log.mkdir()
    CHECKPOINTS[kind](log, head(sidecars=kind == "sidecars"), adds(files))
    for version in range(VERSION, VERSION + COMMITS):
        actions: list[object] = [{"commitInfo": {"operation": "WRITE"}}]
        if version > VERSION:
            actions += [_added(version, number) for number in range(COMMIT_FILES)]
        (log / f"{version:020d}.json").write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def _added(version: int, number: int) -> object:
    day = f"2026-01-{number % DAYS + 1:02}"
    return {
        "add": {
            "path": f"day={day}/new-{version}-{number}.parquet",
            "partitionValues": {"day": day},
            "size": 1_000_000,
            "modificationTime": 1_767_268_800_000,
            "dataChange": True,
            "stats": '{"numRecords":5}',
        }
    }


OTHERS: Mapping[str, tuple[Callable[[Path, int], str], Callable[[Path], int]]] = {
    "iceberg": (iceberg_table, decode_iceberg),
    "paimon": (paimon_table, decode_paimon),
}
"""What makes a table of so many files, and what decodes its manifests."""
KINDS = (*CHECKPOINTS, *OTHERS)


def taken(verb: str, address: str) -> Spent:
    """What a command takes in a process of its own."""
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "nightkeep", verb, address], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        text = process.stdout.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or ("files fewer" not in text and "would become" not in text and "files merged" not in text):
        raise SystemExit(f"bench: {verb} {address}: exit status {process.returncode}, {text[:300]}")
    return Spent(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def plan_of_log(kind: str, files: int) -> Spent:
    with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
        write_log(Path(folder), kind, files)
        spent = taken("plan", f"delta:{folder}")
    print(f"  {kind:10} plan {spent}", flush=True)
    return spent


def plan_of_manifests(kind: str, files: int) -> None:
    make, decode = OTHERS[kind]
    with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
        address = make(Path(folder), files)
        print(f"  {kind:10} plan {taken('plan', address)}; status {taken('status', address)}", flush=True)
        started = time.process_time()
        entries = decode(Path(folder))
        print(
            f"  {'':10} {entries:,} entries decoded into records: {time.process_time() - started:.1f} CPU s", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=[*KINDS], help=", ".join(KINDS))
    parser.add_argument("--files", type=float, default=1.0, help="millions of files; Paimon has a tenth of them")
    parser.add_argument("--seconds", type=float, default=30.0, help="of CPU, at most, for a plan of a Delta table")
    parser.add_argument("--memory", default="1GB", help="at most, for a plan of a Delta table")
    arguments = parser.parse_args()
    files = int(arguments.files * 1e6)
    print(f"{files:,} files; of Delta in a checkpoint, and {COMMITS - 1} commits of {COMMIT_FILES} files")
    found = [plan_of_log(kind, files) for kind in arguments.kinds if kind in CHECKPOINTS]
    for kind in (kind for kind in arguments.kinds if kind in OTHERS):
        plan_of_manifests(kind, files)
    over = [s for s in found if s.cpu_seconds > arguments.seconds or s.peak_bytes > parse_size(arguments.memory)]
    if over:
        raise SystemExit(f"bench: {over[0]}, expected at most {arguments.seconds} CPU s and {arguments.memory}")


if __name__ == "__main__":
    main()
