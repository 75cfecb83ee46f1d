"""Rows in key order -> Parquet data files of one level, with their metadata records. Keeps the order of rows.

Layout and metadata follow C/io/KeyValueDataFileWriter.java and RollingFileWriter.java.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.parquet_settings import SETTINGS, WriterOptions
from nightkeep.formats.paimon.data.columns import KEY_PREFIX, KIND, SEQUENCE, key_columns, value_columns
from nightkeep.formats.paimon.data.file_statistics import PaimonFileStats, level_stats_mode
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.changelog import changelog_prefix
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_int, option_map
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.model.arrow_types import ArrowField
from nightkeep.storage import Storage

ROW_GROUP_ROWS = 1 << 18
"""Rows per row group: small enough that lookups skip most of a file, large enough to compress well."""
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
        self, storage: Storage, bucket: Bucket, naming: PaimonNaming, *, level: int, now_ms: int,
        purpose: FilePurpose = FilePurpose.ROWS,
    ) -> None:  # fmt: skip
        self._storage, self._bucket, self._naming, self._level = storage, bucket, naming, level
        self._now_ms, self._purpose = now_ms, purpose
        self.columns = (*key_columns(bucket), SEQUENCE, KIND, *value_columns(bucket))
        self._schema = _arrow_schema(bucket)

    def chunk_rows(self, target_bytes: int) -> int:
        """Rows per chunk so that a file ends near `target_bytes`, estimated from the bucket's own files."""
        rows = sum(file.rows for file in self._bucket.files)
        average = max(1, sum(file.bytes for file in self._bucket.files) // max(1, rows))
        return max(1, min(ROW_GROUP_ROWS, target_bytes // average))

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
        stats = PaimonFileStats(self._bucket.schemas.current, self._stats_mode())
        with self._storage.create(path) as sink:
            with pq.ParquetWriter(sink, self._schema, **self._settings()) as writer:
                chunk: pa.Table | None = first
                while chunk is not None:
                    writer.write_table(chunk.cast(self._schema), row_group_size=ROW_GROUP_ROWS)
                    stats.add(chunk)
                    chunk = next(more, None) if sink.tell() < target_bytes else None
            size = sink.tell()
        source = FILE_SOURCE_COMPACT if self._purpose is FilePurpose.ROWS else FILE_SOURCE_APPEND
        schema, level, now_ms = self._bucket.schemas.current, self._level, self._now_ms
        record = file_record(name, size, stats, schema, level=level, now_ms=now_ms, source=source)
        return WrittenPaimonFile(path, record)

    def _name(self) -> str:
        if self._purpose is FilePurpose.ROWS:
            return self._naming.data("parquet")
        return self._naming.changelog(changelog_prefix(self._bucket.schemas.current), "parquet")

    def _stats_mode(self) -> str:
        schema = self._bucket.schemas.current
        own = schema.options.get("changelog-file.stats-mode") if self._purpose is FilePurpose.CHANGES else None
        return level_stats_mode(schema, self._level) if own is None else own

    def _settings(self) -> WriterOptions:
        schema = self._bucket.schemas.current
        codec, level = compression(schema, self._level, self._purpose)
        # Keys and sequence numbers of a file are nearly unique, so a dictionary of them would be discarded.
        spelled = [f.name for f in schema.fields if f.type.arrow in (pa.string(), pa.binary())]
        return {
            "compression": codec,
            "compression_level": level,
            "use_dictionary": spelled,
            **SETTINGS,
        }


def file_record(
    name: str, size: int, stats: PaimonFileStats, schema: PaimonSchema, *, level: int, now_ms: int, source: int
) -> Record:
    """The raw _FILE record of a new file (C/io/DataFileMeta.java)."""
    key_types = [field.type for field in schema.select(schema.trimmed_keys)]
    value_stats, value_columns_kept = stats.values()
    return {
        "_FILE_NAME": name, "_FILE_SIZE": size, "_ROW_COUNT": stats.rows,
        "_MIN_KEY": encode_row(stats.first_key, key_types),
        "_MAX_KEY": encode_row(stats.last_key, key_types),
        "_KEY_STATS": stats.keys(),
        "_VALUE_STATS": value_stats,
        "_MIN_SEQUENCE_NUMBER": stats.min_sequence, "_MAX_SEQUENCE_NUMBER": stats.max_sequence,
        "_SCHEMA_ID": schema.id, "_LEVEL": level, "_EXTRA_FILES": [],
        "_CREATION_TIME": wall_clock_ms(now_ms), "_DELETE_ROW_COUNT": stats.retracts,
        "_EMBEDDED_FILE_INDEX": None, "_FILE_SOURCE": source,
        "_VALUE_STATS_COLS": value_columns_kept, "_EXTERNAL_PATH": None,
        "_FIRST_ROW_ID": None, "_WRITE_COLS": None,
    }  # fmt: skip


def wall_clock_ms(now_ms: int) -> int:
    """Milliseconds of the local wall clock read as UTC, as Paimon stores creation times."""
    local = datetime.fromtimestamp(now_ms / 1000).replace(tzinfo=UTC)
    return int(local.timestamp() * 1000)


def compression(schema: PaimonSchema, level: int, purpose: FilePurpose = FilePurpose.ROWS) -> tuple[str, int | None]:
    """The Parquet codec of a level, and its compression level (zstd only)."""
    of_level = option_map(schema, "file.compression.per.level").get(
        str(level), schema.options.get("file.compression", "zstd")
    )
    own = schema.options.get("changelog-file.compression") if purpose is FilePurpose.CHANGES else None
    codec = (of_level if own is None else own).lower()
    zstd_level = option_int(schema, "file.compression.zstd-level", 1)
    return codec, zstd_level if codec == "zstd" else None


def _arrow_schema(bucket: Bucket) -> pa.Schema:
    schema = bucket.schemas.current
    keys = [_required(KEY_PREFIX + f.name, f.type.arrow) for f in schema.select(schema.trimmed_keys)]
    values = [pa.field(f.name, f.type.arrow, nullable=f.type.nullable) for f in schema.fields]
    return pa.schema([*keys, _required(SEQUENCE, pa.int64()), _required(KIND, pa.int8()), *values])


def _required(name: str, kind: pa.DataType) -> ArrowField:
    return pa.field(name, kind, nullable=False)
