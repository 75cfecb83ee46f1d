"""The check of a published version, against one plain read of both versions by the same Spark session.

Run by `make bench-check`. The plain read hashes every column of every row of the live files, and merges nothing. Both
are measured twice in one session, the read first; the session's start is printed apart and in no ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from benches import bench_delta, bench_iceberg, bench_paimon
from benches.plain_cost import files_with
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.paimon_java import PaimonJava

from nightkeep.admission.order import Order
from nightkeep.api.call_context import new_engine
from nightkeep.checking.check import check
from nightkeep.model import Address, Clustering, Curve, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.policy import load
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.spark.engine import Engine

TIMES = 2


@dataclass(frozen=True, slots=True)
class Made:
    """A table as its engine left it, and what is done to it."""

    name: str
    address: Address
    operation: Operation
    live: Callable[[], list[Path]]
    clustering: Clustering | None = None


def delta(folder: Path, rows: int) -> Made:
    size, table = bench_delta.Size(rows, 64, 8 << 20), folder / "made"
    bench_delta.write_files(table, size)
    with DeltaSpark(memory="8g", timeout=bench_delta.TIMEOUT, java_options="") as spark:
        spark.sql(f"CONVERT TO DELTA parquet.`{table}` PARTITIONED BY (day DATE)")
    address, clustering = Address("delta", str(table), "made"), Clustering(bench_delta.COLUMNS, Curve.Z)
    live = partial(bench_delta.live_files, table)
    return Made(f"Delta, Z-order of {size}", address, Operation.OPTIMIZE, live, clustering)


def paimon(folder: Path, rows: int) -> Made:
    size, table = bench_paimon.Size(rows, rows // 10), folder / "made"
    with PaimonJava(memory="10g", timeout=bench_paimon.TIMEOUT, java_options=()) as java:
        bench_paimon.build(java, table, size)
    address, live = Address("paimon", str(table), "made"), partial(bench_paimon.live_files, table)
    return Made(f"Paimon, {size}", address, Operation.UPGRADE, live)


def iceberg(folder: Path, rows: int) -> Made:
    size = bench_iceberg.Size(rows, rows // 200)
    with IcebergJava(memory="6g", timeout=bench_iceberg.TIMEOUT) as java:
        table = bench_iceberg.build(folder, java, size, 2)
    name = table.warehouse.name
    os.environ[f"PYICEBERG_CATALOG__{name.upper()}__URI"] = f"sqlite:///{table.warehouse.database}"
    # Conversion leaves the data files where they are.
    live = partial(files_with, table.warehouse.folder, [column[0] for column in size.columns])
    address = Address("iceberg", f"{name}/{table.name}", "made")
    return Made(f"Iceberg, conversion of {size}", address, Operation.PERSIST_DELETES, live)


TABLES: dict[str, Callable[[Path, int], Made]] = {"delta": delta, "paimon": paimon, "iceberg": iceberg}


def measure(made: Made, reports: Path) -> None:
    before = made.live()
    started = time.perf_counter()
    with new_engine("local[2]", 2 << 30) as engine:
        spark = engine.spark()
        session = time.perf_counter() - started
        document = cared(made, engine, reports)
        after = made.live()
        plain = [timed(lambda: read(spark, before, after)) for _ in range(TIMES)]
        checks = [timed(lambda: checked(made.address, document, spark)) for _ in range(TIMES)]
    print(f"\n{made.name}")
    print(f"  one read of both versions {plain[0]:7.2f} s first, {min(plain):6.2f} s best")
    print(f"  check                     {checks[0]:7.2f} s first, {min(checks):6.2f} s best")
    print(f"  ratio                     {checks[0] / plain[0]:7.2f} x first, {min(checks) / min(plain):6.2f} x best")
    print(f"  session start             {session:7.2f} s, in no ratio", flush=True)


def cared(made: Made, engine: Engine, reports: Path) -> RunDocument:
    policy = load("tables.yaml", text="version: 1").effective(f"{made.address.format}:{made.address.location}")
    policy = replace(policy, settings=policy.settings.model_copy(update={"clustering": made.clustering}))
    order = Order(made.operation, "bench", str(reports))
    document = run_operation(policy, order, mapper=engine.mapper, exchange=engine.exchange)
    if document.outcome is not Outcome.VERIFIED:
        raise SystemExit(f"bench: expected verified, found {document.outcome}: {document.reason}")
    return document


def read(spark: SparkSession, *sides: Sequence[Path]) -> None:
    """All columns of all rows in a hash, whose sums are one row."""
    for files in sides:
        spark.read.parquet(*map(str, files)).selectExpr("sum(xxhash64(*) >> 16)").collect()


def checked(address: Address, document: RunDocument, spark: SparkSession) -> None:
    budget = load("tables.yaml", text="version: 1").effective(str(address)).settings.check.keys_budget
    request = CheckRequest(address, document.committed_version, document.base_version, keys_budget=budget)
    report = check(request, spark=spark)
    if report.status is not CheckStatus.PASSED:
        raise SystemExit(f"bench: expected passed, found {report.status}: {report.reason}")


def timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=TABLES, help="one format")
    parser.add_argument("--rows", type=float, default=20.0, help="millions of rows")
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
    for name in [arguments.only] if arguments.only else TABLES:
        with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
            measure(TABLES[name](Path(folder), int(arguments.rows * 1e6)), Path(folder) / "reports")


if __name__ == "__main__":
    main()
