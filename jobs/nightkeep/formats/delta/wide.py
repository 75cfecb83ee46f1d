"""A unit beyond one task: surveyed and scattered by source, gathered by range, through whatever exchange is given."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa

from nightkeep.formats.delta.cluster import ClusterTask, keyed, one_chunk, ordered_bucket, writer_of
from nightkeep.formats.delta.cubes import cluster_tag
from nightkeep.formats.delta.edits import DeltaEdit
from nightkeep.formats.delta.even_files import in_memory
from nightkeep.formats.delta.live_rows import live_count, live_rows, sampled
from nightkeep.formats.delta.metadata import DataFile
from nightkeep.formats.delta.ranges import Ranges, buckets_of, splitters
from nightkeep.formats.delta.rewrite import rewritten
from nightkeep.formats.delta.sizing import file_count, is_gone, total_live_bytes
from nightkeep.formats.delta.spill import by_bucket
from nightkeep.formats.delta.tuning import BUCKET_FILL, KEY_BYTES, LEAST_SOURCES, PIECE_BYTES, SAMPLE_ROWS, SOURCE_BYTES
from nightkeep.kernels.arrow_buffers import Words
from nightkeep.model import Rewrite, Run
from nightkeep.protocol import Wide
from nightkeep.storage import Storage

Files = tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """Of one source: some rows of the clustering columns, its rows, and the Arrow bytes of one."""

    sample: pa.Table
    rows: int
    row_bytes: float


@dataclass(frozen=True, slots=True)
class RangedTask:
    """Rows go to buckets between the places in `between`; each part has `buckets` of them, one after the other."""

    task: ClusterTask
    ranges: Ranges
    between: Words
    buckets: int


def as_wide(task: ClusterTask) -> Wide:
    """The task by sources of at most about SOURCE_BYTES, and as many parts as it will have files."""
    files = [file for file in task.unit.files if not is_gone(file)]
    most = min(SOURCE_BYTES, sum(file.bytes for file in files) // LEAST_SOURCES)
    return Wide(task, tuple(_sources(files, most)), file_count(total_live_bytes(files), task.target_bytes))


def survey(storage: Storage, wide: Wide, source: object) -> Survey:
    """Reads the clustering columns, and a batch of all of them."""
    task, files = _of(wide.task, source)
    share = SAMPLE_ROWS / max(1, sum(file.rows or 0 for file in task.unit.files))
    rows = live_count(storage, task.unit, files)
    batches = live_rows(storage, task.unit, files, _columns(task))
    first = next((batch for batch in batches if batch.num_rows), None)
    row_bytes = first.nbytes / first.num_rows if first is not None else 0.0
    tops = list(dict.fromkeys(path[0] for path in task.paths))
    return Survey(sampled(storage, task.unit, files, tops, share), rows, row_bytes)


def ranged(wide: Wide, surveys: Sequence[object]) -> RangedTask:
    """Ranges by all surveys together, in buckets that a part's task can sort in memory."""
    task, known = _task(wide.task), [each for each in surveys if isinstance(each, Survey)]
    size = sum(each.rows * (each.row_bytes + KEY_BYTES) for each in known)
    buckets = int(size / wide.parts / (task.rows_bytes * BUCKET_FILL)) + 1
    ranges = Ranges.of(task.clustering, task.paths, [(each.sample, each.rows) for each in known])
    sample = ranges.keys(pa.concat_tables([each.sample for each in known]), 0)
    return RangedTask(task, ranges, splitters(sample, wide.parts * buckets), buckets)


def scatter(storage: Storage, ranged: object, source: object) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """(part, bucket, rows with their keys), for as many rows at once as the task may hold."""
    assert isinstance(ranged, RangedTask)
    task, files = _of(ranged.task, source)
    first_row = 0
    for rows in _armfuls(live_rows(storage, task.unit, files, _columns(task)), task.rows_bytes):
        keys = ranged.ranges.keys(rows, first_row)
        for bucket, part in by_bucket(keyed(rows, keys), buckets_of(keys, ranged.between, first_row)):
            for batch in part.to_batches(max(1, int(PIECE_BYTES * part.num_rows / max(1, part.nbytes)))):
                yield bucket // ranged.buckets, bucket, batch
        first_row += rows.num_rows


def gather(
    storage: Storage, ranged: object, part: int, rows: Iterator[tuple[int, pa.RecordBatch]], *, run: Run
) -> Rewrite:
    """One file of one part. The first part's edit removes what the whole task replaces."""
    assert isinstance(ranged, RangedTask)
    task = ranged.task
    tags = cluster_tag(task.clustering, run.token, task.unit.key)
    chunks = (
        chunk
        for _, pieces in groupby(rows, key=lambda piece: piece[0])
        for chunk in ordered_bucket(ranged.ranges, [batch for _, batch in pieces])
    )
    files = writer_of(storage, task.unit, run, tags=tags).write(chunks, rows_per_file=sys.maxsize)
    done = rewritten(task, files)
    assert isinstance(done.edit, DeltaEdit)
    return done if part == 0 else replace(done, edit=replace(done.edit, removed=()))


def _sources(files: Sequence[DataFile], most: int) -> Iterator[Files]:
    some: list[DataFile] = []
    for file in files:
        if some and sum(each.bytes for each in some) + file.bytes > most:
            yield tuple(some)
            some = []
        some.append(file)
    if some:
        yield tuple(some)


def _armfuls(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    """Tables of about `most` bytes, a chunk per column, of the rows of `tables` in their order."""
    held: list[pa.Table] = []
    for rows in tables:
        if held and sum(each.nbytes for each in held) + rows.nbytes > most:
            yield one_chunk(held)
        held.append(rows)
    if held:
        yield one_chunk(held)


def _of(task: object, source: object) -> tuple[ClusterTask, Files]:
    assert isinstance(source, tuple)
    return _task(task), source


def _task(task: object) -> ClusterTask:
    assert isinstance(task, ClusterTask)
    return task


def _columns(task: ClusterTask) -> tuple[str, ...]:
    return writer_of(in_memory(), task.unit, Run("", "", "", 0), tags={}).columns
