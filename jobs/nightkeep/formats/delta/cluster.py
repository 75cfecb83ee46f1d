"""One task: files of a partition -> the same rows along a curve. Held in memory where they fit, else in buckets.

Memory stays within the task's budget: rows are held until its share is reached, and only then known not to fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from nightkeep.formats.delta.cluster_columns import leaf_of
from nightkeep.formats.delta.edits import Intent
from nightkeep.formats.delta.even_files import in_memory, probed, write_even
from nightkeep.formats.delta.live_rows import live_count, live_rows, sampled
from nightkeep.formats.delta.metadata import DeltaUnit
from nightkeep.formats.delta.naming import Naming
from nightkeep.formats.delta.ranges import Paths, Ranges, buckets_of, in_order, splitters
from nightkeep.formats.delta.sizing import is_gone, total_live_bytes
from nightkeep.formats.delta.spill import Buckets, spilled
from nightkeep.formats.delta.tuning import (
    BASE_BYTES,
    BUCKET_FILL,
    KEY_BYTES,
    LEAST_BYTES,
    MOST_BUCKETS,
    MOST_BYTES,
    PROBE_ROWS,
    SAMPLE_ROWS,
    WRITE_BYTES,
)  # fmt: skip
from nightkeep.formats.delta.write import FileWriter, WrittenFile
from nightkeep.kernels.arrow_buffers import Words
from nightkeep.model import Clustering, Run
from nightkeep.storage import Storage

KEY = "nightkeep\0key"
"""The column of a row's place, on its way; no name of a table's column, as Delta allows no control characters."""


@dataclass(frozen=True, slots=True)
class ClusterTask:
    """The unit's files become a cube, those without rows are only removed. `clustering` has the table's own names."""

    unit: DeltaUnit
    clustering: Clustering
    target_bytes: int
    task_bytes: int
    intent: Intent

    @property
    def paths(self) -> Paths:
        return tuple(leaf_of(self.unit.schema, name).path for name in self.clustering.columns)

    @property
    def rows_bytes(self) -> int:
        """Arrow memory for rows: half of what is left, as columns are copied into one chunk, one at a time."""
        left = (self.task_bytes - BASE_BYTES - WRITE_BYTES) // 2
        return min(MOST_BYTES, max(LEAST_BYTES, left))


def cluster(storage: Storage, task: ClusterTask, run: Run, *, tags: Mapping[str, str]) -> list[WrittenFile]:
    """Write the rows of the task's files in order, in files near the target."""
    unit = task.unit
    writer = writer_of(storage, unit, run, tags=tags)
    source = live_rows(storage, unit, unit.files, writer.columns)
    held = _held(source, task.rows_bytes)
    if sum(map(_weight, held)) <= task.rows_bytes:
        rows = sum(table.num_rows for table in held)
        return _written(task, writer, _sorted(task, held), rows=rows, run=run) if rows else []
    return _through_buckets(storage, task, writer, held, source, run=run)


def writer_of(storage: Storage, unit: DeltaUnit, run: Run, *, tags: Mapping[str, str]) -> FileWriter:
    naming = Naming(run, unit.key)
    return FileWriter(storage, unit.schema, naming, unit.stored_partition, now_ms=run.now_ms, tags=tags)


def ordered_bucket(ranges: Ranges, batches: Sequence[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of batches with their keys, in order, without the keys."""
    rows = one_chunk([pa.Table.from_batches(batches)])
    keys = rows.column(KEY).to_numpy()
    rows = rows.drop_columns([KEY])
    yield from in_order(rows, ranges.order(rows, keys))


def keyed(rows: pa.Table, keys: Words) -> pa.Table:
    return rows.append_column(KEY, pa.array(keys))


def one_chunk(tables: list[pa.Table]) -> pa.Table:
    """The tables as one of a chunk per column. Empties the list: no more than one column is held twice."""
    rows = pa.concat_tables(tables)
    tables.clear()
    names, columns = rows.column_names, []
    for _ in names:
        columns.append(_one_chunk(rows.column(0)))
        rows = rows.remove_column(0)
    return pa.Table.from_arrays(columns, names)


def _one_chunk(column: pa.ChunkedArray) -> pa.ChunkedArray:  # type: ignore[type-arg]
    return column if column.num_chunks == 1 else pa.chunked_array([column.combine_chunks()], column.type)


def _weight(rows: pa.Table) -> int:
    return rows.nbytes + KEY_BYTES * rows.num_rows


def _held(source: Iterator[pa.Table], most: int) -> list[pa.Table]:
    """Tables until they weigh more than `most`, or there are no more."""
    held: list[pa.Table] = []
    size = 0
    for rows in source:
        held.append(rows)
        size += _weight(rows)
        if size > most:
            break
    return held


def _sorted(task: ClusterTask, held: list[pa.Table]) -> Iterator[pa.Table]:
    rows = one_chunk(held)
    chosen = np.random.default_rng(0).choice(rows.num_rows, min(SAMPLE_ROWS, rows.num_rows), replace=False)
    tops = list(dict.fromkeys(path[0] for path in task.paths))
    sample = rows.select(tops).take(np.sort(chosen))
    ranges = Ranges.of(task.clustering, task.paths, [(sample, rows.num_rows)])
    yield from in_order(rows, ranges.order(rows, ranges.keys(rows, 0)))


def _written(
    task: ClusterTask, writer: FileWriter, chunks: Iterator[pa.Table], *, rows: int, run: Run
) -> list[WrittenFile]:
    files = [file for file in task.unit.files if not is_gone(file)]
    row_bytes = total_live_bytes(files) / rows
    if rows < PROBE_ROWS * len(files):
        row_bytes, chunks = probed(writer_of(in_memory(), task.unit, run, tags={}), chunks)
    return write_even(writer, chunks, rows=rows, row_bytes=row_bytes, target_bytes=task.target_bytes)


def _through_buckets(
    storage: Storage, task: ClusterTask, writer: FileWriter, held: list[pa.Table], rest: Iterator[pa.Table], *, run: Run
) -> list[WrittenFile]:
    row_bytes = sum(map(_weight, held)) / sum(table.num_rows for table in held)
    rows = live_count(storage, task.unit, task.unit.files)
    count = min(MOST_BUCKETS, int(rows * row_bytes / (task.rows_bytes * BUCKET_FILL)) + 1)
    ranges, between = _surveyed(storage, task, rows, count)
    with spilled(count) as buckets:
        for table in chain(_emptied(held), rest):
            keys = ranges.keys(table, buckets.rows)
            buckets.add(keyed(table, keys), buckets_of(keys, between, buckets.rows))
        buckets.close()
        chunks = (chunk for number in range(count) for chunk in _bucket(task, ranges, buckets, number))
        return _written(task, writer, chunks, rows=buckets.rows, run=run)


def _surveyed(storage: Storage, task: ClusterTask, rows: int, count: int) -> tuple[Ranges, Words]:
    tops = list(dict.fromkeys(path[0] for path in task.paths))
    sample = sampled(storage, task.unit, task.unit.files, tops, SAMPLE_ROWS / max(1, rows))
    ranges = Ranges.of(task.clustering, task.paths, [(sample, rows)])
    return ranges, splitters(ranges.keys(sample, 0), count)


def _emptied(tables: list[pa.Table]) -> Iterator[pa.Table]:
    """The tables in their order; each is let go when the next is asked for."""
    tables.reverse()
    while tables:
        yield tables.pop()


def _bucket(task: ClusterTask, ranges: Ranges, buckets: Buckets, number: int) -> Iterator[pa.Table]:
    """A bucket in order; one that turned out too large in parts of its order, each read by itself."""
    parts = buckets.bytes[number] // task.rows_bytes + 1
    if parts == 1:
        batches = list(buckets.batches(number))
        if batches:
            yield from ordered_bucket(ranges, batches)
        return
    place = _places(buckets, number)
    for part in range(parts):
        yield from ordered_bucket(ranges, list(_of_part(buckets, number, place * parts // len(place) == part)))


def _places(buckets: Buckets, number: int) -> np.typing.NDArray[np.int64]:
    """Where in the bucket's order each of its rows is."""
    keys = np.concatenate([batch.column(KEY).to_numpy() for batch in buckets.batches(number)])
    place = np.empty(len(keys), np.int64)
    place[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    return place


def _of_part(buckets: Buckets, number: int, wanted: np.typing.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in buckets.batches(number):
        yield batch.filter(pa.array(wanted[start : start + batch.num_rows]))
        start += batch.num_rows
