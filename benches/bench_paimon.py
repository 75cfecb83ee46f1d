"""Upgrade or full compaction: Paimon Java 2.0.0 against Nightkeep, on copies of one table, in one run on one machine.

Run by `make bench-paimon`. Prints ratios; JVM and session start are printed apart and in no ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benches.plain_cost import files_with, plain_cost
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compacted, Compaction, Layout, RandomRows, Scan

from nightkeep.admission.order import Order
from nightkeep.api.call_context import new_engine
from nightkeep.formats import open_table
from nightkeep.formats.paimon.metadata.file_formats import FORMATS
from nightkeep.model import Address, Operation, Outcome
from nightkeep.policy import load
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.spark.engine import Engine

COLUMNS = (
    ("order_id", "BIGINT NOT NULL"),
    ("customer_id", "BIGINT"),
    ("amount", "DECIMAL(12, 2)"),
    ("status", "STRING"),
    ("note", "STRING"),
    ("updated_at", "TIMESTAMP(6)"),
)
ENGINES = {
    "deduplicate": {},
    "changelog": {"changelog-producer": "lookup"},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "sequence-groups": {
        "merge-engine": "partial-update",
        "fields.updated_at.sequence-group": "amount,status",
        "fields.customer_id.sequence-group": "note",
    },
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.amount.aggregate-function": "sum",
        "fields.updated_at.aggregate-function": "max",
        "fields.updated_at.ignore-retract": "true",
    },
}
"""Options of a table by its merge engine, deduplicate by default; columns without a function keep the last value that
is not null."""
HARD_COLUMNS = (
    ("order_id", "VARCHAR(36) NOT NULL"),
    ("line", "INT NOT NULL"),
    ("updated_at", "TIMESTAMP(6)"),
    *((f"amount{number}", "DECIMAL(12, 2)") for number in range(32)),
    *((f"count{number}", "BIGINT") for number in range(32)),
    *((f"note{number}", "STRING") for number in range(33)),
)
"""100 columns, the first a UUID."""
MERGED = Scan(options={"deletion-vectors.merge-on-read": "true"})
TIMEOUT = 1800.0


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of the base (already on the top level), rows of level 0 over all commits, buckets, commits.

    `hard`: two key columns, a UUID the first; 100 columns; a sequence field; a level between the top and level 0; 20
    files of level 0 in each bucket.
    """

    base: int
    level0: int
    engine: str = "deduplicate"
    vectors: bool = True
    file_format: str = "parquet"
    hard: bool = False
    delete_every: int = 10

    @property
    def buckets(self) -> int:
        return 2 if self.hard else 8

    @property
    def commits(self) -> int:
        """Of level 0. A table without vectors has four sorted runs with its base."""
        return 20 if self.hard else 2 if self.vectors else 3

    @property
    def layout(self) -> Layout:
        options = {"bucket": str(self.buckets), "write-only": "true", "file.format": self.file_format}
        options |= {"deletion-vectors.enabled": "true"} if self.vectors else {}
        options |= {"sequence.field": "updated_at"} if self.hard else {}
        keys = ("order_id", "line") if self.hard else ("order_id",)
        return Layout(columns=self.columns, primary_keys=keys, options={**options, **ENGINES[self.engine]})

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return HARD_COLUMNS if self.hard else COLUMNS

    @property
    def operation(self) -> Operation:
        return Operation.UPGRADE if self.vectors else Operation.OPTIMIZE

    @property
    def compaction(self) -> Compaction:
        """What Java is asked for: a lookup compaction, or a full one."""
        return Compaction(threads=2, full=not self.vectors)

    def __str__(self) -> str:
        rows = f"{self.base / 1e6:g} M base + {self.level0 / 1e6:g} M level-0 rows"
        kind = ", hard" if self.hard else ""
        kind += "" if self.vectors else ", no vectors, full compaction"
        return f"{self.engine}, {self.file_format}{kind}, {rows}, {self.buckets} buckets"


def build(java: PaimonJava, table: Path, size: Size) -> None:
    """Even keys below 2 x base on the top level, then level-0 commits of random keys, some of them deletes."""
    java.create(table, size.layout)
    java.write_random(table, RandomRows(rows=size.base, seed=1, sequential=True, step=2), timeout=TIMEOUT)
    java.compact(table, Compaction(full=True, threads=2), timeout=TIMEOUT)
    if size.hard:
        java.write_random(table, level0_rows(size, seed=100), timeout=TIMEOUT)
        java.compact(table, Compaction(threads=2), timeout=TIMEOUT)
    for commit in range(size.commits):
        java.write_random(table, level0_rows(size, seed=2 + commit), timeout=TIMEOUT)


def level0_rows(size: Size, *, seed: int) -> RandomRows:
    """The rows of one commit."""
    return RandomRows(
        rows=size.level0 // size.commits, seed=seed, keyspace=2 * size.base, delete_every=size.delete_every
    )


def nightkeep(table: Path, engine: Engine, size: Size, verify: str) -> RunDocument:
    settings = f"{{verify: {verify}, full: {str(not size.vectors).lower()}}}"
    policy = load("tables.yaml", text=f"version: 1\ndefaults: {settings}").effective(f"paimon:{table}")
    order = Order(size.operation, "bench", str(table.parent / "reports"))
    document = run_operation(policy, order, mapper=engine.mapper)
    if document.outcome is not Outcome.VERIFIED:
        raise SystemExit(f"bench: expected verified, found {document.outcome}: {document.reason}")
    return document


def measure(size: Size, folder: Path, *, verify: str) -> None:
    with PaimonJava(memory="10g", timeout=TIMEOUT, java_options=()) as java:
        build(java, folder / "made", size)
        for name in ("theirs", "theirs again", "ours", "ours again"):
            shutil.copytree(folder / "made", folder / name)
        theirs = java.compact(folder / "theirs", size.compaction, timeout=TIMEOUT)
        warm = java.compact(folder / "theirs again", size.compaction, timeout=TIMEOUT)
        wanted = shown(java, folder / "theirs")
    # As in a run: the table is opened first, so the session's warm workers know its format.
    open_table(Address("paimon", str(folder / "ours"), "ours"))
    started = time.perf_counter()
    with new_engine("local[2]", 2 << 30) as engine:
        engine.spark()
        session = time.perf_counter() - started
        ours = nightkeep(folder / "ours", engine, size, verify)
        again = nightkeep(folder / "ours again", engine, size, verify)
    with PaimonJava(memory="10g", timeout=TIMEOUT, java_options=()) as java:
        found = shown(java, folder / "ours")
    show(size, (theirs, warm), (ours, again), session=session, same=wanted == found)
    if size.file_format == "parquet":
        show_limit(folder, ours, [name for name, _ in size.columns])


def shown(java: PaimonJava, table: Path) -> tuple[int, str, int | None]:
    """What Java reads of a table: rows, their digest, and the changes that the last commit reports."""
    rows, snapshot = java.read_digest(table, timeout=TIMEOUT), java.snapshot(table) or {}
    return rows.rows, rows.digest, snapshot.get("changelogRecordCount")


def show(
    size: Size, java: tuple[Compacted, Compacted], runs: tuple[RunDocument, RunDocument], *, session: float, same: bool
) -> None:
    """Both sides' first run and the better of two; ratios compare like with like."""
    ours, seconds = runs[0], runs[0].metrics.seconds
    theirs = [found.prepare_seconds + (found.commit_seconds or 0) for found in java]
    mine = [found.metrics.seconds["rewrite"] + found.metrics.seconds["publish"] for found in runs]
    cpu = {stage: round(spent, 1) for stage, spent in dict(ours.metrics.extra["cpu_seconds"]).items()}  # type: ignore[call-overload]
    peak = (ours.metrics.peak_task_memory or 0) / 2**20
    share = None if ours.verification is None else ours.verification.share_of_rewrite
    print(f"\n{size}")
    spent = java[0].cpu_seconds
    print(f"  Paimon Java, 2 threads   {theirs[0]:7.2f} s first, {min(theirs):.2f} s best, {spent:.1f} CPU s")
    print(f"  Nightkeep rewrite+commit {mine[0]:7.2f} s first, {min(mine):.2f} s best")
    print(f"  Nightkeep CPU seconds    {cpu}")
    print(f"  ratio                    {theirs[0] / mine[0]:7.2f} x first, {min(theirs) / min(mine):.2f} x best")
    print(f"  plan {seconds['plan']:.2f} s, gate {seconds['verify']:.2f} s ({share:.1f} x the rewrite)")
    print(f"  session start            {session:7.2f} s, in no ratio")
    print(f"  peak task memory         {peak:7.0f} MiB, {ours.rows_proven:,} rows proven")
    print(f"  Java reads the same rows of both: {same}")


def show_limit(folder: Path, document: RunDocument, columns: Sequence[str]) -> None:
    before = plain_cost(files_with(folder / "made", columns), columns=columns)
    after = plain_cost(live_files(folder / "ours"), columns=columns)
    spent, cpu = document.metrics.seconds, dict(document.metrics.extra["cpu_seconds"])  # type: ignore[call-overload]
    print(f"  rewrite+commit           {before.of_rewrite(spent['rewrite'] + spent['publish'])}")
    print(f"  gate                     {before.of_gate(cpu['verify'], after)}")


def live_files(table: Path) -> list[Path]:
    opened = open_table(Address("paimon", str(table), "ours"))
    units: Any = opened.units(opened.snapshot())
    return [table / unit.path(file) for unit in units for file in unit.files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", help="millions of rows: base+level0; 4+0.4 and 20+2, or 20+4 by default")
    parser.add_argument("--verify", default="full")
    parser.add_argument("--engine", default="deduplicate", choices=ENGINES)
    parser.add_argument("--no-vectors", action="store_true", help="a full compaction of a table without vectors")
    parser.add_argument("--hard", action="store_true", help="keys with a UUID, 100 columns, 20 files of level 0")
    parser.add_argument("--format", default="parquet", choices=FORMATS)
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
    vectors = not arguments.no_vectors
    for text in arguments.sizes or (["4+0.4", "20+2"] if vectors else ["20+4"]):
        with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
            base, level0 = (int(float(part) * 1_000_000) for part in text.split("+"))
            size = Size(base, level0, arguments.engine, vectors, arguments.format, arguments.hard)
            measure(size, Path(folder), verify=arguments.verify)


if __name__ == "__main__":
    main()
