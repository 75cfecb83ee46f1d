"""What runs were expected to come to, and what they came to: files, bytes and seconds, on two nights.

Run by `make bench-predictions`. The tables are the samples, and larger ones of each format and operation. On the second
night they hold other rows, half as many again in the larger ones, and the night knows what the first one measured.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from samples.working_copy import copy_tables, variables
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, RandomRows
from tests.formats.delta.hand_made import HandMade

import nightkeep
from nightkeep.records import RunDocument, load_history

ROOT = Path(__file__).parents[1]
TIMEOUT = 1800.0
NEAR = 0.25
COLUMNS = (("order_id", "BIGINT"), ("customer", "STRING"), ("amount", "DECIMAL(12, 2)"), ("note", "STRING"))
UNKEYED = {"bucket": "-1", "write-only": "true"}
KEYED = {"bucket": "2", "write-only": "true", "num-sorted-run.compaction-trigger": "3"}


@dataclass(frozen=True)
class Figure:
    """One figure of one run."""

    document: RunDocument
    name: str
    expected: float
    measured: float

    @property
    def is_near(self) -> bool:
        return abs(self.expected - self.measured) <= NEAR * self.measured

    def __str__(self) -> str:
        shown = "{:,.1f} -> {:,.1f}" if self.name == "seconds" else "{:,.0f} -> {:,.0f}"
        return shown.format(self.expected, self.measured) + ("" if self.is_near else " *")


def figures_of(document: RunDocument) -> tuple[Figure, ...]:
    """The figures of a run that did work."""
    expected, metrics = document.metrics.predicted, document.metrics
    if expected is None or metrics.files_after is None or metrics.bytes_after is None:
        return ()
    return (
        Figure(document, "files", expected.files, metrics.files_after),
        Figure(document, "bytes", expected.bytes, metrics.bytes_after),
        Figure(document, "seconds", expected.seconds, document.session_seconds),
    )


def made(folder: Path, rows: int, seed: int) -> Iterator[str]:
    """Larger tables, and their lines of a policy."""
    yield from _paimon(folder / "paimon", rows, seed)
    yield from _delta(folder / "delta", rows, seed)
    yield from _iceberg(folder / "iceberg", rows, seed)


def _paimon(folder: Path, rows: int, seed: int) -> Iterator[str]:
    with PaimonJava(timeout=TIMEOUT) as java:
        for name, vectors in (("lifted", True), ("compacted", False)):
            options = {**KEYED, "deletion-vectors.enabled": str(vectors).lower()}
            java.create(folder / name, Layout(columns=COLUMNS, primary_keys=("order_id",), options=options))
            java.write_random(folder / name, RandomRows(rows=rows, seed=seed, sequential=True, step=2))
            java.compact(folder / name, Compaction(full=True, threads=2))
            for commit in range(3):
                new = RandomRows(rows=rows // 10, seed=seed + 1 + commit, keyspace=2 * rows, delete_every=10)
                java.write_random(folder / name, new)
        java.create(folder / "appended", Layout(columns=COLUMNS, options=UNKEYED))
        for commit in range(10):
            java.write_random(folder / "appended", RandomRows(rows=rows // 10, seed=seed + commit))
    for name, operation in (("lifted", "upgrade"), ("compacted", "optimize"), ("appended", "optimize")):
        yield f"  - {{name: large.paimon_{name}, table: 'paimon:{folder / name}', operations: [{operation}]}}"


def _delta(folder: Path, rows: int, seed: int) -> Iterator[str]:
    for name in ("packed", "clustered"):
        table, each = HandMade(folder / name), rows // 16
        for number in range(16):
            first = seed + number * each
            table.append(f"2026-11-0{1 + number % 2}", range(first, first + each))
        table.delete("2026-11-01", range(seed, seed + 8 * each, 7))
    ordered = "clustering: {columns: [id, price]}, target_size: 256KB"
    for name, more in (("packed", ""), ("clustered", f", {ordered}")):
        yield f"  - {{name: large.delta_{name}, table: 'delta:{folder / name}', operations: [optimize]{more}}}"


def _iceberg(folder: Path, rows: int, seed: int) -> Iterator[str]:
    folder.mkdir(parents=True)
    catalog = SqlCatalog("large", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    some = np.random.default_rng(seed)
    for name in ("packed", "clustered"):
        table = None
        for number in range(12):
            count = rows // 12
            found = pa.table(
                {
                    "device": some.integers(0, 500, count),
                    "at": np.arange(count) + number * count,
                    "value": some.normal(size=count),
                    "text": [f"reading {n}" for n in some.integers(0, 9000, count)],
                }
            )
            table = table or catalog.create_table(f"shop.{name}", schema=found.schema)
            table.append(found)
    catalog.close()
    ordered = "clustering: {columns: [device, at]}, target_size: 256KB"
    for name, more in (("packed", ""), ("clustered", f", {ordered}")):
        yield f"  - {{name: large.iceberg_{name}, table: 'iceberg:large/shop.{name}', operations: [optimize]{more}}}"


def run_night(folder: Path, reports: Path, *, rows: int, seed: int) -> tuple[RunDocument, ...]:
    """One night over new tables in `folder`: its documents."""
    copy_tables(folder / "warehouse")
    lines = "\n".join(made(folder / "large", rows, seed))
    policy = folder / "tables.yaml"
    samples = (ROOT / "dags/tables.yaml").read_text(encoding="utf-8")
    policy.write_text(f"{samples}\ntables:\n{lines}\n", encoding="utf-8")
    os.environ |= variables(folder)
    os.environ["PYICEBERG_CATALOG__LARGE__URI"] = f"sqlite:///{folder}/large/iceberg/catalog.db"
    environ = {**os.environ, "NIGHTKEEP_MASTER": "local[2]", "PYTHONPATH": str(ROOT / "jobs")}
    names = ",".join(table.name for table in nightkeep.tables(policy=policy))
    arguments = ["--policy", str(policy), "--reports", str(reports), "--run-id-prefix", folder.name, "--tables", names]
    subprocess.run(
        [sys.executable, str(ROOT / "jobs/care.py"), *arguments],
        env=environ,
        timeout=TIMEOUT,
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return tuple(each for each in load_history(reports) if each.run_id.startswith(f"{folder.name}:"))


def show(title: str, documents: tuple[RunDocument, ...]) -> None:
    runs = [found for each in documents if (found := figures_of(each))]
    print(f"\n{title}: expected -> measured, * further off than {NEAR:.0%}")
    print(f"{'table':24s}{'operation':17s}{'files':>14s}{'bytes':>28s}{'seconds':>16s}  learned from")
    for found in runs:
        document, predicted = found[0].document, found[0].document.metrics.predicted
        files, size, seconds = map(str, found)
        learned = predicted.learned_from if predicted else ""
        print(f"{document.table:24s}{document.operation:17s}{files:>14s}{size:>28s}{seconds:>16s}  {learned}")
    every = [figure for found in runs for figure in found]
    for name in ("files", "bytes", "seconds"):
        some = [figure for figure in every if figure.name == name]
        print(f"  {name:8s} {sum(figure.is_near for figure in some) / max(1, len(some)):.0%} of {len(some)} within")
    print(f"  all      {sum(figure.is_near for figure in every) / max(1, len(every)):.0%} of {len(every)} within")


def main() -> None:
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow"))
    print(f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}")
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory(prefix="nightkeep-predictions-") as place:
        for number, title in ((1, "first night"), (2, "second night")):
            started, folder = time.perf_counter(), Path(place) / f"night{number}"
            documents = run_night(folder, Path(place) / "reports", rows=rows * (1 + number) // 2, seed=1000 * number)
            show(title, documents)
            load_1, _, _ = os.getloadavg()
            print(f"  {time.perf_counter() - started:.0f} s with making the tables; load of the machine {load_1:.1f}")


if __name__ == "__main__":
    main()
