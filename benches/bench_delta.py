"""Z-order of a Delta table: delta-spark 4.4.0 and deltalake 1.6.6 against Nightkeep, on copies, in one run.

Run by `make bench-delta`. Same codec, row groups and target size on all sides; rows of all results are compared, and
what each layout skips is measured from its own statistics. JVM and session start are printed apart and in no ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benches.delta_log import measure_log
from benches.delta_vacuum import Vacuumed, measure_vacuum
from benches.plain_cost import plain_cost
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lakes_oracle import Lakes

from nightkeep.admission.order import Order
from nightkeep.api.call_context import new_engine
from nightkeep.formats import open_table
from nightkeep.kernels.skipping import Queries, queries_of, skipped_share
from nightkeep.model import Address, Clustering, Curve, Operation, Outcome
from nightkeep.policy import load
from nightkeep.protocol import TableLayout
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.spark.engine import Engine

COLUMNS = ("device_id", "ts", "lat")
PARTITIONS = 4
TIMEOUT = 1800.0
DAY_US = 86_400_000_000
FIRST_DAY = 20_758
"""Days since 1970 of the first partition, 2026-11-01."""


@dataclass(frozen=True, slots=True)
class Size:
    """Rows over all partitions, in this many files, and the size of the files wanted."""

    rows: int
    files: int
    target_bytes: int

    def __str__(self) -> str:
        target = self.target_bytes / 2**20
        return (
            f"{self.rows / 1e6:g} M rows in {self.files} files and {PARTITIONS} partitions, to files of {target:g} MiB"
        )


def write_files(folder: Path, size: Size) -> None:
    """Parquet files of random rows in one folder per day, for delta-spark to convert."""
    random = np.random.default_rng(0)
    rows = size.rows // size.files
    for number in range(size.files):
        day = FIRST_DAY + number % PARTITIONS
        table = pa.table(
            {
                "event_id": random.integers(0, 2**63 - 1, rows),
                "device_id": random.integers(0, 200_000, rows, dtype=np.int32),
                "lat": random.normal(size=rows),
                "lon": random.normal(size=rows),
                "ts": pa.array(day * DAY_US + random.integers(0, DAY_US, rows), pa.timestamp("us", "UTC")),
                "payload": _payloads(random, rows),
            }
        )
        place = folder / f"day={np.datetime64(day, 'D')}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place / f"part-{number:05d}.parquet", compression="snappy", row_group_size=1 << 20)


def _payloads(random: np.random.Generator, rows: int) -> pa.Array:  # type: ignore[type-arg]
    letters = np.frombuffer(b"abcdefghijklmnop", np.uint8)[random.integers(0, 16, 16 * rows)]
    offsets = np.arange(rows + 1, dtype=np.int32) * 16
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets.data), pa.py_buffer(letters.data))


@dataclass(frozen=True, slots=True)
class Result:
    """One side's runs, in seconds, on a table left in `table`."""

    name: str
    table: Path
    seconds: tuple[float, ...]
    document: RunDocument | None = None


def twice(name: str, folder: Path, work: Callable[[Path], RunDocument | None]) -> Result:
    """The first run and a second one, each on a copy of its own; the first copy is kept."""
    seconds, document = [], None
    for number in range(2):
        table = folder / f"{name.replace(' ', '-')}-{number}"
        shutil.copytree(folder / "made", table)
        started = time.perf_counter()
        found = work(table)
        seconds.append(time.perf_counter() - started)
        if number:
            shutil.rmtree(table)
        else:
            document = found
    return Result(name, folder / f"{name.replace(' ', '-')}-0", tuple(seconds), document)


def delta_spark(folder: Path, size: Size) -> Result:
    conf = {
        "spark.databricks.delta.optimize.maxFileSize": str(size.target_bytes),
        "spark.sql.parquet.compression.codec": "snappy",
        "spark.databricks.delta.optimize.maxThreads": "2",
    }
    with DeltaSpark(memory="8g", timeout=TIMEOUT, java_options="", conf=conf) as spark:
        spark.sql(f"CONVERT TO DELTA parquet.`{folder / 'made'}` PARTITIONED BY (day DATE)")

        def work(table: Path) -> None:
            spark.sql(f"OPTIMIZE {named(table)} ZORDER BY ({', '.join(COLUMNS)})", timeout=TIMEOUT)

        return twice("delta-spark 4.4.0", folder, work)


def delta_rs(folder: Path, size: Size) -> Result:
    with Lakes(timeout=TIMEOUT) as lakes:

        def work(table: Path) -> None:
            lakes.delta_rs_z_order(table, COLUMNS, target_size=size.target_bytes, codec="SNAPPY")

        return twice("delta-rs 1.6.6", folder, work)


def nightkeep(table: Path, engine: Engine, size: Size, *, curve: Curve, wide: bool) -> RunDocument:
    """A run of ours; its seconds by stage are in the document."""
    policy = load("tables.yaml", text="version: 1").effective(f"delta:{table}")
    changes = {"clustering": Clustering(COLUMNS, curve), "target_size": size.target_bytes}
    if wide:
        changes["exchange_above"] = 1
    policy = replace(policy, settings=policy.settings.model_copy(update=changes))
    order = Order(Operation.OPTIMIZE, f"bench-{curve}-{wide}", str(table.parent / "reports"))
    document = run_operation(policy, order, mapper=engine.mapper, exchange=engine.exchange)
    if document.outcome is not Outcome.VERIFIED:
        raise SystemExit(f"bench: expected verified, found {document.outcome}: {document.reason}")
    return document


def ours(folder: Path, engine: Engine, size: Size, name: str, *, curve: Curve = Curve.Z, wide: bool = False) -> Result:
    """Rewrite and commit of each run; the gate is left out and printed apart."""
    kept: list[RunDocument] = []

    def work(table: Path) -> RunDocument:
        kept.append(nightkeep(table, engine, size, curve=curve, wide=wide))
        return kept[-1]

    found = twice(name, folder, work)
    spent = tuple(sum(d.metrics.seconds[stage] for stage in ("plan", "rewrite", "publish")) for d in kept)
    return replace(found, seconds=spent)


def laid(result: Result) -> TableLayout:
    table = open_table(Address("delta", str(result.table), result.name))
    assert table.layout is not None
    return table.layout.read(table.snapshot())


def skipping(result: Result, queries: Mapping[str, Queries]) -> dict[str, float]:
    found = laid(result)
    return {name: round(skipped_share(found.bounds[name], queries[name]), 3) for name in queries}


def uniform_queries(result: Result) -> dict[str, Queries]:
    """1 % ranges of each column, from the distribution of one layout: the same for every side."""
    found = laid(result)
    return {name: queries_of(found.bounds[name]) for name in (*COLUMNS, "event_id", "lon")}


def measure(size: Size, folder: Path, *, peers: bool) -> None:
    write_files(folder / "made", size)
    theirs = [delta_spark(folder, size)]
    if peers:
        theirs.append(delta_rs(folder, size))
    open_table(Address("delta", str(folder / "made"), "made"))
    started = time.perf_counter()
    with new_engine("local[2]", 2 << 30) as engine:
        engine.spark()
        session = time.perf_counter() - started
        mine = [
            ours(folder, engine, size, "Nightkeep Z"),
            ours(folder, engine, size, "Nightkeep Hilbert", curve=Curve.HILBERT),
            ours(folder, engine, size, "Nightkeep Z, exchange", wide=True),
        ]
    show(size, theirs, mine, made=folder / "made", session=session)
    compare(folder, [*theirs, *mine])


def show(size: Size, theirs: Sequence[Result], mine: Sequence[Result], *, made: Path, session: float) -> None:
    queries = uniform_queries(mine[0])
    print(f"\n{size}")
    for result in (*theirs, *mine):
        files = [path.stat().st_size for path in live_files(result.table)]
        near = sum(0.5 <= each / size.target_bytes <= 1.5 for each in files) / len(files)
        first, best = result.seconds[0], min(result.seconds)
        print(
            f"  {result.name:22s} {first:7.2f} s first, {best:6.2f} s best; {len(files)} files, {near:.0%} near target"
        )
        print(f"    skipped by 1 % ranges: {json.dumps(skipping(result, queries))}")
    for result in mine:
        print(f"  {result.name}: {'; '.join(_ratio(other, result) for other in theirs)}")
        _costs(result)
        _limit(result, made)
    print(f"  session start {session:.2f} s, in no ratio")


def _ratio(other: Result, result: Result) -> str:
    first, best = other.seconds[0] / result.seconds[0], min(other.seconds) / min(result.seconds)
    return f"{first:.2f} x first, {best:.2f} x best against {other.name}"


def _costs(result: Result) -> None:
    document = result.document
    if document is not None:
        spent, peak = document.metrics.seconds, (document.metrics.peak_task_memory or 0) / 2**20
        cpu = document.metrics.extra["cpu_seconds"]
        print(
            f"    plan {spent['plan']:.2f} s, gate {spent['verify']:.2f} s; CPU {cpu}; peak task memory {peak:.0f} MiB"
        )


def _limit(result: Result, made: Path) -> None:
    document = result.document
    if document is not None:
        # delta-spark may have left a checkpoint in the log.
        files = sorted(path for path in made.rglob("*.parquet") if "_delta_log" not in path.parts)
        columns = pq.read_schema(files[0]).names
        before, after = (plain_cost(some, columns=columns) for some in (files, live_files(result.table)))
        cpu = dict(document.metrics.extra["cpu_seconds"])  # type: ignore[call-overload]
        print(f"    {before.of_rewrite(result.seconds[0])}; gate {before.of_gate(cpu['verify'], after)}")


def live_files(table: Path) -> list[Path]:
    opened = open_table(Address("delta", str(table), table.name))
    units: Any = opened.units(opened.snapshot())
    return [table / file.name for unit in units for file in unit.files]


def compare(folder: Path, results: Sequence[Result]) -> None:
    """The rows of every side, read by delta-spark: counts and two sums of hashes."""
    digest = "count(*), sum(xxhash64(*) >> 16), sum(xxhash64('salt', *) >> 16)"
    with DeltaSpark(memory="4g", timeout=TIMEOUT, java_options="") as spark:
        found = {r.name: str(spark.sql(f"SELECT {digest} FROM {named(r.table)}", timeout=TIMEOUT)) for r in results}
        wanted = str(spark.sql(f"SELECT {digest} FROM {named(folder / 'made')}", timeout=TIMEOUT))
    print(f"  delta-spark reads the same rows of all: {set(found.values()) == {wanted}}")


def memory(size: Size, folder: Path) -> None:
    """Ours alone, with a task budget far below the data, to see that memory stays within it."""
    write_files(folder / "made", size)
    with DeltaSpark(memory="8g", timeout=TIMEOUT, java_options="") as spark:
        spark.sql(f"CONVERT TO DELTA parquet.`{folder / 'made'}` PARTITIONED BY (day DATE)")
    with new_engine("local[2]", 2 << 30) as engine:
        engine.spark()
        result = ours(folder, engine, size, "Nightkeep Z")
    print(f"\n{size}, 2 GiB a task\n  {result.name:22s} {result.seconds[0]:7.2f} s first")
    _costs(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=8.0, help="millions of rows")
    parser.add_argument("--target", type=float, default=8.0, help="MiB of a file")
    parser.add_argument("--memory", action="store_true", help="only ours, on ten times the rows")
    parser.add_argument("--no-delta-rs", action="store_true")
    parser.add_argument(
        "--log", type=int, nargs="?", const=100_000, metavar="COMMITS", help="only the log of so many commits (100,000)"
    )
    parser.add_argument(
        "--vacuum", type=int, nargs="?", const=100_000, metavar="FILES", help="only removed files of so many (100,000)"
    )
    arguments = parser.parse_args()
    names = ("pyspark", "pyarrow", "polars")
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
    size = Size(int(arguments.rows * 1e6), 64, int(arguments.target * 2**20))
    with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
        if arguments.log is not None:
            measure_log(Path(folder), arguments.log)
        elif arguments.vacuum is not None:
            few, half = max(arguments.vacuum // 100, 1), arguments.vacuum // 2
            nights = (Vacuumed(arguments.vacuum, half), Vacuumed(arguments.vacuum, few, swept=half))
            measure_vacuum(Path(folder), nights)
        elif arguments.memory:
            memory(Size(10 * size.rows, 640, 16 * size.target_bytes), Path(folder))
        else:
            measure(size, Path(folder), peers=not arguments.no_delta_rs)


if __name__ == "__main__":
    main()
