"""Orphan files: iceberg-spark 1.12.0's remove_orphan_files against Nightkeep, on one table.

Run by `make bench-sweep`. Session start is in no ratio. `--memory` looks at a million files instead, half of them live,
in one process and through Spark, and prints what the largest process took.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse

from nightkeep.api.call_context import new_engine
from nightkeep.formats import FORMATS, open_table
from nightkeep.model import Address, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sets import Sets
from nightkeep.retention.orphans.spark_sets import SparkSets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

T = TypeVar("T")

TIMEOUT = 1800.0
OLD_SECONDS = 30 * 86_400
PER_COMMIT = 50_000
LINKS = 10_000
"""Names per file: file systems allow some ten thousand."""
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of the clock, and CPU seconds of this process and of those below it."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.seconds:6.2f} s ({self.cpu:.1f} CPU s)"


@dataclass
class Side:
    """What one side found, and what it took to find, to delete and to quarantine."""

    name: str
    orphans: set[str] = field(default_factory=set)
    looks: list[Spent] = field(default_factory=list)
    deleting: Spent = Spent(0, 0)
    aside: Spent | None = None

    @property
    def best(self) -> float:
        return min(look.seconds for look in self.looks)

    def __str__(self) -> str:
        dry = f"{self.looks[0]} first, {self.best:6.2f} s best"
        aside = "" if self.aside is None else f", quarantining {self.aside}"
        return f"{self.name:20s} dry run {dry}; {len(self.orphans):,} orphans; deleting {self.deleting}{aside}"


def made(java: IcebergJava, folder: Path, name: str, *, live: int, orphans: int) -> Table:
    """A table of so many live files and so many that nothing names, all of them a month old."""
    table = Warehouse(name, folder / name).table("db.events")
    java.create(table, (("id", "long"), ("text", "string")))
    uri = f"sqlite:///{table.warehouse.database}"
    os.environ[f"PYICEBERG_CATALOG__{name.upper()}__URI"] = uri
    loaded = load_catalog(name, uri=uri, warehouse=table.warehouse.location).load_table(table.name)
    loaded.append(pa.table({"id": pa.array([1], pa.int64()), "text": pa.array(["one"])}))
    (path,) = loaded.inspect.files()["file_path"].to_pylist()
    first = Path("/" + str(path).removeprefix("file:").lstrip("/"))
    data, size = first.parent, first.stat().st_size
    names = [str(data / f"00000-{number}-{uuid.uuid4()}-00001.parquet") for number in range(live + orphans)]
    for begin in range(0, len(names), LINKS):
        source = data / f"{uuid.uuid4()}.tmp"
        source.write_bytes(first.read_bytes())
        for each in names[begin : begin + LINKS]:
            os.link(source, each)
        source.unlink()
    for begin in range(0, live, PER_COMMIT):
        with loaded.transaction() as change, change.update_snapshot().fast_append() as append:
            for each in names[begin : min(live, begin + PER_COMMIT)]:
                append.append_data_file(_data_file(f"file://{each}", size))
    # pyiceberg gives each entry a block of its own, which no other writer does: Java's manifests only are kept.
    java.rewrite_manifests(table)
    java.expire(table, older_than_millis=int(time.time() * 1000), retain_last=1)
    old = time.time() - OLD_SECONDS
    for path in table_folder(first).rglob("*"):
        if path.is_file() and path.stat().st_mtime > old:
            os.utime(path, (old, old))
    return table


def table_folder(data_file: Path) -> Path:
    return data_file.parents[1]


def _data_file(path: str, size: int) -> DataFile:
    nothing: dict[str, Any] = dict.fromkeys(("key_metadata", "split_offsets", "equality_ids", "sort_order_id"))
    counts = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    found = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=size,
        **cast(dict[str, Any], {name: {} for name in counts}),
        **nothing,
    )
    found.spec_id = 0
    return found


def theirs(spark: IcebergSpark, table: Table) -> Side:
    side = Side("remove_orphan_files")
    cutoff = datetime.fromtimestamp(time.time() - 7 * 86_400, UTC)
    call = (
        f"CALL {table.warehouse.name}.system.remove_orphan_files(table => '{table.name}', "
        f"older_than => TIMESTAMP '{cutoff:%Y-%m-%d %H:%M:%S}', dry_run => %s)"
    )
    for _ in range(ROUNDS):
        spent, rows = weighed(lambda: spark.sql(call % "true", timeout=TIMEOUT).rows)
        side.looks.append(spent)
    side.orphans = {str(row[0]).removeprefix("file:").lstrip("/") for row in rows}
    side.deleting, _ = weighed(lambda: spark.sql(call % "false", timeout=TIMEOUT).rows)
    return side


def ours(table: Table, again: Table) -> Side:
    """`again` is alike: its orphans are quarantined."""
    side = Side("Nightkeep")
    for _ in range(ROUNDS):
        spent, (_, side.orphans) = weighed(lambda: swept(table, SweepMode.DRY_RUN, MemorySets()))
        side.looks.append(spent)
    side.deleting, _ = weighed(lambda: swept(table, SweepMode.DELETE, MemorySets()))
    side.aside, _ = weighed(lambda: swept(again, SweepMode.QUARANTINE, MemorySets()))
    return side


def swept(table: Table, mode: SweepMode, sets: Sets) -> tuple[SweepResult, set[str]]:
    """The whole sweep, from the catalog to the names."""
    with closing(sets):
        found = looked(table, mode, sets)
        return found, {str(name).lstrip("/") for batch in sets.orphans() for name in batch["name"].to_pylist()}


def looked(table: Table, mode: SweepMode, sets: Sets) -> SweepResult:
    opened = open_table(Address("iceberg", f"{table.warehouse.name}/{table.name}", "events")).retention
    assert opened is not None
    run = Run("bench", "0" * 16, "bench", int(time.time() * 1000))
    return sweep_table(opened, SweepOrder(mode, max_share=1.0), run, sets=sets)


def compare(folder: Path, java: IcebergJava, name: str, *, live: int, orphans: int) -> None:
    """Both sides on tables that were made alike; a dry run finds the same names."""
    with IcebergSpark(memory="4g", timeout=TIMEOUT, java_options="") as spark:
        for_theirs = made(java, folder, f"theirs{name}", live=live, orphans=orphans)
        for_ours = made(java, folder, f"ours{name}", live=live, orphans=orphans)
        to_quarantine = made(java, folder, f"aside{name}", live=live, orphans=orphans)
        spark.attach(for_theirs.warehouse)
        spark.attach(for_ours.warehouse)
        spark.sql("SELECT sum(id) FROM range(10)")
        # Theirs has its session, ours has imported what it runs: starting is in no ratio.
        importlib.import_module(FORMATS["iceberg"])
        us, (_, expected) = ours(for_ours, to_quarantine), swept(for_theirs, SweepMode.DRY_RUN, MemorySets())
        them = theirs(spark, for_theirs)
        rows = [spark.sql(f"SELECT count(*) FROM {each.sql}", timeout=TIMEOUT).rows for each in (for_theirs, for_ours)]
    print(f"\n{live + orphans:,} data files, {live:,} of them live")
    print(f"  {them}\n  {us}")
    first, best = them.looks[0].seconds / us.looks[0].seconds, them.best / us.best
    print(f"  dry run: {first:.2f} x first, {best:.2f} x best; {_ratios(them.deleting, us)}")
    print(f"  both find the same: {them.orphans == expected}; every row is still read of both: {rows[0] == rows[1]}")


def _ratios(them: Spent, us: Side) -> str:
    acts = {"deleting": us.deleting, "quarantining": us.aside or us.deleting}
    ratios = (f"{act} {them.seconds / our.seconds:.2f} x ({them.cpu / our.cpu:.1f} x CPU)" for act, our in acts.items())
    return "against their deleting: " + ", ".join(ratios)


def measure_memory(folder: Path, java: IcebergJava, *, live: int, orphans: int) -> None:
    """The largest resident set of any process of ours, from the listing to the last orphan's name."""
    spent, table = timed(lambda: made(java, folder, "large", live=live, orphans=orphans))
    print(f"\n{live + orphans:,} data files, {live:,} of them live, made in {spent:.0f} s")
    with largest() as peaks:
        seconds, found = timed(lambda: swept_in_batches(table, MemorySets()))
    print(f"  in one process: {seconds:.1f} s, {found:,} orphans; peak {peaks['python']:,} MiB")
    per_file = seconds / (live + orphans) * 1e6
    print(f"  {per_file:.1f} microseconds per file; 100 million: {per_file * 100 / 3600:.2f} hours of one core")
    with new_engine("local[2]", 2 << 30) as engine:
        spark = engine.spark()
        with largest() as peaks:
            seconds, found = timed(lambda: swept_in_batches(table, SparkSets(spark)))
    told = ", ".join(f"{name} {size:,} MiB" for name, size in peaks.items())
    print(f"  through Spark: {seconds:.1f} s, {found:,} orphans; peaks: {told}")


def swept_in_batches(table: Table, sets: Sets) -> int:
    with closing(sets):
        looked(table, SweepMode.DRY_RUN, sets)
        return sum(batch.num_rows for batch in sets.orphans())


@contextmanager
def largest() -> Iterator[dict[str, int]]:
    """Peaks in MiB of this process and those below it, by the program's name, looked at ten times a second."""
    peaks: dict[str, int] = {}
    ended = threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not ended.wait(0.1):
            for process in (me, *me.children(recursive=True)):
                try:
                    name, size = process.name().split(".")[0].rstrip("0123456789"), process.memory_info().rss >> 20
                except psutil.NoSuchProcess:
                    continue
                peaks[name] = max(size, peaks.get(name, 0))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


def weighed(work: Callable[[], T]) -> tuple[Spent, T]:
    """What some work took. Of the processes below this one only those count that outlive it."""

    def cpu() -> float:
        times = [each.cpu_times() for each in (me, *me.children(recursive=True))]
        return float(sum(found.user + found.system for found in times))

    me = psutil.Process()
    before = cpu()
    seconds, done = timed(work)
    return Spent(seconds, cpu() - before), done


def timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=50_000, help="data files: half of them orphans, then nearly all")
    parser.add_argument("--memory", action="store_true", help="a million files, and what processes take")
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(", ".join(f"{name} {version(name)}" for name in ("nightkeep", "pyspark", "polars", "pyarrow", "fastavro")))
    with tempfile.TemporaryDirectory(prefix="bench-sweep-") as folder, IcebergJava(timeout=TIMEOUT) as java:
        if arguments.memory:
            measure_memory(Path(folder), java, live=500_000, orphans=500_000)
        else:
            for number, live in enumerate((arguments.files // 2, arguments.files // 50)):
                compare(Path(folder), java, str(number), live=live, orphans=arguments.files - live)


if __name__ == "__main__":
    main()
