"""The audit of a compaction: against one plain read of the files that it moved, and EXCEPT ALL both ways by Spark.

Run by `make bench-audit`. The table is compacted by delta-spark's OPTIMIZE, its version is then audited by content. The
plain read decodes every column of the files of both versions with pyarrow. EXCEPT ALL compares the same files in Spark
SQL, in both directions, in a session that is warm. Peak memory is of the audit's own process, which starts no Spark.

`--files N` audits a table of N live files with `--files` instead, beside one listing of its folder: an Iceberg table,
whose manifests Java has rewritten. Its files are hard links to one, and no row is read.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from benches import bench_delta, bench_sweep
from benches.plain_cost import plain_cost
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table

from nightkeep.api.call_context import new_engine

AUDIT: Final = """
import json, resource, sys, time
import nightkeep
for number in range(2):
    started, cpu = time.perf_counter(), time.process_time()
    files = {"files": True} if "files" in sys.argv[4:] else {}
    document = nightkeep.audit(sys.argv[1], since=int(sys.argv[2]), reports=f"{sys.argv[3]}-{number}", **files)
    took = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
print(json.dumps({
    "outcome": document.outcome, "reason": document.reason, **took,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""
"""The second audit in a process: the first one imports Great Expectations, which takes seconds."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit took: seconds of the clock and of the CPU, and the most memory of its process, in bytes."""

    seconds: float
    cpu: float
    peak: int


def audited(table: Path, since: int, reports: Path) -> Audited:
    return _ended([f"delta:{table}", str(since), str(reports)])


def audited_files(table: Table, reports: Path) -> Audited:
    """An audit of a version that was audited before, with every file that it needs."""
    address = f"iceberg:{table.warehouse.name}/{table.name}"
    return _ended([address, str(table.document()["current-snapshot-id"]), str(reports), "files"])


def _ended(arguments: Sequence[str]) -> Audited:
    command = [sys.executable, "-c", AUDIT, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(ended.stdout.splitlines()[-1])
    if found["outcome"] != "verified":
        raise SystemExit(f"bench: expected verified, found {found['outcome']}: {found['reason']}")
    return Audited(found["seconds"], found["cpu"], found["peak"])


def compacted(folder: Path, rows: int) -> tuple[Path, list[Path], list[Path]]:
    """A table after OPTIMIZE, and its data files before and after."""
    size, table = bench_delta.Size(rows, 64, 8 << 20), folder / "made"
    bench_delta.write_files(table, size)
    with DeltaSpark(memory="8g", timeout=bench_delta.TIMEOUT, java_options="") as spark:
        spark.sql(f"CONVERT TO DELTA parquet.`{table}` PARTITIONED BY (day DATE)")
        before = bench_delta.live_files(table)
        spark.sql(f"OPTIMIZE delta.`{table}`")
    return table, before, bench_delta.live_files(table)


def except_all(spark: SparkSession, table: Path, before: list[Path], after: list[Path]) -> float:
    """Seconds of EXCEPT ALL both ways over the files, with their partitions."""
    started = time.perf_counter()
    sides = [spark.read.option("basePath", str(table)).parquet(*map(str, files)) for files in (before, after)]
    for left, right in (sides, sides[::-1]):
        if left.exceptAll(right).limit(1).count():
            raise SystemExit("bench: expected equal rows, found others")
    return time.perf_counter() - started


def measure(rows: int) -> None:
    with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
        table, before, after = compacted(Path(folder), rows)
        moved = sorted(set(before) ^ set(after))
        columns = pq.read_schema(moved[0]).names
        size = sum(path.stat().st_size for path in moved)
        cost = plain_cost(moved, columns=columns)
        runs = [audited(table, 0, Path(folder) / f"reports-{number}") for number in range(2)]
        best = min(runs, key=lambda run: run.seconds)
        with new_engine("local[2]", 2 << 30) as engine:
            spark = engine.spark()
            compared = [except_all(spark, table, before, after) for _ in range(2)]
    print(f"\nDelta, OPTIMIZE of {rows:,} rows, {len(moved)} files moved, {size:,} bytes")
    print(f"  audit                {best.seconds:8.2f} s, {best.cpu:8.2f} CPU s, peak {best.peak / 1e6:,.0f} MB")
    print(f"  plain read of both   {cost.decode:8.2f} s, {cost.decode_cpu:8.2f} CPU s")
    print(f"  EXCEPT ALL both ways {compared[0]:8.2f} s first, {min(compared):.2f} s best")
    print(f"  CPU of a plain read  {best.cpu / cost.decode_cpu:8.2f} x")
    print(f"  EXCEPT ALL takes     {min(compared) / best.seconds:8.2f} x as long", flush=True)


def measure_files(count: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder,
        IcebergJava(timeout=bench_sweep.TIMEOUT) as java,
    ):
        table = bench_sweep.made(java, Path(folder), "many", live=count, orphans=0)
        place = Path(folder) / "many"
        started = time.perf_counter()
        listed = sum(path.name.endswith(".parquet") for path in _stated(place))
        listing = time.perf_counter() - started
        found = audited_files(table, Path(folder) / "reports")
    print(f"\nIceberg, --files of {count:,} live files, {listed:,} data files listed")
    print(f"  audit with --files   {found.seconds:8.2f} s, {found.cpu:8.2f} CPU s, peak {found.peak / 1e6:,.0f} MB")
    print(f"  one listing, sizes   {listing:8.2f} s")
    print(f"  audit takes          {found.seconds / listing:8.2f} x as long", flush=True)


def _stated(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Every file of a folder and those below it, with its size known."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _stated(Path(entry.path))
            else:
                entry.stat()
                yield entry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=20.0, help="millions of rows")
    parser.add_argument("--files", type=float, help="millions of files, of which an audit looks for each")
    arguments = parser.parse_args()
    names = ("pyspark", "pyarrow", "polars")
    machine = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    print(json.dumps({**machine, "python": platform.python_version(), **{n: version(n) for n in names}}))
    if arguments.files is None:
        measure(int(arguments.rows * 1e6))
    else:
        measure_files(int(arguments.files * 1e6))


if __name__ == "__main__":
    main()
