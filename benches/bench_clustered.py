"""Thirty nights of appends to a Delta table with clustering columns: delta-spark's OPTIMIZE against Nightkeep.

Run by `make bench-clustered`. Both sides get the same appends, and the same target size. Tables are
scaled down by 1,024: files of 128 KiB stand for files of 128 MiB, with row groups in proportion and about 64 pages in a
file, of both writers. Footers, indexes and headers of pages are not scaled: they count in the bytes written.

For each night are printed, of each side: the bytes that optimizing wrote per byte that came in; the share of the table
that range queries of each clustering column read, in row groups that statistics do not exclude; the share in files that
they open; files; CPU seconds, ours with the gate at `touched`. In some nights Spark runs a part of the queries on both
tables, and the share that it read of files, without their footers, is printed. Rows of both tables are compared at the
end, as multisets. With `--every N`, delta-spark optimizes in the first night and in each Nth only: it clusters the
whole table again each time, so that what queries read then does not depend on the nights between.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from tests.drivers.delta_spark import DeltaSpark, named
from tests.support.table_storage import storage_of

from nightkeep.admission.order import Order
from nightkeep.clustering import sizing
from nightkeep.clustering.tuning import GROUPS_PER_FILE
from nightkeep.encodings.parquet_settings import DATA_SETTINGS
from nightkeep.formats.delta.data.write import DeltaFileWriter
from nightkeep.formats.delta.format import open_table
from nightkeep.formats.delta.metadata.naming import DeltaNaming
from nightkeep.model import Address, Operation, Outcome, Run
from nightkeep.policy import load
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

COLUMNS = ("device", "ts")
TARGET_BYTES = 128 << 10
ROW_BYTES = 30
"""About what a row takes in a file."""
QUERIES = 100
SHARE = 0.01
SPARK_NIGHTS = (1, 20, 30)
SPARK_QUERIES = 4
"""Queries of each column that Spark runs."""
PAGES = 64
"""Of a file, about: a file of 128 MiB with such rows has more than 200 of 20,000 rows each."""
PAGE_ROWS = TARGET_BYTES // ROW_BYTES // PAGES
CONF = {
    "spark.databricks.delta.optimize.maxFileSize": str(TARGET_BYTES),
    "spark.hadoop.parquet.block.size": str(TARGET_BYTES),
    "spark.hadoop.parquet.page.row.count.limit": str(PAGE_ROWS),
    # In proportion, what is read ahead is nothing.
    "spark.hadoop.io.file.buffer.size": "1024",
    "spark.buffer.size": "1024",
    # Else no counter has what Spark reads.
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
}

Longs = npt.NDArray[np.int64]
Ranges = Mapping[str, Sequence[tuple[int, int]]]


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


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The row groups of one file: their bytes, and the bounds of each column, one row a row group; and its footer."""

    bytes: Longs
    bounds: Mapping[str, Longs]
    footer_bytes: int

    @property
    def whole(self) -> Groups:
        """The file as if it were one row group."""
        sides = {name: np.array([[held[:, 0].min(), held[:, 1].max()]]) for name, held in self.bounds.items()}
        return Groups(self.bytes.sum(keepdims=True), sides, self.footer_bytes)

    def meets(self, name: str, low: int, high: int) -> npt.NDArray[np.bool_]:
        """The row groups that statistics do not exclude for a range."""
        held = self.bounds[name]
        found: npt.NDArray[np.bool_] = (held[:, 0] <= high) & (held[:, 1] >= low)
        return found

    @classmethod
    def of(cls, path: Path) -> Groups:
        footer = pq.read_metadata(path)
        places = {footer.schema.column(at).name: at for at in range(footer.num_columns)}
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        sizes = [sum(group.column(at).total_compressed_size for at in range(footer.num_columns)) for group in groups]
        bounds = {name: _bounds([group.column(places[name]) for group in groups]) for name in COLUMNS}
        return cls(np.array(sizes), bounds, footer.serialized_size + 8)


@dataclass(slots=True)
class Side:
    """A table; what each night's queries read, as shares of the table: in row groups, and in whole files; and the CPU
    seconds of optimizing."""

    table: Path
    reads: list[float] = field(default_factory=list)
    opens: list[float] = field(default_factory=list)
    cpu: float = 0.0
    known: dict[str, Groups] = field(default_factory=dict)

    def sizes(self) -> tuple[int, int]:
        """Bytes that appends brought and that optimizing wrote, by the log."""
        came, wrote = 0, 0
        for actions in _commits(self.table):
            operation = next((each["commitInfo"]["operation"] for each in actions if "commitInfo" in each), "")
            size = sum(each["add"]["size"] for each in actions if "add" in each)
            came, wrote = (came, wrote + size) if operation == "OPTIMIZE" else (came + size, wrote)
        return came, wrote

    def append(self, rows: pa.Table, *, files: int) -> None:
        """One commit of `files` files, which carry no name of who clusters them."""
        opened = open_table(Address("delta", str(self.table), "t"))
        before, storage = opened.snapshot(), storage_of(opened)
        naming = DeltaNaming(Run("", "f" * 16, uuid.uuid4().hex, 0))
        writer = DeltaFileWriter(storage, before.schema, naming, {}, now_ms=0)
        written = writer.write([rows], rows_per_file=-(-rows.num_rows // files))
        actions = [{"commitInfo": {"operation": "WRITE", "timestamp": 0}}]
        lines = [*actions, *({"add": {**file.add, "dataChange": True}} for file in written)]
        path = self.table / "_delta_log" / f"{before.version + 1:020}.json"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def files(self) -> list[Groups]:
        """The files of the latest version, each of which is read once."""
        names = [
            file.name
            for unit in open_table(Address("delta", str(self.table), "t")).snapshot().units
            for file in unit.files
        ]
        self.known = {name: self.known.get(name) or Groups.of(self.table / name) for name in names}
        return list(self.known.values())

    def query(self, ranges: Ranges) -> None:
        files = self.files()
        self.reads.append(read_share(files, ranges))
        self.opens.append(read_share([each.whole for each in files], ranges))

    def figures(self) -> str:
        came, wrote = self.sizes()
        files = len(self.known)
        return f"{wrote / came:6.2f} x {self.reads[-1]:6.1%} {self.opens[-1]:6.1%} {files:5} {self.cpu:6.0f} s"


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


def nights(spark: DeltaSpark, folder: Path, case: Case, count: int, *, spark_every: int) -> tuple[Side, Side]:
    """Both sides after all nights: delta-spark's, and ours."""
    theirs, ours = (Side(folder / name) for name in ("theirs", "ours"))
    for side in (theirs, ours):
        spark.sql(
            f"CREATE TABLE {named(side.table)} (device BIGINT, ts BIGINT, a BIGINT, b BIGINT) USING delta "
            f"CLUSTER BY ({', '.join(COLUMNS)})"
        )
    every: list[pa.Table] = []
    for night in range(1, count + 1):
        every.append(rows_of(case, night))
        for side in (theirs, ours):
            side.append(every[-1], files=max(1, round(case.files)))
        is_theirs = night == 1 or night % spark_every == 0
        if is_theirs:
            optimize_by_spark(spark, theirs)
        if case.shared and night <= count // 2:
            optimize_by_spark(spark, ours)
        else:
            optimize(ours, night)
        queries = {name: _queries([part.column(name).to_numpy() for part in every]) for name in COLUMNS}
        for side in (theirs, ours) if is_theirs else (ours,):
            side.query(queries)
        print(f"  {night:5}  {theirs.figures() if is_theirs else '':36}  {ours.figures()}", flush=True)
        if night in SPARK_NIGHTS:
            print(f"         Spark read {_read_by_spark(spark, (theirs, ours), queries)}", flush=True)
    return theirs, ours


def optimize_by_spark(spark: DeltaSpark, side: Side) -> None:
    before = spark.cpu_seconds()
    spark.sql(f"OPTIMIZE {named(side.table)}")
    side.cpu += spark.cpu_seconds() - before


def optimize(side: Side, night: int) -> None:
    text = f"version: 1\ndefaults: {{target_size: {TARGET_BYTES}B, verify: touched}}\n"
    order = Order(Operation.OPTIMIZE, f"night-{night}", str(side.table.parent / "reports"))
    before = time.process_time()
    document = run_operation(
        load("tables.yaml", text=text).effective(f"delta:{side.table}"), order, mapper=lambda: inline
    )
    side.cpu += time.process_time() - before
    assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason


def same_rows(spark: DeltaSpark, one: Path, other: Path) -> bool:
    """Whether both tables show the same multiset of rows, by delta-spark."""
    found = spark.sql(
        f"(SELECT * FROM {named(one)} EXCEPT ALL SELECT * FROM {named(other)}) UNION ALL "
        f"(SELECT * FROM {named(other)} EXCEPT ALL SELECT * FROM {named(one)}) LIMIT 1"
    )
    return not found.rows


def read_share(files: Sequence[Groups], ranges: Ranges) -> float:
    """The mean share of bytes in row groups that a query reads."""
    sizes = np.concatenate([each.bytes for each in files])
    joined = Groups(sizes, {name: np.concatenate([each.bounds[name] for each in files]) for name in ranges}, 0)
    found = [sizes[joined.meets(name, *span)].sum() for name, wanted in ranges.items() for span in wanted]
    return float(np.mean(found) / sizes.sum())


def _bounds(chunks: Sequence[pq.ColumnChunkMetaData]) -> Longs:
    stats = [chunk.statistics for chunk in chunks]
    return np.array([(each.min, each.max) for each in stats if each is not None])


def _read_by_spark(spark: DeltaSpark, sides: Sequence[Side], queries: Ranges) -> str:
    chosen = [
        (name, *span)
        for name, ranges in queries.items()
        for span in ranges[:: len(ranges) // SPARK_QUERIES][:SPARK_QUERIES]
    ]
    shares = []
    for side in sides:
        files = side.files()
        read = spark.bytes_read(side.table, [f"{name} BETWEEN {low} AND {high}" for name, low, high in chosen])
        footers = [sum(file.footer_bytes for file in files if file.meets(*query).any()) for query in chosen]
        size = sum(int(file.bytes.sum()) for file in files)
        shares.append((sum(read) - sum(footers)) / len(chosen) / size)
    return " and ".join(f"{share:.1%}" for share in shares) + f" of the table for {len(chosen)} queries, on average"


def _queries(parts: Sequence[Longs]) -> list[tuple[int, int]]:
    """Ranges of 1 % of the rows, spread evenly over them."""
    ordered = np.sort(np.concatenate(parts))
    starts = np.linspace(0, (1 - SHARE) * (len(ordered) - 1), QUERIES).astype(np.int64)
    return [(int(ordered[at]), int(ordered[int(at + SHARE * (len(ordered) - 1))])) for at in starts]


def _commits(table: Path) -> Iterator[list[dict[str, Any]]]:
    for path in sorted((table / "_delta_log").glob("[0-9]*.json")):
        yield [json.loads(line) for line in path.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)), help="numbers of the cases, from 0")
    parser.add_argument("--every", type=int, default=1, help="delta-spark optimizes in each Nth night")
    options = parser.parse_args()
    pages = patch.dict(cast(dict[str, Any], DATA_SETTINGS), max_rows_per_page=PAGE_ROWS)
    groups = patch.object(sizing, "LEAST_GROUP_BYTES", TARGET_BYTES // GROUPS_PER_FILE)
    with pages, groups, DeltaSpark(timeout=1800.0, conf=CONF) as spark:
        for case in (CASES[number] for number in options.cases):
            print(f"{case.name}: written per byte that came, share read, share in files opened, files, CPU so far")
            print("  night  delta-spark OPTIMIZE                    Nightkeep")
            with tempfile.TemporaryDirectory() as folder:
                theirs, ours = nights(spark, Path(folder), case, options.nights, spark_every=options.every)
                are_same = same_rows(spark, theirs.table, ours.table)
            means = " and ".join(f"{np.mean(side.reads):.1%}" for side in (theirs, ours))
            opened = " and ".join(f"{np.mean(side.opens):.1%}" for side in (theirs, ours))
            print(f"  over all nights: read {means}, in files opened {opened}; the same rows: {are_same}\n", flush=True)


if __name__ == "__main__":
    main()
