"""Rows in key order -> data files of one level, with their metadata records. Keeps the order of rows.

Layout and metadata follow C/io/KeyValueDataFileWriter.java and RollingFileWriter.java.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

import pyarrow as pa

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.data import file_output
from nightkeep.formats.paimon.data.columns import KIND, SEQUENCE, key_columns, value_columns
from nightkeep.formats.paimon.data.file_statistics import PaimonFileStats, level_stats_mode
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.changelog import changelog_prefix
from nightkeep.formats.paimon.metadata.file_formats import compression
from nightkeep.formats.paimon.metadata.naming import PaimonNaming, data_prefix, extension_of
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, level_formats
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.task_memory import row_bytes, spare_bytes
from nightkeep.storage import Storage

CHUNKS_HELD: Final = 8
"""A chunk is held several times while its rows are put in order, merged, encoded and read again by the gate."""
FILE_SOURCE_APPEND, FILE_SOURCE_COMPACT = 0, 1


class FilePurpose(Enum):
    """What a file is for: the rows of the table, or changes of them for streaming readers."""

    ROWS = "rows"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class WrittenPaimonFile:
    """A new data file: its path in storage and its raw _FILE record."""

    path: str
    record: Record


class PaimonFileWriter:
    """Writes one bucket's files for one level. Chunks must hold the columns in `columns`, in order."""

    def __init__(
        self,
        storage: Storage,
        bucket: Bucket,
        naming: PaimonNaming,
        *,
        level: int,
        now_ms: int,
        purpose: FilePurpose = FilePurpose.ROWS,
    ) -> None:
        self._storage, self._bucket, self._naming, self._level = storage, bucket, naming, level
        self._made_ms, self._purpose = made_ms(bucket, now_ms), purpose
        self.columns = (*key_columns(bucket), SEQUENCE, KIND, *value_columns(bucket))
        self._format = level_formats(bucket.schemas.current, level + 1)[level]

    def chunk_rows(self, target_bytes: int) -> int:
        """Rows per chunk so that a file ends near `target_bytes` and the task's memory has room for several chunks,
        estimated from the bucket's own files."""
        stored, rows = sum(file.bytes for file in self._bucket.files), sum(file.rows for file in self._bucket.files)
        fitting = spare_bytes(self._bucket.task_bytes) // CHUNKS_HELD // row_bytes(stored, rows)
        return max(1, min(file_output.ROW_GROUP_ROWS, target_bytes // max(1, stored // max(1, rows)), fitting))

    def write(self, chunks: Iterable[pa.Table], *, target_bytes: int) -> list[WrittenPaimonFile]:
        """Write all chunks. A file ends when it has reached `target_bytes`. No rows make no file."""
        pending = iter(chunks)
        files: list[WrittenPaimonFile] = []
        for first in pending:
            files.append(self._write_file(first, pending, target_bytes))
        return files

    def _write_file(self, first: pa.Table, more: Iterator[pa.Table], target_bytes: int) -> WrittenPaimonFile:
        name = self._name()
        path = f"{self._bucket.folder}/{name}"
        schema = self._bucket.schemas.current
        stats = PaimonFileStats(schema, self._stats_mode(), file_format=self._format)
        with self._storage.create(path) as sink:
            with file_output.open_output(
                self._format, sink, schema, codec=self._codec(), target_bytes=target_bytes
            ) as write_chunk:
                chunk: pa.Table | None = first
                while chunk is not None:
                    write_chunk(chunk)
                    stats.add(chunk)
                    chunk = next(more, None) if sink.tell() < target_bytes else None
            size = sink.tell()
        source = FILE_SOURCE_COMPACT if self._purpose is FilePurpose.ROWS else FILE_SOURCE_APPEND
        schema, level, made = self._bucket.schemas.current, self._level, self._made_ms
        record = file_record(name, size, stats, schema, level=level, made_ms=made, source=source)
        return WrittenPaimonFile(path, record)

    def _name(self) -> str:
        schema = self._bucket.schemas.current
        extension = extension_of(schema, self._format)
        if self._purpose is FilePurpose.ROWS:
            return self._naming.data(data_prefix(schema), extension)
        return self._naming.changelog(changelog_prefix(schema), extension)

    def _stats_mode(self) -> str:
        schema = self._bucket.schemas.current
        own = schema.options.get("changelog-file.stats-mode") if self._purpose is FilePurpose.CHANGES else None
        return level_stats_mode(schema, self._level) if own is None else own

    def _codec(self) -> tuple[str, int | None]:
        schema = self._bucket.schemas.current
        own = schema.options.get("changelog-file.compression") if self._purpose is FilePurpose.CHANGES else None
        return compression(schema, self._level, own)


def file_record(
    name: str, size: int, stats: PaimonFileStats, schema: PaimonSchema, *, level: int, made_ms: int, source: int
) -> Record:
    """The raw _FILE record of a new file (C/io/DataFileMeta.java)."""
    key_types = [field.type for field in schema.select(schema.trimmed_keys)]
    value_stats, value_columns_kept = stats.values()
    return {
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_ROW_COUNT": stats.rows,
        "_MIN_KEY": encode_row(stats.first_key, key_types),
        "_MAX_KEY": encode_row(stats.last_key, key_types),
        "_KEY_STATS": stats.keys(),
        "_VALUE_STATS": value_stats,
        "_MIN_SEQUENCE_NUMBER": stats.min_sequence,
        "_MAX_SEQUENCE_NUMBER": stats.max_sequence,
        "_SCHEMA_ID": schema.id,
        "_LEVEL": level,
        "_EXTRA_FILES": [],
        "_CREATION_TIME": made_ms,
        "_DELETE_ROW_COUNT": stats.retracts,
        "_EMBEDDED_FILE_INDEX": None,
        "_FILE_SOURCE": source,
        "_VALUE_STATS_COLS": value_columns_kept,
        "_EXTERNAL_PATH": None,
        "_FIRST_ROW_ID": None,
        "_WRITE_COLS": None,
    }


def made_ms(bucket: Bucket, now_ms: int) -> int:
    """The creation time of new files: now, but not before all files of the bucket, whose writers' clocks may be ahead.
    Partitions expire by it."""
    return max(wall_clock_ms(now_ms), min((file.created_ms for file in bucket.files), default=0))


def wall_clock_ms(now_ms: int) -> int:
    """Milliseconds of the local wall clock read as UTC, as Paimon stores creation times."""
    local = datetime.fromtimestamp(now_ms / 1000).replace(tzinfo=UTC)
    return int(local.timestamp() * 1000)
