"""Files of a unit -> the same rows along a curve, in one task. Rows that exceed memory are spilled into buckets.

Memory stays within the task's budget: rows are collected until their share of it is reached, then spilled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic

import numpy as np
import pyarrow as pa

from nightkeep.clustering.clustered_files import F, W, Writer, WrittenDataFile
from nightkeep.clustering.columns import Paths
from nightkeep.clustering.even_files import probed, write_even
from nightkeep.clustering.live_rows import LiveRows
from nightkeep.clustering.order_ranges import KeyedOrder, OrderRanges
from nightkeep.clustering.ranges import Ranges, in_order, splitters
from nightkeep.clustering.sizing import is_gone, total_live_bytes
from nightkeep.clustering.spill import Buckets, spilled
from nightkeep.clustering.tuning import (
    BASE_BYTES,
    BUCKET_FILL,
    KEY_BYTES,
    LEAST_BYTES,
    MOST_BUCKETS,
    MOST_BYTES,
    PROBE_ROWS,
    SAMPLE_ROWS,
    WRITE_BYTES,
)
from nightkeep.kernels.arrow_buffers import Words
from nightkeep.model import Clustering

RowRanges = Ranges | OrderRanges
KEY = "nightkeep\0key"
"""The key column while rows move. The control character keeps it distinct from the table's columns."""


@dataclass(frozen=True, slots=True)
class Sorting(Generic[F]):
    """The files' rows become a cube of files near the target; the task may hold `task_bytes` in memory.

    `paths` are those of the clustering's columns. With `order`, rows are sorted by it and not along a curve.
    """

    files: Sequence[F]
    clustering: Clustering
    paths: Paths
    target_bytes: int
    task_bytes: int
    order: KeyedOrder | None = None

    @property
    def tops(self) -> list[str]:
        """The top-level columns that decide the order of rows."""
        names = (path[0] for path in self.paths) if self.order is None else self.order.tops
        return list(dict.fromkeys(names))

    def ranges(self, samples: Sequence[tuple[pa.Table, int]]) -> RowRanges:
        """Ranges from samples, each with the row count it stands for."""
        if self.order is not None:
            return OrderRanges.of(self.order, [sample for sample, _ in samples])
        return Ranges.of(self.clustering, self.paths, samples)

    @property
    def rows_bytes(self) -> int:
        """Bytes of Arrow memory for rows: half of the rest of the budget, as each column is copied into one chunk."""
        left = (self.task_bytes - BASE_BYTES - WRITE_BYTES) // 2
        return min(MOST_BYTES, max(LEAST_BYTES, left))


def write_sorted(
    sorting: Sorting[F], rows: LiveRows[F], writer: Writer[W], *, measure: Callable[[], Writer[WrittenDataFile]]
) -> list[W]:
    """Write the rows of the files in order, in files near the target.

    `measure` makes a writer to memory, to measure the size of a row if the input files are too small to show it.
    """
    source = rows.batches(sorting.files, writer.columns)
    held = _held(source, sorting.rows_bytes)
    if sum(map(_weight, held)) > sorting.rows_bytes:
        return _through_buckets(sorting, rows, held, source, writers=_Writers(writer, measure))
    count = sum(table.num_rows for table in held)
    return _written(sorting, _in_memory(sorting, held), _Writers(writer, measure), rows=count) if count else []


@dataclass(frozen=True, slots=True)
class _Writers(Generic[W]):
    writer: Writer[W]
    measure: Callable[[], Writer[WrittenDataFile]]


def ordered_bucket(ranges: RowRanges, batches: Sequence[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of batches in order of their keys, without the key column."""
    rows = one_chunk([pa.Table.from_batches(batches)])
    keys = rows.column(KEY).to_numpy()
    rows = rows.drop_columns([KEY])
    yield from in_order(rows, ranges.order(rows, keys))


def keyed(rows: pa.Table, keys: Words) -> pa.Table:
    return rows.append_column(KEY, pa.array(keys))


def one_chunk(tables: list[pa.Table]) -> pa.Table:
    """The tables as one table with one chunk per column. Empties the list: at most one column is in memory twice."""
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
    """Tables from `source` until they exceed `most` bytes or the source ends."""
    held: list[pa.Table] = []
    size = 0
    for rows in source:
        held.append(rows)
        size += _weight(rows)
        if size > most:
            break
    return held


def _in_memory(sorting: Sorting[F], held: list[pa.Table]) -> Iterator[pa.Table]:
    rows = one_chunk(held)
    chosen = np.random.default_rng(0).choice(rows.num_rows, min(SAMPLE_ROWS, rows.num_rows), replace=False)
    sample = rows.select(sorting.tops).take(np.sort(chosen))
    ranges = sorting.ranges([(sample, rows.num_rows)])
    yield from in_order(rows, ranges.order(rows, ranges.keys(rows, 0)))


def _written(sorting: Sorting[F], chunks: Iterator[pa.Table], writers: _Writers[W], *, rows: int) -> list[W]:
    files = [file for file in sorting.files if not is_gone(file)]
    row_bytes = total_live_bytes(files) / rows
    if rows < PROBE_ROWS * len(files):
        row_bytes, chunks = probed(writers.measure(), chunks)
    return write_even(writers.writer, chunks, rows=rows, row_bytes=row_bytes, target_bytes=sorting.target_bytes)


def _through_buckets(
    sorting: Sorting[F], rows: LiveRows[F], held: list[pa.Table], rest: Iterator[pa.Table], *, writers: _Writers[W]
) -> list[W]:
    row_bytes = sum(map(_weight, held)) / sum(table.num_rows for table in held)
    number = rows.count(sorting.files)
    count = min(MOST_BUCKETS, int(number * row_bytes / (sorting.rows_bytes * BUCKET_FILL)) + 1)
    ranges, between = _surveyed(sorting, rows, number, count=count)
    with spilled(count) as buckets:
        for table in chain(_emptied(held), rest):
            keys = ranges.keys(table, buckets.rows)
            buckets.add(keyed(table, keys), ranges.buckets(keys, between, buckets.rows))
        buckets.close()
        chunks = (chunk for place in range(count) for chunk in _bucket(sorting.rows_bytes, ranges, buckets, place))
        return _written(sorting, chunks, writers, rows=buckets.rows)


def _surveyed(sorting: Sorting[F], rows: LiveRows[F], number: int, *, count: int) -> tuple[RowRanges, Words]:
    sample = rows.sampled(sorting.files, sorting.tops, SAMPLE_ROWS / max(1, number))
    ranges = sorting.ranges([(sample, number)])
    return ranges, splitters(ranges.keys(sample, 0), count)


def _emptied(tables: list[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables in order; each is freed when the next is requested."""
    tables.reverse()
    while tables:
        yield tables.pop()


def _bucket(rows_bytes: int, ranges: RowRanges, buckets: Buckets, number: int) -> Iterator[pa.Table]:
    """Yield a bucket's rows in order. A bucket that is too large is read and sorted in several parts."""
    parts = buckets.bytes[number] // rows_bytes + 1
    if parts == 1:
        batches = list(buckets.batches(number))
        if batches:
            yield from ordered_bucket(ranges, batches)
        return
    place = _places(ranges, buckets, number)
    for part in range(parts):
        yield from ordered_bucket(ranges, list(_of_part(buckets, number, place * parts // len(place) == part)))


def _places(ranges: RowRanges, buckets: Buckets, number: int) -> np.typing.NDArray[np.int64]:
    """The place of each of the bucket's rows in its order. Only the columns that decide it are in memory."""
    names = [*ranges.tops, KEY]
    rows = one_chunk([pa.Table.from_batches([batch]).select(names) for batch in buckets.batches(number)])
    place = np.empty(rows.num_rows, np.int64)
    place[ranges.order(rows, rows.column(KEY).to_numpy())] = np.arange(rows.num_rows)
    return place


def _of_part(buckets: Buckets, number: int, wanted: np.typing.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in buckets.batches(number):
        yield batch.filter(pa.array(wanted[start : start + batch.num_rows]))
        start += batch.num_rows
