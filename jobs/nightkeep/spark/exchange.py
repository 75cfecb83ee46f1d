"""Sources -> pieces -> parts, through Spark's shuffle. Rows travel as Arrow, so a format's types need not be Spark's.

Spark moves each piece by the number of its part (`repartitionById`). The ranges are already known, so Spark neither
samples nor reads a source twice.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from functools import partial
from itertools import groupby
from typing import Final, TypeVar

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import SparkSession

from nightkeep.errors import NightkeepError
from nightkeep.spark.session import BatchWork, job, outcome, pickled, returned
from nightkeep.tasks import Gather, Piece, Scatter, require_part

T = TypeVar("T")
R = TypeVar("R")

_PIECES: Final = "part int, place long, rows binary, failed boolean"
_RESULTS: Final = "part int, result binary"
_ROWS_PER_BATCH: Final = ("spark.sql.execution.arrow.maxRecordsPerBatch", "4")
"""A row of the shuffle is a piece of up to megabytes. Spark's default of 10,000 rows would not fit into a worker."""
_NO_ROWS_PLACE: Final = -(1 << 62)
"""A place below that of every piece, for rows which state that a part exists or that a source cannot be read."""


class SparkExchange:
    """A `tasks.Exchange` that runs each source and each part as one Spark task.

    A NightkeepError of a task is raised here again. After any other failure Spark tries the task again and then raises
    its own error. The failure of a source goes to the first part; the other parts may still be gathered.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(
        self, scatter: Scatter[T], gather: Gather[R], sources: Sequence[T], *, parts: int, label: str
    ) -> list[R]:
        if not sources:
            return []
        sent = self._spark.sparkContext.broadcast((pickled(scatter), [pickled(source) for source in sources]))
        work = self._spark.sparkContext.broadcast(pickled(gather))
        try:
            with job(self._spark, label, tasks=len(sources) + parts), self._small_batches():
                numbers = self._spark.range(0, len(sources), 1, len(sources))
                pieces = numbers.mapInArrow(_scattered(sent, parts), _PIECES)
                moved = pieces.repartitionById(parts, "part").sortWithinPartitions("part", "place")
                rows = moved.mapInArrow(_gathered(work), _RESULTS).collect()
        finally:
            sent.destroy()
            work.destroy()
        results = {int(row.part): bytes(row.result) for row in rows}
        return [returned(results[part]) for part in range(parts)]

    @contextmanager
    def _small_batches(self) -> Iterator[None]:
        name, value = _ROWS_PER_BATCH
        before = self._spark.conf.get(name)
        self._spark.conf.set(name, value)
        try:
            yield
        finally:
            self._spark.conf.set(name, before)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Moved:
    """A row of the shuffle. `rows` is an Arrow stream, the pickled outcome of a source that `failed`, or nothing."""

    part: int
    place: int
    rows: bytes
    failed: bool = False


def _scattered(sent: Broadcast[tuple[bytes, list[bytes]]], parts: int) -> BatchWork:
    """The function that Spark runs on the number of each source."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work, sources = sent.value
        for number in (number.as_py() for batch in batches for number in batch.column("id")):
            if number == 0:
                yield from (_row(_Moved(part, _NO_ROWS_PLACE, b"")) for part in range(parts))
            yield from map(_row, _pieces(work, sources[number], parts))

    return run


def _pieces(work: bytes, source: bytes, parts: int) -> Iterator[_Moved]:
    try:
        for piece in pickle.loads(work)(pickle.loads(source)):
            require_part(piece, parts)
            yield _Moved(piece.part, piece.place, _to_stream(piece.rows))
    except NightkeepError as failure:
        yield _Moved(0, _NO_ROWS_PLACE, _failed(failure), failed=True)


def _failed(failure: NightkeepError) -> bytes:
    def fail() -> None:
        raise failure

    return outcome(fail)


def _gathered(work: Broadcast[bytes]) -> BatchWork:
    """The function that Spark runs on the rows moved to a partition: returns a result for each part."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part, rows in groupby(_moved(batches), key=lambda row: row.part):
            result = outcome(partial(pickle.loads(work.value), part, _arrived(rows)))
            yield pa.record_batch([pa.array([part], pa.int32()), pa.array([result], pa.binary())], ["part", "result"])

    return run


def _moved(batches: Iterable[pa.RecordBatch]) -> Iterator[_Moved]:
    for batch in batches:
        columns = [batch.column(name) for name in ("part", "place", "rows", "failed")]
        for number in range(batch.num_rows):
            part, place, rows, failed = (column[number] for column in columns)
            yield _Moved(part.as_py(), place.as_py(), rows.as_buffer(), failed=failed.as_py())


def _arrived(rows: Iterator[_Moved]) -> Iterator[Piece]:
    for row in rows:
        if row.failed:
            returned(bytes(row.rows))
        elif len(row.rows):
            yield from (Piece(row.part, row.place, batch) for batch in pa.ipc.open_stream(row.rows))


def _to_stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue().to_pybytes()


def _row(moved: _Moved) -> pa.RecordBatch:
    kinds = (pa.int32(), pa.int64(), pa.binary(), pa.bool_())
    columns = [pa.array([value], kind) for value, kind in zip(astuple(moved), kinds, strict=True)]
    return pa.record_batch(columns, [field.name for field in fields(_Moved)])
