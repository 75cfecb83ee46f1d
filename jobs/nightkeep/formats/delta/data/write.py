"""Ordered rows -> Parquet data files of one partition, with their add actions. Keeps the order of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from nightkeep.encodings.parquet_settings import CODECS, DATA_SETTINGS, WriterOptions
from nightkeep.encodings.variant_groups import parquet_output
from nightkeep.errors import RefusedTable, unfit_values
from nightkeep.formats.delta.data.columns import COMMIT_VERSION, ROW_ID
from nightkeep.formats.delta.data.conform import FileRules, by_place, conform, without_void
from nightkeep.formats.delta.data.file_statistics import DeltaFileStats
from nightkeep.formats.delta.metadata.locations import log_path
from nightkeep.formats.delta.metadata.naming import DeltaNaming
from nightkeep.formats.delta.metadata.partition import folder
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.kernels.row_groups import ROW_GROUP_ROWS, ChunkSource, FileLimit, with_bounds, with_dictionaries
from nightkeep.model.arrow_types import FIELD_ID, ArrowField
from nightkeep.model.variant_type import Shredding
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class WrittenDeltaFile:
    """A new data file: its name in storage, its rows, its size and its raw add action.

    The action lacks base row id and row commit version, which only a commit can assign.
    """

    name: str
    rows: int
    bytes: int
    add: Mapping[str, object] = field(hash=False, repr=False)


class DeltaFileWriter:
    """Writes files of one partition, given by its raw values in add actions. Chunks must hold the columns in `columns`.

    Chunks use logical names; other columns are ignored. The codec is `codec`, else the table's
    `delta.parquet.compression.codec`, else snappy. `provider`: the name of who clusters the files. `group_bytes`: the
    stored size of a row group at most.
    """

    def __init__(
        self,
        storage: Storage,
        schema: DeltaSchema,
        naming: DeltaNaming,
        stored_partition: Mapping[str, str | None],
        *,
        now_ms: int,
        codec: str | None = None,
        tags: Mapping[str, str] | None = None,
        provider: str | None = None,
        group_bytes: int | None = None,
    ) -> None:
        self._storage, self._schema, self._naming = storage, schema, naming
        self._partition, self._now_ms = stored_partition, now_ms
        marks = {"tags": None if tags is None else dict(tags), "clusteringProvider": provider}
        self._marks = {name: mark for name, mark in marks.items() if mark is not None}
        self._columns, self._group_bytes = _columns(schema), group_bytes
        self._codec = (codec or schema.configuration.get("delta.parquet.compression.codec", "snappy")).lower()
        self._row_bytes: float | None = None
        self._dictionaries: list[str] | None = None
        self.columns: tuple[str, ...] = tuple(column.name for column in self._columns)
        if self._codec not in CODECS:
            raise RefusedTable("data files", f"compression {self._codec} is not handled", "set snappy or zstd")

    def write(
        self, chunks: Iterable[pa.Table], *, target_bytes: int | None = None, rows_per_file: int | None = None
    ) -> list[WrittenDeltaFile]:
        """Write all rows in their order. No rows make no file. Exactly one limit is given.

        Each file but the last has `rows_per_file` rows, or about `target_bytes` bytes. Holds one row group in memory.
        """
        limit = FileLimit(target_bytes, rows_per_file, stored_group_bytes=self._group_bytes)
        source = ChunkSource(chunks)
        files: list[WrittenDeltaFile] = []
        while source.row_bytes is not None:
            files.append(self._write_file(source, limit))
        return files

    def _write_file(self, source: ChunkSource, limit: FileLimit) -> WrittenDeltaFile:
        place, name = folder(self._schema, self._partition), self._naming.data(self._codec)
        path = f"{place}/{name}" if place else name
        stats = DeltaFileStats(self._schema)
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
            **self._marks,
        }
        return WrittenDeltaFile(path, stats.rows, size, add)

    def _write_groups(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: DeltaFileStats) -> None:
        group = self._group(sink, source, limit, stats)
        stored = self._stored(group)
        with parquet_output(sink, stored.schema, **self._settings(stored)) as writer:
            while group.num_rows:
                writer.write_table(self._stored(group), row_group_size=ROW_GROUP_ROWS)
                stats.add(group)
                self._row_bytes = sink.tell() / stats.rows
                group = self._group(sink, source, limit, stats)

    def _group(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: DeltaFileStats) -> pa.Table:
        rows = limit.group_rows(source.row_bytes, self._row_bytes, size=sink.tell(), written=stats.rows)
        return source.take(rows)

    def _stored(self, chunk: pa.Table) -> pa.Table:
        """The chunk with the names and types of data files."""
        rules = FileRules(by_place, shredding=Shredding.KEPT)
        arrays = [conform(chunk.column(c.name), c.stored.type, c.stored.type, rules) for c in self._columns]
        for column, array in zip(self._columns, arrays, strict=True):
            if array.null_count and not column.stored.nullable:
                raise unfit_values(f"column {column.name}", "no nulls", f"{array.null_count} of {chunk.num_rows}")
        # A shredded variant has the type that it came with.
        fields = [column.stored.with_type(array.type) for column, array in zip(self._columns, arrays, strict=True)]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _settings(self, first: pa.Table) -> WriterOptions:
        if self._dictionaries is None:
            self._dictionaries = with_dictionaries(first)
        return {
            "compression": CODECS[self._codec],
            "use_dictionary": self._dictionaries,
            "write_statistics": with_bounds(first.schema),
            **DATA_SETTINGS,
        }


@dataclass(frozen=True, slots=True)
class _StoredColumn:
    """A column: its name in chunks, and its field in files."""

    name: str
    stored: ArrowField


def _columns(schema: DeltaSchema) -> list[_StoredColumn]:
    """The columns of a new file: data columns, partition columns if files must hold them, and those of row tracking.

    Columns of type void are not written (PROTOCOL.md, "Void Type").
    """
    columns_stored: list[_StoredColumn] = []
    for column in schema.fields if schema.stores_partitions else schema.data_fields:
        if not pa.types.is_null(column.type):
            metadata = None if column.id is None else {FIELD_ID: str(column.id).encode()}
            stored = pa.field(column.physical, without_void(column.stored), nullable=column.nullable, metadata=metadata)
            columns_stored.append(_StoredColumn(column.name, stored))
    if schema.row_tracking is not None:
        columns_stored.append(_StoredColumn(ROW_ID, pa.field(schema.row_tracking.row_id, pa.int64())))
        columns_stored.append(_StoredColumn(COMMIT_VERSION, pa.field(schema.row_tracking.commit_version, pa.int64())))
    return columns_stored
