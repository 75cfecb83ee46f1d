"""Names of candidates and live files -> orphans, listed, read and compared in parts by Spark tasks.

A hash of its last component assigns a name to a part, so that a part has every name that can match its files. Within
a part, names are compared as without Spark. Rows are kept as checkpoints on the executors' disks. If one is lost, the
sweep fails: listing again after the live names were read would not be safe.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Final

import polars as pl
import pyarrow as pa
from pyspark import Broadcast, StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from nightkeep.errors import NightkeepError
from nightkeep.protocol.table_files import OpenFiles, OpenRoot, Reach, SomeSource, TableFiles
from nightkeep.retention.orphans.classify import NESTED, kinds, walk_folders
from nightkeep.retention.orphans.memory_sets import MemorySets, listed_files, live_files
from nightkeep.retention.orphans.sets import NO_FILES, ORPHANS, FileTotals, SetCounts, Witness, total
from nightkeep.spark.releases import apply_in_parts
from nightkeep.spark.session import outcome, pickled, returned

_FIELDS: Final = {
    "role": pl.String,
    "name": pl.String,
    "bytes": pl.Int64,
    "modified_ms": pl.Int64,
    "kind": pl.String,
    "place": pl.Int32,
    NESTED: pl.String,
    "needed": pl.Boolean,
    "answer": pl.Binary,
}
_ROWS: Final = (
    f"role string, name string, bytes long, modified_ms long, kind string, place int, {NESTED} string, "
    "needed boolean, answer binary"
)
_SETTLED: Final = "name string, bytes long, modified_ms long, kind string, answer binary"

_LISTED, _WANTED, _LIVE = "listed", "wanted", "live"
"""Roles of rows with a name: the store has it, an expiring root reaches it, a live root needs it."""
_NAMELESS, _SOURCE, _FAILED, _EVIDENCE = "nameless", "source", "failed", "evidence"
"""Roles of rows without a name: a count of names that are not valid text, a source still to be read, the failure of a
task, what a root states besides files."""

_EXPECTED: Final = (NightkeepError, OSError)
"""Failures of a task that the driver raises, without another try by Spark: the store's clients have tried again."""
_TASKS_PER_CORE: Final = 4
_NAMES_PER_PART: Final = 100_000
"""About 30 MB while they are compared."""


class SparkSets:
    """The Sets of a table with more files than one process should hold."""

    def __init__(self, spark: SparkSession, *, names_per_part: int = _NAMES_PER_PART) -> None:
        self._spark, self._names_per_part = spark, names_per_part
        self._cores = spark.sparkContext.defaultParallelism
        self._table_files: TableFiles | None = None
        self._rows: list[DataFrame] = []
        self._settled: DataFrame | None = None
        self._nested: set[tuple[int, str]] = set()
        self.close()

    def list(self, table_files: TableFiles) -> None:
        self._table_files, self._complete = table_files, True
        folders = _folders(table_files, self._cores * _TASKS_PER_CORE)
        rows, extra = self._each(partial(_listed, table_files), folders)
        self._nameless = sum((FileTotals(int(row["modified_ms"]), int(row["bytes"])) for row in extra), NO_FILES)
        signs = rows.where(F.col(NESTED).isNotNull()).select("place", NESTED).distinct().collect()
        self._nested = {(int(row["place"]), str(row[NESTED])) for row in signs}
        self._keep(rows)

    def reached(self, table: OpenFiles, roots: Sequence[OpenRoot]) -> None:
        self._table_files = table.table_files()
        named = partial(_named, role=_WANTED, expected=False)
        self._keep(*self._read(table, roots, named, seen=set(), witness=Witness()))

    def live(self, table: OpenFiles, roots: Sequence[OpenRoot], *, expected: bool) -> None:
        named = partial(_named, role=_LIVE, expected=expected)
        self._keep(*self._read(table, roots, named, seen=self._sources, witness=self._witness))

    def settle(self, *, cutoff_ms: int | None, named: tuple[str, ...] = ()) -> SetCounts:
        rows = reduce(DataFrame.unionByName, self._rows)
        doubted = self._witness.doubted
        question = _Question(self._of, frozenset(self._nested), self._complete, cutoff_ms, named, doubted)
        parts = max(self._cores, -(-self._names // self._names_per_part))
        part = F.pmod(F.xxhash64(F.substring_index("name", "/", -1)), F.lit(parts))
        names = rows.where(F.col("role").isin(_LISTED, _WANTED, _LIVE)).withColumn("part", part)
        compared = apply_in_parts(names.repartition(parts, "part"), "part", _comparison(question), _SETTLED)
        self._drop_settled()
        self._settled = _checkpoint(compared)
        counts = self._settled.where(F.col("answer").isNotNull()).select("answer").collect()
        counted = total([returned(bytes(row["answer"])) for row in counts])
        listed, unknown = counted.listed + self._nameless, counted.unknown + self._nameless
        return replace(counted, listed=listed, unknown=unknown, unproven=self._witness.unproven)

    def orphans(self) -> Iterator[pa.RecordBatch]:
        if self._settled is None:
            return
        orphans = self._settled.where(F.col("answer").isNull()).select(*ORPHANS.names).orderBy("name")
        for row in orphans.mapInArrow(_streams, "rows binary").toLocalIterator(prefetchPartitions=True):
            for batch in pa.ipc.open_stream(bytes(row["rows"])):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=ORPHANS)

    def close(self) -> None:
        for rows in self._rows:
            rows.unpersist()
        self._drop_settled()
        self._table_files = None
        self._complete = False
        self._nested = set()
        self._nameless = NO_FILES
        self._rows = []
        self._names = 0
        self._sources: set[SomeSource] = set()
        self._witness = Witness()

    @property
    def _of(self) -> TableFiles:
        if self._table_files is None:
            raise ValueError("no candidates yet, expected list() or reached() first")
        return self._table_files

    def _read(
        self,
        table: OpenFiles,
        roots: Sequence[OpenRoot],
        named: Callable[[pl.DataFrame], pl.DataFrame],
        *,
        seen: set[SomeSource],
        witness: Witness,
    ) -> tuple[DataFrame, DataFrame]:
        """Rows of the roots, and rows of their sources. Skips the sources in `seen`, and adds the others to it."""
        reached, extra = self._each(partial(_reached, table, named), roots)
        for row in extra:
            if row["role"] == _EVIDENCE:
                witness.add(pickle.loads(bytes(row["answer"])))
        fresh = {pickle.loads(bytes(row["answer"])) for row in extra if row["role"] == _SOURCE} - seen
        seen |= fresh
        return reached, self._each(partial(_lived, table, named), [*fresh])[0]

    def _each(
        self, work: Callable[[Any], Iterator[pl.DataFrame]], items: Sequence[object]
    ) -> tuple[DataFrame, Sequence[Row]]:
        """Run `work` on each item in its own task; rows with a name, and rows without. Raises what a task raised."""
        sent = self._spark.sparkContext.broadcast((pickled(work), [pickled(item) for item in items]))
        tasks = max(1, min(len(items), self._cores * _TASKS_PER_CORE))
        try:
            rows = _checkpoint(self._spark.range(0, len(items), 1, tasks).mapInArrow(_rows(sent), _ROWS))
        finally:
            sent.destroy()
        nameless = F.col("role").isin(_NAMELESS, _SOURCE, _FAILED, _EVIDENCE)
        extra = rows.where(nameless).select("role", "bytes", "modified_ms", "answer").distinct().collect()
        for row in extra:
            if row["role"] == _FAILED:
                returned(bytes(row["answer"]))
        return rows, extra

    def _keep(self, *rows: DataFrame) -> None:
        self._rows += rows
        self._names += sum(frame.count() for frame in rows)

    def _drop_settled(self) -> None:
        if self._settled is not None:
            self._settled.unpersist()
        self._settled = None


@dataclass(frozen=True, slots=True)
class _Question:
    """The request to every part. `nested` are folders of other tables, as (place, folder)."""

    table_files: TableFiles
    nested: frozenset[tuple[int, str]]
    complete: bool
    cutoff_ms: int | None
    named: tuple[str, ...]
    doubted: frozenset[str]


def _checkpoint(rows: DataFrame) -> DataFrame:
    """Compute the rows now, and never again."""
    return rows.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)


def _folders(table_files: TableFiles, enough: int) -> tuple[tuple[str, bool], ...]:
    """Folders to list in parallel, each with whether to include its subfolders. Every file is in exactly one."""
    deep, shallow = deque(walk_folders(table_files)), deque[str]()
    for _ in range(enough):
        if not deep or len(deep) >= enough:
            break
        shallow.append(deep.popleft())
        deep.extend(table_files.storage.folders(shallow[-1]))
    return (*((folder, False) for folder in shallow), *((folder, True) for folder in deep))


def _listed(table_files: TableFiles, folder: tuple[str, bool]) -> Iterator[pl.DataFrame]:
    name, deep = folder
    for number, batch in enumerate(table_files.storage.walk(name) if deep else (table_files.storage.list(name),)):
        files, nameless = listed_files(batch, table_files)
        yield files.with_columns(pl.lit(_LISTED).alias("role"))
        if nameless.files:
            # `modified_ms` holds their number. `answer` makes rows of different folders differ.
            yield pl.DataFrame(
                {
                    "role": [_NAMELESS],
                    "bytes": [nameless.bytes],
                    "modified_ms": [nameless.files],
                    "answer": [pickled((folder, number))],
                }
            )


def _reached(table: OpenFiles, named: Callable[[pl.DataFrame], pl.DataFrame], root: OpenRoot) -> Iterator[pl.DataFrame]:
    reach = table.reach(root)
    yield named(live_files(reach.files))
    sources = [pickled(source) for source in reach.sources]
    yield pl.DataFrame({"answer": sources}, schema={"answer": pl.Binary}).with_columns(pl.lit(_SOURCE).alias("role"))
    if reach.unproven or reach.contents:
        evidence: Reach[SomeSource] = Reach(reach.files.slice(0, 0), unproven=reach.unproven, contents=reach.contents)
        yield pl.DataFrame({"role": [_EVIDENCE], "answer": [pickled(evidence)]})


def _lived(
    table: OpenFiles, named: Callable[[pl.DataFrame], pl.DataFrame], source: SomeSource
) -> Iterator[pl.DataFrame]:
    for batch in table.live(source):
        yield named(live_files(batch))


def _named(files: pl.DataFrame, *, role: str, expected: bool) -> pl.DataFrame:
    return files.with_columns(pl.col("needed") & pl.lit(expected), pl.lit(role).alias("role"))


def _rows(sent: Broadcast[tuple[bytes, list[bytes]]]) -> Any:
    """The function that Spark runs on item numbers: returns the rows of the items, or their failures."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work, items = sent.value
        for number in (number.as_py() for batch in batches for number in batch.column("id")):
            try:
                for frame in pickle.loads(work)(pickle.loads(items[number])):
                    yield from _wired(frame)
            except _EXPECTED as failure:
                yield from _wired(pl.DataFrame({"role": [_FAILED], "answer": [_raising(failure)]}))

    return run


def _wired(frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    """The frame with all columns of a row, in the order of _FIELDS; those it lacks are null."""
    missing = [pl.lit(None, kind).alias(name) for name, kind in _FIELDS.items() if name not in frame.columns]
    full = frame.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in _FIELDS.items())
    yield from full.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def _raising(failure: Exception) -> bytes:
    def fail() -> None:
        raise failure

    return outcome(fail, expected=_EXPECTED)


def _comparison(question: _Question) -> Any:
    """The function that Spark runs on the rows of a part: returns its orphans, and its counts in one more row."""
    asked = pickled(question)

    def run(rows: pa.Table) -> pa.Table:
        question = pickle.loads(asked)
        sets = _part(question, pl.DataFrame(pl.from_arrow(rows)))
        # `settle` looks up files in the store: those that were reached, and those that are needed but not listed.
        answer = outcome(lambda: sets.settle(cutoff_ms=question.cutoff_ms, named=question.named), expected=_EXPECTED)
        orphans = pa.Table.from_batches(sets.orphans(), ORPHANS)
        columns = [pa.chunked_array([*column.chunks, pa.nulls(1, column.type)]) for column in orphans.columns]
        return pa.table([*columns, pa.array([None] * len(orphans) + [answer], pa.binary())], [*ORPHANS.names, "answer"])

    return run


def _part(question: _Question, rows: pl.DataFrame) -> MemorySets:
    live = pl.col("role") == _LIVE
    listed = rows.filter(pl.col("role") == _LISTED).with_columns(
        pl.col("kind").cast(kinds(question.table_files)), pl.col("place").cast(pl.UInt16)
    )
    return MemorySets.of_part(
        question.table_files,
        listed=listed.select("name", "bytes", "modified_ms", "kind", "place"),
        wanted=rows.filter(pl.col("role") == _WANTED).select("name", "bytes", "needed"),
        live=rows.filter(live).select("name", "bytes", "needed"),
        nested=question.nested,
        complete=question.complete,
        doubted=question.doubted,
    )


def _streams(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as one binary value, so that the driver receives columns and not rows."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["rows"])
