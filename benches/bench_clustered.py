"""Thirty nights of appends to a Delta table with clustering columns: delta-spark's OPTIMIZE against Nightkeep.

Run by `make bench-clustered`. Both sides get the same appends by delta-spark, and the same target size. Printed are the
bytes that optimizing wrote per byte that came in, and the share of the table's bytes in files that range queries of
each clustering column open, by the files' statistics. Rows of both tables are compared at the end, as multisets.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tests.drivers.delta_spark import DeltaSpark, Writing, named

from nightkeep.admission.order import Order
from nightkeep.formats import open_table
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Address, Operation, Outcome
from nightkeep.policy import load
from nightkeep.protocol import TableLayout
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

COLUMNS = ("device", "ts")
TARGET_BYTES = 64 << 10
ROW_BYTES = 40
"""About what a row takes in a file."""
QUERIES = 100
SHARE = 0.01
SHOWN = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30)
MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Case:
    """Nights of `files` files near the target each. `keys`: how devices are drawn. `shared`: delta-spark also clusters
    our side in the first half of the nights, so that its files are left to it."""

    name: str
    files: float
    keys: str
    shared: bool = False


CASES = (
    Case("uniform keys, 24 files a night", 24, "uniform"),
    Case("skewed keys, 24 files a night", 24, "skewed"),
    Case("uniform keys, a third of a file a night", 1 / 3, "uniform"),
    Case("skewed keys, a third of a file a night", 1 / 3, "skewed"),
    Case("uniform keys, 2 files a night, the first half by delta-spark", 2, "uniform", shared=True),
)


@dataclass(slots=True)
class Side:
    """A table, and the share that each night's queries read."""

    table: Path
    reads: list[float]

    def sizes(self) -> tuple[int, int]:
        """Bytes that appends brought and that optimizing wrote, by the log."""
        came, wrote = 0, 0
        for actions in _commits(self.table):
            operation = next((each["commitInfo"]["operation"] for each in actions if "commitInfo" in each), "")
            size = sum(each["add"]["size"] for each in actions if "add" in each)
            came, wrote = (came, wrote + size) if operation == "OPTIMIZE" else (came + size, wrote)
        return came, wrote


def rows_of(case: Case, night: int) -> pa.Table:
    """Devices are uniform or follow a Zipf law; times are those of the day, some of which are late."""
    random = np.random.default_rng(night)
    count = max(100, int(case.files * TARGET_BYTES / ROW_BYTES))
    uniform = random.integers(0, 1 << 30, count)
    devices = uniform if case.keys == "uniform" else random.zipf(1.3, count) % 100_000 * 10_000
    late = np.where(random.random(count) < 0.1, random.integers(0, 5, count), 0)
    times = (night - late) * 86_400 + random.integers(0, 86_400, count)
    payload = random.integers(0, 1 << 62, (2, count))
    return pa.table({"device": devices.astype(np.int64), "ts": times, "a": payload[0], "b": payload[1]})


def nights(spark: DeltaSpark, folder: Path, case: Case, count: int) -> tuple[Side, Side]:
    """Both sides after all nights: delta-spark's, and ours."""
    theirs, ours = (Side(folder / name, []) for name in ("theirs", "ours"))
    for side in (theirs, ours):
        spark.sql(
            f"CREATE TABLE {named(side.table)} (device BIGINT, ts BIGINT, a BIGINT, b BIGINT) USING delta "
            f"CLUSTER BY ({', '.join(COLUMNS)})"
        )
    every: list[pa.Table] = []
    for night in range(1, count + 1):
        every.append(rows_of(case, night))
        for side in (theirs, ours):
            spark.write(side.table, every[-1], Writing(files=max(1, round(case.files))))
        spark.sql(f"OPTIMIZE {named(theirs.table)}")
        if case.shared and night <= count // 2:
            spark.sql(f"OPTIMIZE {named(ours.table)}")
        else:
            optimize(ours.table, night)
        queries = {name: _queries([part.column(name).to_numpy() for part in every]) for name in COLUMNS}
        for side in (theirs, ours):
            side.reads.append(read_share(layout_of(side.table), queries))
        if night in SHOWN or night == count:
            print(f"  {night:5}  {_figures(theirs)}  {_figures(ours)}", flush=True)
    return theirs, ours


def optimize(table: Path, night: int) -> None:
    text = f"version: 1\ndefaults: {{target_size: {TARGET_BYTES}B}}\n"
    order = Order(Operation.OPTIMIZE, f"night-{night}", str(table.parent / "reports"))
    document = run_operation(load("tables.yaml", text=text).effective(f"delta:{table}"), order, mapper=lambda: inline)
    assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason


def layout_of(table: Path) -> TableLayout:
    opened = open_table(Address("delta", str(table), "t"))
    assert opened.layout is not None
    return opened.layout.read(opened.snapshot())


def same_rows(spark: DeltaSpark, one: Path, other: Path) -> bool:
    """Whether both tables show the same multiset of rows, by delta-spark."""
    found = spark.sql(
        f"(SELECT * FROM {named(one)} EXCEPT ALL SELECT * FROM {named(other)}) UNION ALL "
        f"(SELECT * FROM {named(other)} EXCEPT ALL SELECT * FROM {named(one)}) LIMIT 1"
    )
    return not found.rows


def read_share(layout: TableLayout, queries: Mapping[str, Sequence[tuple[int, int]]]) -> float:
    """The mean share of bytes in files that a query opens."""
    shares = [
        layout.bytes[_opened(layout.bounds[name], low, high)].sum() / layout.bytes.sum()
        for name, ranges in queries.items()
        for low, high in ranges
    ]
    return float(np.mean(shares))


def _opened(files: FileBounds, low: int, high: int) -> npt.NDArray[np.bool_]:
    lows, highs = (np.asarray(side.to_numpy(zero_copy_only=False)) for side in (files.lows, files.highs))
    opened: npt.NDArray[np.bool_] = (lows <= high) & (highs >= low)
    return opened


def _queries(parts: Sequence[Longs]) -> list[tuple[int, int]]:
    """Ranges of 1 % of the rows, spread evenly over them."""
    ordered = np.sort(np.concatenate(parts))
    starts = np.linspace(0, (1 - SHARE) * (len(ordered) - 1), QUERIES).astype(np.int64)
    return [(int(ordered[at]), int(ordered[int(at + SHARE * (len(ordered) - 1))])) for at in starts]


def _figures(side: Side) -> str:
    came, wrote = side.sizes()
    files = len(layout_of(side.table).bytes)
    return f"{wrote / came:9.2f} x {side.reads[-1]:7.1%} {files:6}"


def _commits(table: Path) -> Iterator[list[dict[str, Any]]]:
    for path in sorted((table / "_delta_log").glob("[0-9]*.json")):
        yield [json.loads(line) for line in path.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)), help="numbers of the cases, from 0")
    options = parser.parse_args()
    with DeltaSpark(timeout=1800.0, conf={MAX_FILE_SIZE: str(TARGET_BYTES)}) as spark:
        for case in (CASES[number] for number in options.cases):
            print(f"{case.name}: bytes written per byte that came in, share that queries read, files")
            print("  night  delta-spark OPTIMIZE        Nightkeep")
            with tempfile.TemporaryDirectory() as folder:
                theirs, ours = nights(spark, Path(folder), case, options.nights)
                are_same = same_rows(spark, theirs.table, ours.table)
            means = [f"{np.mean(side.reads):.1%}" for side in (theirs, ours)]
            print(f"  mean share read over all nights: {means[0]}, {means[1]}; the same rows: {are_same}\n", flush=True)


if __name__ == "__main__":
    main()
