"""Equality deletes to positions, rows in a table's sort order, and files in ORC and Avro: iceberg-spark 1.12.0 against
Nightkeep on one table; upserts against Iceberg Java.

Run by `make bench-iceberg`. Each side has a catalog of its own, in which the same table is registered. JVM and session
start are printed apart and in no ratio, and so is the gate.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
from benches.plain_cost import files_with, plain_cost
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Column, Table, Warehouse

from nightkeep.admission.order import Order
from nightkeep.api.call_context import new_engine
from nightkeep.api.changes import Workers, apply_batch
from nightkeep.formats import FORMATS
from nightkeep.formats.iceberg.upsert.batch import ChangeBatch, ChangeMode
from nightkeep.formats.iceberg.upsert.sink import Applied
from nightkeep.model import Address, Operation, Outcome
from nightkeep.policy import load
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.spark.engine import Engine

COLUMNS: tuple[Column, ...] = (
    ("order_id", "long", True),
    ("customer_id", "long"),
    ("status", "string"),
    ("note", "string"),
    ("bucket_day", "int", True),
)
KEYS = ("order_id", "bucket_day")
PARTITION = (("bucket_day", "identity"),)
DELETE_EVERY = 10
TIMEOUT = 1800.0
LONG_RUNNING = ("-XX:+UseParallelGC",)


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of the base, and of each of the upserts; `wide` more text columns."""

    rows: int
    upserted: int
    wide: int = 0
    commits: int = 20

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*COLUMNS, *((f"text{number}", "string") for number in range(self.wide)))

    def __str__(self) -> str:
        wider = f", {self.wide} more text columns" if self.wide else ""
        return f"{self.rows / 1e6:g} M rows, {self.commits:,} upserts of {self.upserted:,}{wider}"


@dataclass
class Side:
    """What one side did to a table of its own, in seconds, run after run; the first table is kept."""

    name: str
    tables: list[Table] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    documents: list[RunDocument] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name:24s} {self.seconds[0]:7.2f} s first, {min(self.seconds):6.2f} s best"


def build(folder: Path, java: IcebergJava, size: Size, format_version: int) -> Table:
    """The table in a catalog of its own: rows of Iceberg Java's, and upserts, which leave equality deletes."""
    name = f"made{format_version}r{size.rows}w{size.wide}c{size.commits}"
    table = Warehouse(name, folder / name).table("db.orders")
    java.create(table, size.columns, Layout(PARTITION, format_version))
    java.generate(table, size.rows, keys=KEYS, timeout=TIMEOUT)
    for number in range(size.commits):
        java.generate(
            table, size.upserted, keys=KEYS, keyspace=size.rows, delete_every=DELETE_EVERY, seed=number, timeout=TIMEOUT
        )
    return table


@dataclass
class Bench:
    """Where tables are, and Iceberg's engines."""

    folder: Path
    java: IcebergJava
    spark: IcebergSpark

    def copy(self, made: Table, name: str) -> Table:
        """The table in a catalog of its own, which shows where nightkeep finds it, too."""
        table = Warehouse(name, self.folder / name).table("db.orders")
        self.java.register(table, made.metadata)
        os.environ[f"PYICEBERG_CATALOG__{name.upper()}__URI"] = f"sqlite:///{table.warehouse.database}"
        self.spark.attach(table.warehouse)
        return table

    def digest(self, table: Table) -> str:
        """Every row and column: a count and two sums of hashes."""
        told = "count(*), sum(xxhash64(*) >> 16), sum(xxhash64('salt', *) >> 16)"
        return str(self.spark.sql(f"SELECT {told} FROM {table.sql}", timeout=TIMEOUT).rows)


def repeated(
    bench: Bench, made: Table, name: str, work: Callable[[Table], RunDocument | None], *, times: int = 2
) -> Side:
    side = Side(name)
    for number in range(times):
        table = bench.copy(made, f"{made.warehouse.name}{''.join(filter(str.isalnum, name.lower()))}{number}")
        started = time.perf_counter()
        document = work(table)
        side.seconds.append(time.perf_counter() - started if document is None else _seconds(document))
        side.tables.append(table)
        side.documents += [document] if document else []
    return side


def rewritten(bench: Bench, table: Table, *, strategy: str = "binpack") -> None:
    """What Iceberg has for it: all data is written anew."""
    call = (
        f"CALL {table.warehouse.name}.system.rewrite_data_files(table => '{table.name}', strategy => '{strategy}', "
        "options => map('rewrite-all', 'true'))"
    )
    bench.spark.sql(call, timeout=TIMEOUT)


def maintained(table: Table, ours_on: Engine, operation: Operation = Operation.PERSIST_DELETES) -> RunDocument:
    policy = load("tables.yaml", text="version: 1").effective(f"iceberg:{table.warehouse.name}/{table.name}")
    order = Order(operation, f"bench-{table.warehouse.name}", str(table.warehouse.folder / "reports"))
    document = run_operation(policy, order, mapper=ours_on.mapper, exchange=ours_on.exchange)
    if document.outcome is not Outcome.VERIFIED:
        raise SystemExit(f"bench: expected verified, found {document.outcome}: {document.reason}")
    return document


def _seconds(document: RunDocument) -> float:
    """Without the gate."""
    return sum(document.metrics.seconds[stage] for stage in ("plan", "rewrite", "publish"))


def conversion(folder: Path, java: IcebergJava, size: Size, format_version: int) -> None:
    """Sessions of their own for each side and each scan: a first run is one of a session that has run nothing."""
    with iceberg_spark() as spark:
        bench = Bench(folder, java, spark)
        made = build(bench.folder, bench.java, size, format_version)
        before = bench.copy(made, f"{made.warehouse.name}before")
        theirs = repeated(bench, made, "rewrite_data_files", lambda table: rewritten(bench, table))
        with engine() as ours_on:
            ours = repeated(bench, made, "Nightkeep", lambda table: maintained(table, ours_on))
        sides = {"before": before, "after rewrite": theirs.tables[0], "after Nightkeep": ours.tables[0]}
        same = len({bench.digest(table) for table in sides.values()}) == 1
    print(f"\nv{format_version}, {size}")
    for side in (theirs, ours):
        print(f"  {side}")
    first, best = theirs.seconds[0] / ours.seconds[0], min(theirs.seconds) / min(ours.seconds)
    print(f"  conversion: {first:.2f} x first, {best:.2f} x best")
    _costs(ours.documents[0])
    names = [column[0] for column in size.columns]
    files = files_with(made.warehouse.folder, names)
    plain = plain_cost(files, columns=names)
    cpu = dict(ours.documents[0].metrics.extra["cpu_seconds"])  # type: ignore[call-overload]
    print(f"    gate {plain.of_gate(cpu['verify'], plain)}; {plain}")
    scans = {name: scanned(table) for name, table in sides.items()}
    for name, found in scans.items():
        print(f"  Spark's scan {name:22s} {found[0]:6.2f} s first, {min(found):6.2f} s best")
    old, new = scans["before"], scans["after Nightkeep"]
    print(f"  scan: {old[0] / new[0]:.2f} x first, {min(old) / min(new):.2f} x best")
    print(f"  Spark reads the same rows of all: {same}")


def backlog(folder: Path, java: IcebergJava, size: Size) -> None:
    """Each side once, and no scan of what was there before: with thousands of deletes that takes minutes."""
    with iceberg_spark() as spark, engine() as ours_on:
        bench = Bench(folder, java, spark)
        made = build(bench.folder, bench.java, size, 2)
        ours = repeated(bench, made, "Nightkeep", lambda table: maintained(table, ours_on), times=1)
        theirs = repeated(bench, made, "rewrite_data_files", lambda table: rewritten(bench, table), times=1)
        same = len({bench.digest(side.tables[0]) for side in (ours, theirs)}) == 1
    print(f"\nv2, {size}\n  {theirs}\n  {ours}\n  conversion: {theirs.seconds[0] / ours.seconds[0]:.2f} x")
    _costs(ours.documents[0])
    print(f"  Spark reads the same rows of both: {same}", flush=True)


ORDER = "customer_id DESC NULLS LAST, order_id"


def sort(folder: Path, java: IcebergJava, size: Size) -> None:
    """Every file written anew in the table's own order."""
    with iceberg_spark() as spark:
        bench = Bench(folder, java, spark)
        made = build(bench.folder, bench.java, size, 2)
        spark.attach(made.warehouse)
        spark.sql(f"ALTER TABLE {made.sql} WRITE ORDERED BY {ORDER}", timeout=TIMEOUT)
        before = bench.copy(made, f"{made.warehouse.name}unsorted")
        theirs = repeated(bench, made, "rewrite_data_files", lambda table: rewritten(bench, table, strategy="sort"))
        with engine() as ours_on:
            ours = repeated(bench, made, "Nightkeep sort", lambda table: maintained(table, ours_on, Operation.OPTIMIZE))
        sides = (before, theirs.tables[0], ours.tables[0])
        same = len({bench.digest(table) for table in sides}) == 1
    print(f"\nv2, {size}, sorted by {ORDER}")
    for side in (theirs, ours):
        print(f"  {side}")
    first, best = theirs.seconds[0] / ours.seconds[0], min(theirs.seconds) / min(ours.seconds)
    print(f"  sort: {first:.2f} x first, {best:.2f} x best")
    _costs(ours.documents[0])
    print(f"  Spark reads the same rows of all: {same}", flush=True)


def packing(folder: Path, java: IcebergJava, size: Size, kind: str) -> None:
    """Files of a million rows each in one, in ORC as they are, and of Avro in Parquet. CPU is that of the last runs."""
    key = "write.format.default"
    made = Warehouse(f"packed{kind}", folder / f"packed{kind}").table("db.orders")
    java.create(made, size.columns, Layout((), properties={key: kind}))
    for number in range(size.commits):
        java.generate(made, size.rows, keys=KEYS, seed=number, timeout=TIMEOUT)
    # Both sides write into the same folder later.
    stored = sum(path.stat().st_size for path in made.warehouse.folder.rglob(f"*.{kind}")) / 2**20
    wanted = "parquet" if kind == "avro" else kind
    java.alter(made, {"change": "set_properties", "properties": {key: wanted}})
    spent: list[float] = []

    def by_spark(table: Table) -> None:
        before = _cpu_of(spark.pid)
        rewritten(bench, table)
        spent.append(_cpu_of(spark.pid) - before)

    with iceberg_spark() as spark, engine() as ours_on:
        bench = Bench(folder, java, spark)
        before = bench.copy(made, f"{made.warehouse.name}before")
        theirs = repeated(bench, made, "rewrite_data_files", by_spark)
        ours = repeated(bench, made, "Nightkeep", lambda table: maintained(table, ours_on, Operation.OPTIMIZE))
        same = len({bench.digest(table) for table in (before, theirs.tables[0], ours.tables[0])}) == 1
    print(f"\nv2, {size.commits} files of {size.rows / 1e6:g} M rows in {kind}, {stored:,.0f} MiB, packed as {wanted}")
    for side in (theirs, ours):
        print(f"  {side}")
    first, best = theirs.seconds[0] / ours.seconds[0], min(theirs.seconds) / min(ours.seconds)
    print(f"  packing: {first:.2f} x first, {best:.2f} x best")
    _costs(ours.documents[-1])
    print(f"    CPU of rewrite_data_files {spent[-1]:.2f} s")
    print(f"  Spark reads the same rows of all: {same}", flush=True)


def _cpu_of(pid: int) -> float:
    """Of a process and those that it started."""
    root = psutil.Process(pid)
    times = [each.cpu_times() for each in (root, *root.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def scanned(table: Table) -> list[float]:
    """Seconds of reading every row and column, three times in a session of its own."""
    sums = ("order_id", "customer_id", "length(status)", "length(note)", "bucket_day")
    query = f"SELECT {', '.join(f'sum({each})' for each in sums)} FROM {table.sql}"
    found: list[float] = []
    with iceberg_spark() as spark:
        spark.attach(table.warehouse)
        # The session itself starts with its first statement.
        spark.sql("SELECT sum(id) FROM range(10)")
        for _ in range(3):
            started = time.perf_counter()
            spark.sql(query, timeout=TIMEOUT)
            found.append(time.perf_counter() - started)
    return found


def iceberg_spark() -> IcebergSpark:
    return IcebergSpark(memory="8g", timeout=TIMEOUT, java_options="")


@contextmanager
def engine() -> Iterator[Engine]:
    with new_engine("local[2]", 2 << 30) as engine:
        started = time.perf_counter()
        # What a process has open is known to the workers when they start.
        importlib.import_module(FORMATS["iceberg"])
        engine.spark()
        print(f"session start {time.perf_counter() - started:.2f} s, in no ratio")
        yield engine


def _costs(document: RunDocument) -> None:
    spent, peak = document.metrics.seconds, (document.metrics.peak_task_memory or 0) / 2**20
    steps = ", ".join(f"{stage} {spent[stage]:.2f} s" for stage in ("plan", "rewrite", "publish"))
    print(f"    {steps}; gate {spent['verify']:.2f} s; peak task memory {peak:.0f} MiB")
    print(f"    CPU {document.metrics.extra['cpu_seconds']}")


def width(bench: Bench, ours_on: Engine, size: Size, wide: int) -> None:
    """The same keys in narrow and in wide rows."""
    print(f"\nv2, {size}, and rows ten times as wide")
    for each in (size, Size(size.rows, size.upserted, wide)):
        made = build(bench.folder, bench.java, each, 2)
        side = repeated(bench, made, "Nightkeep", lambda table: maintained(table, ours_on))
        stored = sum(path.stat().st_size for path in made.warehouse.folder.rglob("*.parquet")) / 2**20
        print(f"  {len(each.columns)} columns, {stored:,.0f} MiB: {side}")
        _costs(side.documents[0])


@contextmanager
def one_core() -> Iterator[None]:
    """For this process and what it starts meanwhile."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def change_file(path: Path, rows: int, keyspace: int, *, seed: int) -> None:
    """As Generated.java makes them."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, keyspace, rows)
    kinds = np.where(np.arange(rows) % DELETE_EVERY == 0, "DELETE", "INSERT")
    words = random.integers(0, 2**62, (2, rows))
    texts = {
        name: pa.array([f"{name} {key} {a:x}{b:x}" for key, a, b in zip(keys, *words, strict=True)])
        for name in ("status", "note")
    }
    table = pa.table(
        {
            "order_id": keys,
            "customer_id": random.integers(0, 1_000_000, rows),
            **texts,
            "bucket_day": (keys % 4).astype(np.int32),
            "_change_type": pa.array(kinds),
        }
    )
    pq.write_table(table, path, compression="zstd")


def upserts(folder: Path, rows: int, batches: int) -> None:
    """Rows per second of batches into an empty table, on one core; Java's rows are made before its clock starts."""
    keyspace = 10 * rows
    theirs, ours = (Warehouse(f"upserts{side}{rows}", folder / f"{side}{rows}").table("db.orders") for side in "jn")
    with one_core(), IcebergJava(memory="6g", timeout=TIMEOUT, java_options=LONG_RUNNING) as java:
        for table in (theirs, ours):
            java.create(table, COLUMNS, Layout(PARTITION))
        told = [
            java.generate(theirs, rows, keys=KEYS, keyspace=keyspace, delete_every=DELETE_EVERY, seed=number)
            for number in range(batches)
        ]
    java_seconds = [each["write_seconds"] + each["commit_seconds"] for each in told]
    uri = f"sqlite:///{ours.warehouse.database}"
    os.environ[f"PYICEBERG_CATALOG__{ours.warehouse.name.upper()}__URI"] = uri
    address = Address("iceberg", f"{ours.warehouse.name}/{ours.name}", "orders")
    seconds: list[float] = []
    reading: list[float] = []
    with one_core():
        for number in range(batches):
            path = folder / f"{rows}-{number}.parquet"
            change_file(path, rows, keyspace, seed=number)
            started = time.perf_counter()
            done = apply_batch(
                address, ChangeBatch(f"b{number}", (str(path),), ChangeMode.UPSERT, keys=KEYS), Workers()
            )
            seconds.append(time.perf_counter() - started)
            reading.append(done.seconds["read"])
    written = [spent - read for spent, read in zip(seconds, reading, strict=True)]
    print(f"\nupserts, {batches} batches of {rows:,} rows, one core")
    sides = {
        "Iceberg Java, from memory": java_seconds,
        "Nightkeep, from memory": written,
        "Nightkeep, from Parquet": seconds,
    }
    for name, spent in sides.items():
        rates = f"{rows / spent[0]:10,.0f} rows/s first, {rows / min(spent):10,.0f} rows/s best"
        ratios = f"{java_seconds[0] / spent[0]:.2f} x first, {min(java_seconds) / min(spent):.2f} x best"
        print(f"  {name:26s} {rates}; {ratios}")
    _steps(done, seconds[-1])


def _steps(done: Applied, seconds: float) -> None:
    steps = ", ".join(f"{name} {spent * 1000:.0f} ms" for name, spent in done.seconds.items())
    rest = (seconds - sum(done.seconds.values())) * 1000
    print(f"    the last batch: {steps}; metadata and commit {rest:.0f} ms")


def main(arguments: argparse.Namespace) -> None:
    names = ("pyspark", "pyarrow", "polars", "pyiceberg")
    print(
        json.dumps(
            {
                "machine": platform.processor() or platform.machine(),
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                **{n: version(n) for n in names},
            }
        )
    )
    rows = int(arguments.rows * 1e6)
    with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as place:
        folder = Path(place)
        if "upserts" in arguments.parts:
            upserts(folder, 400_000, 4)
            upserts(folder, 20_000, 8)
        if {"conversion", "sort", "backlog", "width", "formats"} & set(arguments.parts):
            _conversions(folder, rows, arguments.parts)


def _conversions(folder: Path, rows: int, parts: Sequence[str]) -> None:
    with IcebergJava(memory="6g", timeout=TIMEOUT, java_options=LONG_RUNNING) as java:
        if "conversion" in parts:
            for format_version in (2, 3):
                conversion(folder, java, Size(rows, rows // 200), format_version)
        if "sort" in parts:
            sort(folder, java, Size(rows, 0, commits=0))
        if "backlog" in parts:
            # A checkpoint a minute, for a night.
            backlog(folder, java, Size(rows // 4, rows // 8000, commits=500))
        if "formats" in parts:
            for kind in ("orc", "avro"):
                packing(folder, java, Size(rows // 4, 0, commits=4), kind)
        if "width" in parts:
            with iceberg_spark() as spark, engine() as ours_on:
                width(Bench(folder, java, spark), ours_on, Size(rows // 4, rows // 800), wide=17)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=4.0, help="millions of rows")
    parser.add_argument("parts", nargs="*", default=["upserts", "conversion", "sort", "backlog", "width", "formats"])
    main(parser.parse_args())
