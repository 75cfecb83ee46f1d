"""Rows -> data files of a table without keys, with their metadata records. Keeps the order of rows.

Metadata follows C/io/RowDataFileWriter.java and BaseAppendFileStoreWrite.compactRewrite: rows have no sequence numbers
of their own, and files that replace others count from the first number of those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.parquet_settings import DATA_SETTINGS, WriterOptions
from nightkeep.errors import unfit_values
from nightkeep.formats.paimon.data.columns import value_columns
from nightkeep.formats.paimon.data.file_output import open_output
from nightkeep.formats.paimon.data.file_statistics import PaimonFileStats, level_stats_mode
from nightkeep.formats.paimon.data.write import FILE_SOURCE_COMPACT, file_record, made_ms
from nightkeep.formats.paimon.metadata.file_formats import compression
from nightkeep.formats.paimon.metadata.naming import PaimonNaming, data_prefix, extension_of
from nightkeep.formats.paimon.metadata.schema import level_formats
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.kernels.row_groups import ROW_GROUP_ROWS, ChunkSource, FileLimit, with_bounds, with_dictionaries
from nightkeep.storage import Storage

_UNLIMITED = 1 << 30
"""The size of a file that is limited in rows, for its writer's stripes."""
LEVEL = 0
"""DataFileMeta.DUMMY_LEVEL: the files of a table without keys have no levels."""


@dataclass(frozen=True, slots=True)
class WrittenAppendFile:
    """A new data file: its path in storage, its rows, its size and its raw _FILE record."""

    name: str
    rows: int
    bytes: int
    record: Record = field(hash=False, repr=False)


class AppendFileWriter:
    """Writes files of one bucket. Chunks must hold the columns in `columns`; other columns are ignored.

    The rows of the first file are numbered from `first_sequence`. Each later file goes on where the file before ended,
    but starts at `last_start` at most, by default `first_sequence`, as a compaction of Java does.
    """

    def __init__(
        self,
        storage: Storage,
        bucket: Bucket,
        naming: PaimonNaming,
        *,
        first_sequence: int,
        now_ms: int,
        last_start: int | None = None,
        source: int = FILE_SOURCE_COMPACT,
        group_bytes: int | None = None,
    ) -> None:
        self._storage, self._bucket, self._naming = storage, bucket, naming
        self._next_sequence, self._made_ms, self._source = first_sequence, made_ms(bucket, now_ms), source
        self._last_start = first_sequence if last_start is None else last_start
        self._group_bytes = group_bytes
        self.columns = value_columns(bucket)
        fields = bucket.schemas.current.fields
        self._schema = pa.schema([pa.field(f.name, f.type.arrow, nullable=f.type.nullable) for f in fields])
        self._format = level_formats(bucket.schemas.current, 1)[LEVEL]
        self._row_bytes: float | None = None
        self._dictionaries: list[str] | None = None

    def write(self, chunks: Iterable[pa.Table], *, rows_per_file: int) -> list[WrittenAppendFile]:
        """Write all rows in their order, in files of `rows_per_file` rows; the last may have fewer. No rows make no
        file. Holds one row group in memory."""
        return self._write(chunks, FileLimit(None, rows_per_file, stored_group_bytes=self._group_bytes))

    def write_to_size(self, chunks: Iterable[pa.Table], *, target_bytes: int) -> list[WrittenAppendFile]:
        """As `write`, in files near `target_bytes`."""
        return self._write(chunks, FileLimit(target_bytes, None, stored_group_bytes=self._group_bytes))

    def _write(self, chunks: Iterable[pa.Table], limit: FileLimit) -> list[WrittenAppendFile]:
        source = ChunkSource(chunks)
        files: list[WrittenAppendFile] = []
        while source.row_bytes is not None:
            files.append(self._write_file(source, limit))
        return files

    def _write_file(self, source: ChunkSource, limit: FileLimit) -> WrittenAppendFile:
        schema = self._bucket.schemas.current
        name = self._naming.data(data_prefix(schema), extension_of(schema, self._format))
        path = f"{self._bucket.folder}/{name}"
        stats = PaimonFileStats(schema, level_stats_mode(schema, LEVEL), file_format=self._format)
        write = self._write_groups if self._format == "parquet" else self._write_chunks
        with self._storage.create(path) as sink:
            write(sink, source, limit, stats)
            size = sink.tell()
        self._row_bytes = size / stats.rows
        stats.min_sequence, stats.max_sequence = self._next_sequence, self._next_sequence + stats.rows - 1
        self._next_sequence = min(stats.max_sequence + 1, self._last_start)
        record = file_record(name, size, stats, schema, level=LEVEL, made_ms=self._made_ms, source=self._source)
        return WrittenAppendFile(path, stats.rows, size, record)

    def _write_groups(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: PaimonFileStats) -> None:
        group = self._group(sink, source, limit, stats)
        with pq.ParquetWriter(sink, self._schema, **self._settings(group)) as writer:
            while group.num_rows:
                writer.write_table(self._stored(group), row_group_size=ROW_GROUP_ROWS)
                stats.add(group)
                self._row_bytes = sink.tell() / stats.rows
                group = self._group(sink, source, limit, stats)

    def _write_chunks(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: PaimonFileStats) -> None:
        """As `_write_groups`, in a format whose writer divides the rows itself."""
        schema = self._bucket.schemas.current
        codec, target = compression(schema, LEVEL), limit.bytes or _UNLIMITED
        with open_output(self._format, sink, schema, codec=codec, target_bytes=target) as write_chunk:
            while (chunk := self._group(sink, source, limit, stats)).num_rows:
                write_chunk(self._stored(chunk))
                stats.add(chunk)
                self._row_bytes = sink.tell() / stats.rows

    def _group(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: PaimonFileStats) -> pa.Table:
        rows = limit.group_rows(source.row_bytes, self._row_bytes, size=sink.tell(), written=stats.rows)
        return source.take(rows)

    def _stored(self, chunk: pa.Table) -> pa.Table:
        """The chunk with the types of data files. Raises RefusedRows for a null that its column forbids."""
        for column in self._schema:
            if not column.nullable and chunk.column(column.name).null_count:
                nulls = chunk.column(column.name).null_count
                raise unfit_values(f"column {column.name}", "no nulls", f"{nulls} of {chunk.num_rows}")
        return chunk.select(self.columns).cast(self._schema)

    def _settings(self, first: pa.Table) -> WriterOptions:
        if self._dictionaries is None:
            self._dictionaries = with_dictionaries(first.select(self.columns))
        codec, level = compression(self._bucket.schemas.current, LEVEL)
        return {
            "compression": codec,
            "compression_level": level,
            "use_dictionary": self._dictionaries,
            "write_statistics": with_bounds(self._schema),
            **DATA_SETTINGS,
        }
