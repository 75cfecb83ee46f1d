"""Rows in the order they shall have -> Parquet data files of one partition, with the add actions readers will trust."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.columns import COMMIT_VERSION, ROW_ID
from nightkeep.formats.delta.conform import ArrowField, by_place, conform
from nightkeep.formats.delta.naming import Naming
from nightkeep.formats.delta.partition import folder
from nightkeep.formats.delta.paths import log_path
from nightkeep.formats.delta.schema import TableSchema
from nightkeep.formats.delta.stats import FileStats
from nightkeep.kernels.arrow_buffers import Array
from nightkeep.storage import Storage

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
_CODECS: Final = {name: name for name in ("none", "snappy", "gzip", "zstd", "brotli")} | {
    "uncompressed": "none",
    "lz4_raw": "lz4",
}
"""Arrow's name of each codec; Hadoop's framed lz4 is no codec of its."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A new data file: its name in storage, its rows, its size and its raw add action.

    The action lacks what only a commit can know: base row id and row commit version.
    """

    name: str
    rows: int
    bytes: int
    add: Mapping[str, object] = field(hash=False, repr=False)


class FileWriter:
    """Writes files of one partition, given by its values as an add has them. `columns` is what chunks must hold.

    Columns are known by their logical names; what else a chunk holds is left out. The codec is the table's
    `delta.parquet.compression.codec`, else snappy, unless one is given.
    """

    def __init__(
        self, storage: Storage, schema: TableSchema, naming: Naming, stored_partition: Mapping[str, str | None], *,
        now_ms: int, codec: str | None = None, tags: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._storage, self._schema, self._naming = storage, schema, naming
        self._partition, self._now_ms, self._tags = stored_partition, now_ms, tags
        self._columns = _columns(schema)
        self._codec = (codec or schema.configuration.get("delta.parquet.compression.codec", "snappy")).lower()
        self._row_bytes: float | None = None
        self._dictionaries: list[str] | None = None
        self.columns: tuple[str, ...] = tuple(column.name for column in self._columns)
        if self._codec not in _CODECS:
            raise RefusedTable("data files", f"compression {self._codec} is not handled", "set snappy or zstd")

    def write(
        self, chunks: Iterable[pa.Table], *, target_bytes: int | None = None, rows_per_file: int | None = None
    ) -> list[WrittenFile]:
        """Write all rows in their order; no rows, no file. One of the limits is given.

        Each file has `rows_per_file` rows but for the last, or about `target_bytes` bytes. Holds one row group.
        """
        limits = [limit for limit in (target_bytes, rows_per_file) if limit is not None]
        if len(limits) != 1 or limits[0] < 1:
            raise ValueError(
                f"a file of {target_bytes} bytes and {rows_per_file} rows, expected one limit of 1 or more"
            )
        source = _Source(chunks)
        files: list[WrittenFile] = []
        while source.row_bytes is not None:
            files.append(self._write_file(source, _Limit(target_bytes, rows_per_file)))
        return files

    def _write_file(self, source: _Source, limit: _Limit) -> WrittenFile:
        place, name = folder(self._schema, self._partition), self._naming.data(self._codec)
        path = f"{place}/{name}" if place else name
        stats = FileStats(self._schema)
        with self._storage.create(path) as sink:
            self._write_groups(sink, source, limit, stats)
            size = sink.tell()
        self._row_bytes = size / stats.rows
        add: dict[str, object] = {
            "path": log_path(path),
            "partitionValues": dict(self._partition),
            "size": size,
            "modificationTime": self._now_ms,
            "dataChange": False,
            "stats": stats.json(),
        }
        return WrittenFile(path, stats.rows, size, add if self._tags is None else {**add, "tags": dict(self._tags)})

    def _write_groups(self, sink: BinaryIO, source: _Source, limit: _Limit, stats: FileStats) -> None:
        group = source.take(limit.group_rows(source.row_bytes, self._row_bytes, sink, stats.rows))
        stored = self._stored(group)
        with pq.ParquetWriter(sink, stored.schema, **self._settings(stored)) as writer:
            while group.num_rows:
                writer.write_table(self._stored(group), row_group_size=ROW_GROUP_ROWS)
                stats.add(group)
                self._row_bytes = sink.tell() / stats.rows
                group = source.take(limit.group_rows(source.row_bytes, self._row_bytes, sink, stats.rows))

    def _stored(self, chunk: pa.Table) -> pa.Table:
        """The chunk by the names and types that files have."""
        fields = [column.stored for column in self._columns]
        arrays = [conform(chunk.column(c.name), c.stored.type, c.stored.type, by_place) for c in self._columns]
        for column, array in zip(self._columns, arrays, strict=True):
            if array.null_count and not column.stored.nullable:
                raise CorruptMetadata(f"column {column.name}", "no nulls", f"{array.null_count} of {chunk.num_rows}")
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _settings(self, first: pa.Table) -> dict[str, Any]:
        if self._dictionaries is None:
            self._dictionaries = [path for name in first.schema.names for path in _with_dictionary(first, name)]
        return {
            "compression": _CODECS[self._codec],
            "use_dictionary": self._dictionaries,
            "write_statistics": [path for one in first.schema for path, kind in _leaves(one) if not _may_be_nan(kind)],
            "store_schema": False,
            "store_decimal_as_integer": True,
            # Without, a flipped bit reads as another row; 8 M rows of six columns take 1.04 s of CPU instead of 0.96.
            "write_page_checksum": True,
            "version": "2.6",
        }


@dataclass(frozen=True, slots=True)
class _StoredColumn:
    """A column by its name in chunks, and as files have it."""

    name: str
    stored: ArrowField


def _columns(schema: TableSchema) -> list[_StoredColumn]:
    """Data columns, partition columns where files must hold them, and those of row tracking.

    Columns of type void are not written (PROTOCOL.md, "Void Type").
    """
    found: list[_StoredColumn] = []
    for column in schema.fields if schema.stores_partitions else schema.data_fields:
        if not pa.types.is_null(column.type):
            metadata = None if column.id is None else {"PARQUET:field_id": str(column.id)}
            stored = pa.field(column.physical, column.stored, nullable=column.nullable, metadata=metadata)
            found.append(_StoredColumn(column.name, stored))
    if schema.row_tracking is not None:
        found.append(_StoredColumn(ROW_ID, pa.field(schema.row_tracking.row_id, pa.int64())))
        found.append(_StoredColumn(COMMIT_VERSION, pa.field(schema.row_tracking.commit_version, pa.int64())))
    return found


@dataclass(frozen=True, slots=True)
class _Limit:
    """When a file is full: at so many bytes, or rows."""

    bytes: int | None
    rows: int | None

    def group_rows(self, arrow: float | None, stored: float | None, sink: BinaryIO, written: int) -> int:
        """Rows of the next row group, 0 where the file is full, by the bytes of a row in memory and in files."""
        if arrow is None:
            return 0
        most = max(1, min(ROW_GROUP_ROWS, int(ROW_GROUP_BYTES / max(arrow, 1))))
        left = self._left(stored or arrow, sink.tell(), written)
        # Groups of equal size: no small one at the end.
        return -(-left // -(-left // most)) if left else 0

    def _left(self, row_bytes: float, size: int, written: int) -> int:
        if self.rows is not None:
            return self.rows - written
        limit = self.bytes or 1
        full = written > 0 and size >= limit * ENOUGH
        return 0 if full else max(1, int((limit - size) / max(row_bytes, 1 / 1024)))


class _Source:
    """Chunks, handed out by rows. `row_bytes` is what a row of the next one takes in memory, None at the end."""

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


def _with_dictionary(first: pa.Table, name: str) -> Sequence[str]:
    """Parquet paths of the leaves of a column that shall have dictionaries, by the writer's first row group."""
    column = first.column(name)
    if column.type.num_fields:
        return [path for path, _ in _leaves(first.schema.field(name))]
    share = DICTIONARY_SAMPLE // column.num_chunks + 1
    sample = pa.chunked_array([_spread(chunk, share) for chunk in column.chunks])
    distinct = pc.count_distinct(sample, mode="all").as_py()
    return [name] if distinct <= DICTIONARY_SHARE * len(sample) else []


def _spread(chunk: Array, share: int) -> Array:
    """Some `share` of the rows, from all over them: neighbours of clustered rows are alike."""
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


def _may_be_nan(kind: pa.DataType) -> bool:
    """Arrow leaves NaN out of a row group's bounds; Spark, for which NaN is the greatest, would skip the group."""
    return bool(pa.types.is_floating(kind))
