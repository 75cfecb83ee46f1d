"""Rows in order -> files of about equal size near a target. The row count per file adapts to the sizes so far."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

import pyarrow as pa

from nightkeep.clustering.clustered_files import E, F, FileLayout, Inputs, W, Writer, WrittenDataFile
from nightkeep.clustering.live_rows import LiveRows
from nightkeep.clustering.sizing import file_count
from nightkeep.clustering.tuning import NEAR_TARGET, PROBE_ROWS
from nightkeep.model import Run
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class CountingStorage:
    """Storage for writers that only counts bytes: nothing is stored."""

    root: str

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        yield io.BytesIO()


def measuring(inputs: Inputs[F, W, E], storage: Storage) -> Writer[W]:
    """A writer to memory, of files like the task's, to measure their sizes and to know their columns."""
    nowhere = cast(Storage, CountingStorage(storage.root))
    return inputs.writer(nowhere, Run("", "", "", 0), FileLayout(0))


def write_packed(
    rows: LiveRows[F], files: Sequence[F], writer: Writer[W], *, into: int, target_bytes: int
) -> Sequence[W]:
    """Write the live rows of `files` in their order, into one file or about `into` near the target."""
    count = rows.count(files)
    chunks = rows.batches(files, writer.columns)
    if into == 1:
        return writer.write(chunks, rows_per_file=max(1, count))
    row_bytes = into * target_bytes / max(1, count)
    return write_even(writer, chunks, rows=count, row_bytes=row_bytes, target_bytes=target_bytes)


def write_even(
    writer: Writer[W], chunks: Iterable[pa.Table], *, rows: int, row_bytes: float, target_bytes: int
) -> list[W]:
    """Write all `rows` rows into equal files near the target. `row_bytes` is the expected size of a row in a file.

    If a file's size is far from the target, the number of remaining files is computed again from its bytes per row.
    """
    stream, files = _Stream(chunks), list[W]()
    left = file_count(int(rows * row_bytes), target_bytes)
    while rows > 0:
        count = -(-rows // left)
        written = writer.write(stream.first(count), rows_per_file=count)
        if not written:
            break
        files += written
        rows -= sum(file.rows for file in written)
        last = written[-1]
        is_near = NEAR_TARGET[0] <= last.bytes / target_bytes <= NEAR_TARGET[1]
        left = max(1, left - 1) if is_near else file_count(rows * last.bytes // last.rows, target_bytes)
    return files


def probed(measure: Writer[WrittenDataFile], chunks: Iterator[pa.Table]) -> tuple[float, Iterator[pa.Table]]:
    """The bytes per row in a file, measured on the first chunks, and all chunks again. At least one must have rows.

    `measure` writes to memory.
    """
    first = next(chunk for chunk in chunks if chunk.num_rows)
    some = first.slice(0, PROBE_ROWS)
    (file,) = measure.write([some], rows_per_file=some.num_rows)

    def again() -> Iterator[pa.Table]:
        yield first
        yield from chunks

    return file.bytes / file.rows, again()


class _Stream:
    """Chunks that are taken in portions by number of rows."""

    def __init__(self, chunks: Iterable[pa.Table]) -> None:
        self._chunks = iter(chunks)
        self._rest: deque[pa.Table] = deque()

    def first(self, rows: int) -> Iterator[pa.Table]:
        """The next `rows` rows, fewer at the end."""
        while rows > 0:
            chunk = self._rest.popleft() if self._rest else next(self._chunks, None)
            if chunk is None:
                return
            if chunk.num_rows > rows:
                self._rest.append(chunk.slice(rows))
                chunk = chunk.slice(0, rows)
            rows -= chunk.num_rows
            yield chunk
