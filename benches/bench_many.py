"""Many tables in one night: with nothing to do, and with a little work each.

Run by `make bench-many` (BENCH="--idle 2000 --work 0"). A third of the tables are of each format. What is measured is
the job that a night submits, in a process of its own: wall seconds, CPU seconds of all its processes, the largest of
them, and what stages took. A job over tables with nothing to do runs without any Java, so that a Spark session would
end it.

Tables with work are maintained twice, in warehouses of their own: side by side in one session, as a night does it, and,
as many as `--before` sets, one after the other with their checks, four to a session.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from samples.iceberg_places import current_metadata, place

from nightkeep.admission.order import Order
from nightkeep.admission.suited_operations import suited_operations
from nightkeep.api.call_context import new_engine
from nightkeep.groups.one_operation import run_one
from nightkeep.policy import load
from nightkeep.records import load_history

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
TIMEOUT = 7200.0
TO_A_SESSION = 4
SUBREAPER = 36
"""Of prctl(2): orphans, such as a JVM whose driver has ended, become children of this process, with their CPU time."""
STAGES = ("plan", "rewrite", "verify", "publish", "check")


@dataclass(frozen=True)
class Warehouse:
    """Tables in a folder, and their policy."""

    folder: Path
    names: tuple[str, ...]

    @property
    def policy(self) -> Path:
        return self.folder / "tables.yaml"

    @property
    def reports(self) -> Path:
        return self.folder / "reports"


def made(folder: Path, count: int, *, work: bool) -> Warehouse:
    """A warehouse of `count` tables, each with work or none with any."""
    entries: dict[str, str] = {}
    thirds = [count // 3 + (n < count % 3) for n in range(3)]
    for n in range(thirds[0]):
        entries[f"delta.t{n}"] = f"delta:{_copied('delta', 'clicks' if work else 'accounts', folder, n)}"
    for n in range(thirds[1]):
        entries[f"paimon.t{n}"] = f"paimon:{_copied('paimon', 'orders' if work else 'ledger', folder, n)}"
    for name in _iceberg(folder, thirds[2], work=work):
        entries[f"iceberg.{name}"] = f"iceberg:many/{name}"
    lines = "".join(f"  - {{name: {name}, table: '{address}'}}\n" for name, address in entries.items())
    warehouse = Warehouse(folder, tuple(entries))
    warehouse.policy.write_text(f"version: 1\ntables:\n{lines}", encoding="utf-8")
    return warehouse


def _copied(kind: str, sample: str, folder: Path, number: int) -> Path:
    return Path(shutil.copytree(SAMPLES / kind / "shop.db" / sample, folder / kind / f"t{number}"))


def _iceberg(folder: Path, count: int, *, work: bool) -> list[str]:
    (folder / "iceberg").mkdir(parents=True)
    catalog = SqlCatalog("many", uri=_uri(folder), warehouse=f"file://{folder}/iceberg")
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "text": pa.array([f"row {n}" for n in range(100)])})
    names = [f"n{n}.orders" for n in range(count)]
    for name in names:
        namespace = name.partition(".")[0]
        catalog.create_namespace(namespace)
        if work:
            place(SAMPLES / "iceberg", folder / "iceberg" / namespace)
            metadata = current_metadata(folder / "iceberg" / namespace / "shop" / "orders")
            catalog.register_table(name, f"file:{metadata}")
        else:
            catalog.create_table(name, schema=rows.schema).append(rows)
    catalog.close()
    return names


def _uri(folder: Path) -> str:
    return f"sqlite:///{folder}/iceberg/catalog.db"


@dataclass(frozen=True)
class Cost:
    """Wall seconds, CPU seconds of all processes, and the peak bytes of the largest."""

    seconds: float
    cpu: float
    peak: int

    def __str__(self) -> str:
        busy = self.cpu / self.seconds / (os.cpu_count() or 1)
        return (
            f"{self.seconds:.1f} s, {self.cpu:.1f} CPU s (cores {busy:.0%} busy), largest process {self.peak >> 20} MiB"
        )


def run_job(warehouse: Warehouse, *, java: bool) -> Cost:
    """One night over all tables."""
    arguments = ["--policy", str(warehouse.policy), "--reports", str(warehouse.reports), "--run-id-prefix", "night"]
    job = [str(ROOT / "jobs/care.py"), *arguments, "--tables", ",".join(warehouse.names)]
    return measured([job], warehouse, java=java)


def run_before(warehouse: Warehouse) -> Cost:
    """The same, one table after the other, a few to a session."""
    some = [warehouse.names[n : n + TO_A_SESSION] for n in range(0, len(warehouse.names), TO_A_SESSION)]
    jobs = [[__file__, "--policy", str(warehouse.policy), "--tables", ",".join(names)] for names in some]
    return measured(jobs, warehouse, java=True)


def one_after_the_other(policy: Path, names: list[str]) -> None:
    """The work on these tables and their checks in one session, and nothing beside it."""
    chosen, reports = load(policy), str(policy.parent / "reports")
    with new_engine("local[*]", 2 << 30, checks=True) as engine:
        for table in map(chosen.effective, names):
            for operation in suited_operations(table):
                order = Order(operation, f"before:{table.address.name}", reports)
                run_one(table, order, engine)


def measured(jobs: list[list[str]], warehouse: Warehouse, *, java: bool) -> Cost:
    """What these jobs cost, one after the other, with all processes that they start."""
    environ = {
        **os.environ,
        "PYICEBERG_CATALOG__MANY__URI": _uri(warehouse.folder),
        "NIGHTKEEP_MASTER": "local[*]",
        "GX_ANALYTICS_ENABLED": "false",
        "PYTHONPATH": f"{ROOT / 'jobs'}{os.pathsep}{ROOT}",
    }
    if not java:
        environ |= {"JAVA_HOME": "/no/java", "PATH": str(Path(sys.executable).parent)}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for job in jobs:
        subprocess.run([sys.executable, *job], env=environ, timeout=TIMEOUT, check=True, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, after.ru_maxrss * 1024)


def show(title: str, warehouse: Warehouse, cost: Cost) -> None:
    documents = load_history(warehouse.reports)
    outcomes = ", ".join(f"{count} {name}" for name, count in Counter(str(each.outcome) for each in documents).items())
    spent = {stage: sum(each.metrics.seconds.get(stage, 0.0) for each in documents) for stage in STAGES}
    share = spent["check"] / max(sum(spent.values()), 1e-9)
    print(f"{title}: {cost}; {outcomes}")
    print("  " + ", ".join(f"{stage} {value:.1f} s" for stage, value in spent.items()) + f"; check {share:.0%} of it")


def compare(count: int, before: int) -> None:
    """Tables with a little work each, side by side and one after the other."""
    with tempfile.TemporaryDirectory(prefix="nightkeep-many-") as folder:
        warehouse = made(Path(folder), count, work=True)
        now = run_job(warehouse, java=True)
        show(f"{count} tables, a little work each", warehouse, now)
    if not before:
        return
    with tempfile.TemporaryDirectory(prefix="nightkeep-many-") as folder:
        warehouse = made(Path(folder), before, work=True)
        then = run_before(warehouse)
        show(f"{before} tables, one after the other, {TO_A_SESSION} to a session", warehouse, then)
    wall, cpu = then.seconds / before / (now.seconds / count), then.cpu / before / (now.cpu / count)
    print(
        f"  a table takes {now.seconds / count:.2f} s and {now.cpu / count:.2f} CPU s: {wall:.1f} x, {cpu:.1f} x less"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", type=int, default=200, help="tables with nothing to do")
    parser.add_argument("--work", type=int, default=200, help="tables with a little work each")
    parser.add_argument("--before", type=int, default=20, help="tables that are maintained one after the other")
    parser.add_argument("--policy", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--tables", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.policy is not None:
        one_after_the_other(asked.policy, asked.tables.split(","))
        return
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow", "great-expectations"))
    print(f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}")
    if asked.idle:
        with tempfile.TemporaryDirectory(prefix="nightkeep-many-") as folder:
            warehouse = made(Path(folder), asked.idle, work=False)
            show(f"{asked.idle} tables, nothing to do", warehouse, run_job(warehouse, java=False))
    if asked.work:
        compare(asked.work, asked.before)


if __name__ == "__main__":
    main()
