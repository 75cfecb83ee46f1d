"""The reader of Paimon tables against pyarrow of the same files, pypaimon, and Spark's own Parquet reader.

Run by `make bench-reader` (BENCH="--rows 4", in millions). One core; each is measured as the best of several runs, in
turn. Every reader goes through all batches and keeps none.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, RandomRows
from tests.drivers.pypaimon_oracle import PyPaimon

import nightkeep
from nightkeep.formats import open_table
from nightkeep.model import Address

COLUMNS = (
    ("order_id", "BIGINT NOT NULL"),
    ("customer_id", "BIGINT"),
    ("amount", "DECIMAL(12, 2)"),
    ("status", "STRING"),
    ("note", "STRING"),
    ("updated_at", "TIMESTAMP(6)"),
)
NAMES = [name for name, _ in COLUMNS]
OPTIONS = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "write-only": "true",
    "metadata.stats-mode": "full",
    "file.block-size": "8 mb",
}
TIMEOUT = 1800.0


def build(java: PaimonJava, table: Path, rows: int) -> None:
    """Even keys on the top level, 2 % of them replaced above: one bucket, vectors of scattered rows."""
    java.create(table, Layout(columns=COLUMNS, primary_keys=("order_id",), options=OPTIONS))
    java.write_random(table, RandomRows(rows=rows, seed=1, sequential=True, step=2), timeout=TIMEOUT)
    java.compact(table, Compaction(full=True), timeout=TIMEOUT)
    java.write_random(table, RandomRows(rows=rows // 50, seed=2, keyspace=2 * rows), timeout=TIMEOUT)
    java.compact(table, Compaction(), timeout=TIMEOUT)


def files_of(table: Path) -> list[Path]:
    """The data files that a raw read opens."""
    opened = open_table(Address("paimon", str(table), "t"))
    units = opened.units(opened.snapshot())
    files = [(unit.folder, file) for unit in units for file in unit.files]  # type: ignore[attr-defined]
    return [table / folder / file.name for folder, file in files if file.level > 0]


def by_batches(files: list[Path], columns: list[str]) -> int:
    """Batch by batch, as pyarrow reads a file in bounded memory."""
    count = 0
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(1 << 16, columns=columns, use_threads=False):
            count += batch.num_rows
    return count


def whole(files: list[Path], columns: list[str]) -> int:
    return sum(pq.ParquetFile(path).read(columns=columns, use_threads=False).num_rows for path in files)


def by_us(table: Path, columns: list[str], where: str | None = None) -> int:
    return sum(batch.num_rows for batch in nightkeep.read(f"paimon:{table}", columns=columns, where=where))


def best(*readers: Callable[[], int], runs: int) -> list[float]:
    """CPU seconds of the fastest run of each, in turn; another process may take the core meanwhile."""
    fastest = [float("inf")] * len(readers)
    for _ in range(runs):
        for place, reader in enumerate(readers):
            started = time.process_time()
            reader()
            fastest[place] = min(fastest[place], time.process_time() - started)
    return fastest


def reads(table: Path, files: list[Path], runs: int) -> None:
    for label, columns in (("all columns", NAMES), ("three columns", ["order_id", "amount", "status"])):
        readers = (partial(by_us, table, columns), *(partial(each, files, columns) for each in (by_batches, whole)))
        ours, batches, files_at_once = best(*readers, runs=runs)
        print(
            f"{label}: {ours:.2f} s, pyarrow {batches:.2f} s by batches, {files_at_once:.2f} s by whole files: "
            f"{ours / batches:.2f}x and {ours / files_at_once:.2f}x"
        )


def filters(table: Path, rows: int, runs: int) -> None:
    """A range of 1 % of the keys, by which files are sorted, and one value of another column, scattered over all."""
    keys = f"order_id BETWEEN {rows} AND {rows + rows // 50}"
    scattered = f"customer_id = {customer(table)}"
    for label, where in (("1 % of the keys", keys), ("one value, scattered", scattered)):
        full, some = best(partial(by_us, table, NAMES), partial(by_us, table, NAMES, where), runs=runs)
        found = by_us(table, NAMES, where)
        print(f"{label}: {found:,} rows in {some:.3f} s, full read {full:.2f} s: {full / some:.1f}x")


def customer(table: Path) -> int:
    return int(next(iter(nightkeep.read(f"paimon:{table}", columns=["customer_id"]))).column(0)[7].as_py())


def by_pypaimon(table: Path, runs: int) -> None:
    with PyPaimon(timeout=TIMEOUT) as oracle:
        (count, *_), *_ = answers = [oracle.read_arrow(table) for _ in range(runs)]
    theirs = min(seconds for _, seconds in answers)
    (ours,) = best(partial(by_us, table, NAMES), runs=runs)
    print(f"pypaimon: {count:,} rows in {theirs:.2f} s, ours {ours:.2f} s: {theirs / ours:.1f}x")


def by_spark(table: Path, files: list[Path]) -> None:
    """An aggregate of every column. Spark's own reader sees deleted rows and kinds as they are stored."""
    quiet: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    spark = SparkSession.builder.master("local[1]").config(map=quiet).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(nightkeep.DataSource)
    frames = {
        "data source": partial(spark.read.format("nightkeep").load, f"paimon:{table}"),
        "spark.read.parquet": partial(spark.read.parquet, *map(str, files)),
    }
    for label, load in frames.items():
        seconds = []
        for _ in range(3):
            started = time.perf_counter()
            row = load().selectExpr("count(1)", *(f"max({name})" for name in NAMES)).collect()[0]
            seconds.append(time.perf_counter() - started)
        print(f"Spark, {label}: {row[0]:,} rows, {row[0] / min(seconds):,.0f} rows per second")
    spark.stop()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=float, default=2.0, help="millions of rows")
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--without", default="", help="pypaimon, spark, or both with a comma")
    given = arguments.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    rows = int(given.rows * 1_000_000)
    print(f"{platform.machine()}, {os.cpu_count()} cores; pyarrow {version('pyarrow')}, pyspark {version('pyspark')}")
    with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
        table = Path(folder) / "orders"
        with PaimonJava(memory="2g", timeout=TIMEOUT) as java:
            build(java, table, rows)
        files = files_of(table)
        size = sum(path.stat().st_size for path in files)
        print(f"{rows:,} rows, {len(files)} files, {size:,} bytes")
        reads(table, files, given.runs)
        filters(table, rows, given.runs)
        if "pypaimon" not in given.without:
            by_pypaimon(table, given.runs)
        if "spark" not in given.without:
            by_spark(table, files)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB")


if __name__ == "__main__":
    main()
