"""Many tables in one night: with nothing to do, and with a little work each.

Run by `make bench-many` (BENCH="--idle 2000 --work 0"). A third of the tables are of each format. What is measured is
the job that a night submits, in a process of its own: wall seconds, CPU seconds of Python, the largest process, and
what stages took.
A job over tables with nothing to do runs without any Java, so that a Spark session would end it.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from samples.iceberg_places import current_metadata, place

from nightkeep.reports import RunDocument, load_history

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
TIMEOUT = 3600.0
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


def run_job(warehouse: Warehouse, *, java: bool) -> tuple[float, float, int]:
    """One night over all tables: wall seconds, CPU seconds, and the peak bytes of its largest process."""
    environ = {
        **os.environ, "PYICEBERG_CATALOG__MANY__URI": _uri(warehouse.folder), "NIGHTKEEP_MASTER": "local[*]",
        "GX_ANALYTICS_ENABLED": "false", "PYTHONPATH": f"{ROOT / 'jobs'}",
    }  # fmt: skip
    if not java:
        environ |= {"JAVA_HOME": "/no/java", "PATH": str(Path(sys.executable).parent)}
    arguments = ["--policy", str(warehouse.policy), "--reports", str(warehouse.reports), "--run-id-prefix", "night"]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, str(ROOT / "jobs/care.py"), *arguments, "--tables", ",".join(warehouse.names)],
        env=environ, timeout=TIMEOUT, check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, after.ru_maxrss * 1024


def show(title: str, documents: tuple[RunDocument, ...], figures: tuple[float, float, int]) -> None:
    seconds, cpu, peak = figures
    outcomes = ", ".join(f"{count} {name}" for name, count in Counter(str(each.outcome) for each in documents).items())
    spent = {stage: sum(each.metrics.seconds.get(stage, 0.0) for each in documents) for stage in STAGES}
    share = spent["check"] / max(sum(spent.values()), 1e-9)
    print(f"{title}: {seconds:.1f} s, {cpu:.1f} CPU s of Python, largest process {peak >> 20} MiB; {outcomes}")
    print("  " + ", ".join(f"{stage} {value:.1f} s" for stage, value in spent.items()) + f"; check {share:.0%} of it")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", type=int, default=200, help="tables with nothing to do")
    parser.add_argument("--work", type=int, default=60, help="tables with a little work each")
    asked = parser.parse_args()
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow", "great-expectations"))
    print(f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}")
    for title, count, java in (("nothing to do", asked.idle, False), ("a little work each", asked.work, True)):
        if not count:
            continue
        with tempfile.TemporaryDirectory(prefix="nightkeep-many-") as folder:
            warehouse = made(Path(folder), count, work=java)
            figures = run_job(warehouse, java=java)
            show(f"{count} tables, {title}", load_history(warehouse.reports), figures)


if __name__ == "__main__":
    main()
