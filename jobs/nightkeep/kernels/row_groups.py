"""Chunks of rows -> row groups of new Parquet files; which columns get dictionaries, and which bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.model.arrow_types import Array, ArrowField

ROW_GROUP_ROWS: Final = 1 << 20
ROW_GROUP_BYTES: Final = 128 << 20
"""What a row group may hold, in rows and in bytes of Arrow memory: large enough to compress well and to be read in few
requests, small enough that the writer, which holds one at a time, stays within a task's budget."""
DICTIONARY_SAMPLE: Final = 10_000
DICTIONARY_SHARE: Final = 0.5
"""A column gets a dictionary where at most this share of a sample's values differ: beyond it, of a million rows there
are more values than a dictionary page has room for, so that it would be built only to be thrown away."""
ENOUGH: Final = 0.95
"""A file is full at this share of its target: what is missing would make a row group of its own."""


@dataclass(frozen=True, slots=True)
class FileLimit:
    """The limit of a file in bytes or in rows; the other is None. A row group has about `group_bytes` bytes of Arrow
    memory at most, and `stored_group_bytes` in the file."""

    bytes: int | None
    rows: int | None
    group_bytes: int | None = None
    stored_group_bytes: int | None = None

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.bytes, self.rows) if limit is not None]
        if len(limits) != 1 or limits[0] < 1:
            raise ValueError(f"a file of {self.bytes} bytes and {self.rows} rows, expected one limit of 1 or more")

    def group_rows(self, row_bytes: float | None, stored_bytes: float | None, *, size: int, written: int) -> int:
        """Rows of the next row group; 0 if the file, with `written` rows in `size` bytes so far, is full.

        `row_bytes` is the size of a row in memory, None if there are no more rows. `stored_bytes` is its size in files,
        None if unknown.
        """
        if row_bytes is None:
            return 0
        group_bytes = min(self.group_bytes or ROW_GROUP_BYTES, ROW_GROUP_BYTES)
        stored = stored_bytes or row_bytes
        most = min(ROW_GROUP_ROWS, int(group_bytes / max(row_bytes, 1)))
        if self.stored_group_bytes is not None:
            most = min(most, int(self.stored_group_bytes / max(stored, 1 / 1024)))
        most = max(1, most)
        left = self._left(stored, size, written)
        # Groups of equal size: no small one at the end.
        return -(-left // -(-left // most)) if left else 0

    def _left(self, row_bytes: float, size: int, written: int) -> int:
        if self.rows is not None:
            return self.rows - written
        limit = self.bytes or 1
        full = written > 0 and size >= limit * ENOUGH
        return 0 if full else max(1, int((limit - size) / max(row_bytes, 1 / 1024)))


class ChunkSource:
    """Chunks, read by number of rows. `row_bytes` is the size in memory of a row of the next chunk, None at the end."""

    def __init__(self, chunks: Iterable[pa.Table]) -> None:
        self._pending: Iterator[pa.Table] = iter(chunks)
        self._held: deque[pa.Table] = deque()
        self._schema = pa.schema([])
        self._fill()

    @property
    def row_bytes(self) -> float | None:
        return self._held[0].nbytes / self._held[0].num_rows if self._held else None

    def take(self, rows: int) -> pa.Table:
        """The next `rows` rows, fewer at the end."""
        taken: list[pa.Table] = []
        while rows and self._held:
            chunk = self._held.popleft()
            taken.append(chunk.slice(0, rows))
            if chunk.num_rows > rows:
                self._held.appendleft(chunk.slice(rows))
            rows -= taken[-1].num_rows
            self._fill()
        return pa.concat_tables(taken) if taken else self._schema.empty_table()

    def _fill(self) -> None:
        while not self._held:
            chunk = next(self._pending, None)
            if chunk is None:
                return
            self._schema = chunk.schema
            if chunk.num_rows:
                self._held.append(chunk)


def with_dictionaries(first: pa.Table) -> list[str]:
    """Parquet paths of the leaves to write with dictionaries, by a writer's first row group."""
    return [path for name in first.schema.names for path in _with_dictionary(first, name)]


def with_bounds(schema: pa.Schema) -> list[str]:
    """Parquet paths of the leaves to write with bounds in row groups and pages."""
    return [path for field in schema for path, kind in _leaves(field) if not _misleads(kind)]


def _with_dictionary(first: pa.Table, name: str) -> Sequence[str]:
    """Parquet paths of a column's leaves to write with dictionaries, by the writer's first row group."""
    column = first.column(name)
    if column.type.num_fields:
        return [path for path, _ in _leaves(first.schema.field(name))]
    share = DICTIONARY_SAMPLE // column.num_chunks + 1
    sample = pa.chunked_array([_spread(chunk, share) for chunk in column.chunks])
    distinct = pc.count_distinct(sample, mode="all").as_py()
    return [name] if distinct <= DICTIONARY_SHARE * len(sample) else []


def _spread(chunk: Array, share: int) -> Array:
    """A sample of `share` rows, spread over all: neighbouring rows of a clustered file are alike."""
    return chunk.take(np.linspace(0, max(len(chunk) - 1, 0), min(len(chunk), share)).astype(np.int64))


def _leaves(column: ArrowField, path: str = "") -> list[tuple[str, pa.DataType]]:
    """Parquet paths and types of the columns that hold its values."""
    kind, path = column.type, path or column.name
    if isinstance(kind, pa.StructType):
        return [leaf for child in kind for leaf in _leaves(child, f"{path}.{child.name}")]
    if isinstance(kind, pa.ListType):
        return _leaves(kind.value_field, f"{path}.list.element")
    if isinstance(kind, pa.MapType):
        value = _leaves(kind.item_field, f"{path}.key_value.value")
        return [*_leaves(kind.key_field, f"{path}.key_value.key"), *value]
    return [(path, kind)]


def _misleads(kind: pa.DataType) -> bool:
    """Whether bounds could make a reader skip matching rows.

    Arrow leaves NaN out of a row group's bounds, but Spark orders NaN above all values. Arrow orders uuids as bytes,
    but Iceberg Java orders them as signed numbers.
    """
    return bool(pa.types.is_floating(kind)) or isinstance(kind, pa.UuidType)
