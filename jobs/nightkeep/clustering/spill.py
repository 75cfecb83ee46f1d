"""Rows by bucket -> local files -> rows by bucket, for rows that exceed a task's memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.kernels.curve import order_of


class Buckets:
    """Rows of `count` buckets, each in a file of `folder`; written first, then read. All rows have one schema."""

    def __init__(self, folder: str, count: int) -> None:
        self._paths = [f"{folder}/{number}.arrow" for number in range(count)]
        self._writers: list[pa.ipc.RecordBatchStreamWriter | None] = [None] * count
        self._open = ExitStack()
        self.bytes = [0] * count
        self.rows = 0

    def add(self, rows: pa.Table, bucket: npt.NDArray[np.int64]) -> None:
        """Add rows; `bucket` has the bucket of each row."""
        for number, part in by_bucket(rows, bucket):
            self._writer(number, rows.schema).write_table(part)
            self.bytes[number] += part.nbytes
        self.rows += rows.num_rows

    def close(self) -> None:
        """Finish writing: all added rows are then in files."""
        self._open.close()

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a bucket, in the order in which they were added."""
        if self._writers[number] is None:
            return
        with pa.OSFile(self._paths[number], "rb") as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def _writer(self, number: int, schema: pa.Schema) -> pa.ipc.RecordBatchStreamWriter:
        writer = self._writers[number]
        if writer is None:
            sink = self._open.enter_context(pa.OSFile(self._paths[number], "wb"))
            writer = self._open.enter_context(pa.ipc.new_stream(sink, schema))
            self._writers[number] = writer
        return writer


@contextmanager
def spilled(count: int) -> Iterator[Buckets]:
    """Buckets in a temporary folder, which is removed at the end of the context, also after an error.

    The folder is on Spark's local disks if there are any, else in TMPDIR.
    """
    parent = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    place = parent if os.path.isdir(parent) else None
    with tempfile.TemporaryDirectory(prefix="nightkeep-spill-", dir=place) as folder:
        buckets = Buckets(folder, count)
        try:
            yield buckets
        finally:
            buckets.close()


def by_bucket(rows: pa.Table, bucket: npt.NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """Yield (bucket, its rows in order) by ascending bucket; empty buckets are left out."""
    order = order_of(bucket.astype(np.uint64))
    moved = rows.take(order)
    counts = np.bincount(bucket)
    stops = np.cumsum(counts)
    for number in np.flatnonzero(counts):
        yield int(number), moved.slice(int(stops[number] - counts[number]), int(counts[number]))
