"""Rows in order -> files of about equal size near a target, whatever their rows turn out to take."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import pyarrow as pa

from nightkeep.formats.delta.sizing import file_count
from nightkeep.formats.delta.tuning import NEAR_TARGET, PROBE_ROWS
from nightkeep.formats.delta.write import FileWriter, WrittenFile
from nightkeep.storage import Storage


class InMemory:
    """The part of a Storage that a FileWriter writes to; what is written is counted and forgotten."""

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        yield io.BytesIO()


def in_memory() -> Storage:
    return cast(Storage, InMemory())


def write_even(
    writer: FileWriter, chunks: Iterable[pa.Table], *, rows: int, row_bytes: float, target_bytes: int
) -> list[WrittenFile]:
    """Write all `rows` rows into equal files: as many as `row_bytes`, what a row is expected to take, makes.

    Where a file turns out far from the target, the number of those left is reckoned again by what its rows took.
    """
    stream, files = _Stream(chunks), list[WrittenFile]()
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


def probed(measure: FileWriter, chunks: Iterator[pa.Table]) -> tuple[float, Iterator[pa.Table]]:
    """What a row of the chunks takes in a file, by the first of them, and the chunks again. At least one has rows.

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
    """Chunks, handed out by rows."""

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
