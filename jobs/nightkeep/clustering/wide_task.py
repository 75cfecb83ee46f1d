"""Wide task: survey each source -> ranges -> scatter rows of each source -> gather each part, through an exchange."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, cast

import pyarrow as pa

from nightkeep.clustering.clustered_files import E, F, W, WrittenDataFile
from nightkeep.clustering.even_files import measuring
from nightkeep.clustering.ranges import splitters
from nightkeep.clustering.rewrite_tasks import ClusterTask, replaced
from nightkeep.clustering.sizing import file_count, is_gone, total_live_bytes
from nightkeep.clustering.sorting import RowRanges, keyed, one_chunk, ordered_bucket
from nightkeep.clustering.spill import by_bucket
from nightkeep.clustering.tuning import (
    BUCKET_FILL,
    KEY_BYTES,
    LEAST_SOURCE_BYTES,
    LEAST_SOURCES,
    PIECE_BYTES,
    SAMPLE_ROWS,
    SOURCE_BYTES,
)
from nightkeep.kernels.arrow_buffers import Words
from nightkeep.model import Rewrite, Run
from nightkeep.model.file_columns import SizedFile
from nightkeep.protocol import Bound, OpenWide, OpenWideWrites, Wide, WideWrites
from nightkeep.storage import Storage
from nightkeep.storage.overlapped import overlapped


@dataclass(frozen=True, slots=True)
class Survey:
    """Facts of one source: a sample of the clustering columns, its row count, and the Arrow bytes per row."""

    sample: pa.Table
    rows: int
    row_bytes: float


@dataclass(frozen=True, slots=True)
class Cuts:
    """How rows are split: keys in `between` separate the buckets. A part is `files` consecutive files of `buckets`
    consecutive buckets each; the last part may have fewer.

    A task holds at most `rows_bytes` of rows at once.
    """

    ranges: RowRanges
    between: Words
    files: int
    buckets: int
    rows_bytes: int


@dataclass(frozen=True, slots=True)
class RangedTask(Generic[F, W, E]):
    """A task with the cuts of its rows."""

    task: ClusterTask[F, W, E]
    cuts: Cuts


_Source = tuple[SizedFile, ...]
_Task = ClusterTask[SizedFile, WrittenDataFile, E]
_Ranged = RangedTask[SizedFile, WrittenDataFile, E]


def wide_writes(storage: Storage) -> OpenWideWrites[E]:
    """The functions of every format whose files are clustered. They are called only with what `as_wide` made."""
    writes: WideWrites[_Task[E], _Source, Survey, _Ranged[E], E]
    writes = WideWrites(Bound(survey, storage), ranged, Bound(scatter, storage), Bound(gather, storage))
    return cast(OpenWideWrites[E], writes)


def as_wide(task: ClusterTask[F, W, E]) -> OpenWide:
    """The wide task: sources are tuples of files, and parts become files, of about SOURCE_BYTES or one larger file."""
    files = [file for file in task.inputs.files if not is_gone(file)]
    size = sum(file.bytes for file in files)
    most = min(SOURCE_BYTES, max(LEAST_SOURCE_BYTES, size // LEAST_SOURCES))
    sources = tuple(_sources(files, most))
    return cast(OpenWide, Wide(task, sources, -(-_written(task) // max(1, most // task.target_bytes))))


def survey(storage: Storage, asked: Wide[ClusterTask[F, W, E], tuple[F, ...]], files: tuple[F, ...]) -> Survey:
    """Survey one source. Reads deletes, the clustering columns, and one batch of all columns."""
    task = asked.task
    sorting, rows = task.sorting, task.inputs.rows(storage)
    share = SAMPLE_ROWS / max(1, sum(file.rows or 0 for file in sorting.files))
    count, columns = rows.count(files), measuring(task.inputs, storage).columns
    first = next((batch for batch in rows.batches(files, columns) if batch.num_rows), None)
    row_bytes = first.nbytes / first.num_rows if first is not None else 0.0
    return Survey(rows.sampled(files, sorting.tops, share), count, row_bytes)


def ranged(asked: Wide[ClusterTask[F, W, E], tuple[F, ...]], surveys: Sequence[Survey]) -> RangedTask[F, W, E]:
    """Cut ranges by all surveys, into buckets that the task of a part can sort in memory."""
    sorting, files = asked.task.sorting, _written(asked.task)
    size = sum(each.rows * (each.row_bytes + KEY_BYTES) for each in surveys)
    buckets = int(size / files / (sorting.rows_bytes * BUCKET_FILL)) + 1
    ranges = sorting.ranges([(each.sample, each.rows) for each in surveys])
    sample = ranges.keys(pa.concat_tables([each.sample for each in surveys]), 0)
    between = splitters(sample, files * buckets)
    return RangedTask(asked.task, Cuts(ranges, between, -(-files // asked.parts), buckets, sorting.rows_bytes))


def scatter(
    storage: Storage, ranged: RangedTask[F, W, E], files: tuple[F, ...]
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Yield (part, bucket, rows with keys) for one source. Holds as many rows as the task's memory allows."""
    task, cuts = ranged.task, ranged.cuts
    first_row = 0
    columns = measuring(task.inputs, storage).columns
    for some in _armfuls(task.inputs.rows(storage).batches(files, columns), cuts.rows_bytes):
        keys = cuts.ranges.keys(some, first_row)
        for bucket, part in by_bucket(keyed(some, keys), cuts.ranges.buckets(keys, cuts.between, first_row)):
            for batch in part.to_batches(max(1, int(PIECE_BYTES * part.num_rows / max(1, part.nbytes)))):
                yield bucket // (cuts.files * cuts.buckets), bucket, batch
        first_row += some.num_rows


def gather(
    storage: Storage, ranged: RangedTask[F, W, E], part: int, rows: Iterator[tuple[int, pa.RecordBatch]], run: Run
) -> Rewrite[E]:
    """Write the files of a part. The edit of the first part removes all files that the task replaces."""
    task, cuts, inputs = ranged.task, ranged.cuts, ranged.task.inputs
    files: list[W] = []
    with overlapped(storage) as stored:
        writer = inputs.writer(stored, run, task.layout)
        for _, some in groupby(rows, key=lambda piece: piece[0] // cuts.buckets):
            files += writer.write(_gathered(cuts, some), rows_per_file=sys.maxsize)
    return replaced(inputs, files, removed=inputs.files if part == 0 else ())


def _written(task: ClusterTask[F, W, E]) -> int:
    """The number of files to write."""
    files = [file for file in task.inputs.files if not is_gone(file)]
    return file_count(total_live_bytes(files), task.target_bytes)


def _gathered(cuts: Cuts, pieces: Iterator[tuple[int, pa.RecordBatch]]) -> Iterator[pa.Table]:
    """The rows of one file in order, without keys. Its pieces must come by ascending bucket."""
    for _, some in groupby(pieces, key=lambda piece: piece[0]):
        yield from ordered_bucket(cuts.ranges, [batch for _, batch in some])


def _sources(files: Sequence[F], most: int) -> Iterator[tuple[F, ...]]:
    some: list[F] = []
    for file in files:
        if some and sum(each.bytes for each in some) + file.bytes > most:
            yield tuple(some)
            some = []
        some.append(file)
    if some:
        yield tuple(some)


def _armfuls(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    """Yield the rows of `tables` in order, as tables of about `most` bytes with one chunk per column."""
    held: list[pa.Table] = []
    for rows in tables:
        if held and sum(each.nbytes for each in held) + rows.nbytes > most:
            yield one_chunk(held)
        held.append(rows)
    if held:
        yield one_chunk(held)
