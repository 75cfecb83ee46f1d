"""Stored rows and the deletes of a version -> which of them readers see, by joins in Spark.

Decides from manifest entries alone which delete applies to which row (spec, "Scan Planning"). The gate and the rewrite
do not share this code.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Final

import pyarrow as pa
from pyiceberg.types import DoubleType, FloatType, LongType, NestedField, StringType
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.features import refuse_keys
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.spark.data_files import IcebergStoredRows, read_files
from nightkeep.formats.iceberg.spark.schema import stored_name
from nightkeep.spark.releases import frame_of
from nightkeep.spark.shared_files import hidden_at, hidden_where
from nightkeep.spark.stored_files import StoredFile, broadcast_few, deleted_positions, packed, with_file_facts, words_of
from nightkeep.storage import Storage

PATH: Final = NestedField(2147483546, "file_path", StringType())
POSITION: Final = NestedField(2147483545, "pos", LongType())
"""The columns of position delete files, with their reserved field ids."""
BROADCAST_ROWS: Final = 1 << 20
"""Up to this many deletes are broadcast to every executor; with more, rows are shuffled."""


@dataclass(frozen=True, slots=True)
class Deletes:
    """Delete files that may apply to some data files; `positional` and `scoped` have the number of the unit beside."""

    vectors: Mapping[str, ContentFile]
    positional: tuple[tuple[int, ContentFile], ...]
    scoped: tuple[tuple[int, ContentFile], ...]
    everywhere: tuple[ContentFile, ...]

    @staticmethod
    def of(
        schema: IcebergSchema, deletes: Iterable[ContentFile], places: Mapping[Hashable, int], oldest: int
    ) -> Deletes:
        """The deletes that may apply: those of the partitions in `places`, and global ones; none older than `oldest`.

        `places` has the number of each unit, by partition_of.
        """
        vectors: dict[str, ContentFile] = {}
        positional, scoped, everywhere = [], [], []
        for delete in deletes:
            place = places.get(partition_of(delete))
            if delete.content is FileContent.EQUALITY_DELETES:
                if delete.sequence_number <= oldest:
                    continue
                if _is_unpartitioned(schema, delete.spec_id):
                    everywhere.append(delete)
                elif place is not None:
                    scoped.append((place, delete))
            elif place is not None and delete.is_vector:
                vectors[str(delete.referenced)] = delete
            elif place is not None and delete.sequence_number >= oldest:
                positional.append((place, delete))
        return Deletes(vectors, tuple(positional), tuple(scoped), tuple(everywhere))

    @property
    def key_ids(self) -> tuple[int, ...]:
        """The ids of all key fields of equality deletes."""
        deletes = (*(delete for _, delete in self.scoped), *self.everywhere)
        return tuple(sorted({number for delete in deletes for number in delete.equality_ids}))


def partition_of(file: ContentFile) -> Hashable:
    """A value that is equal for files of the same partition and spec: -0.0 and 0.0 differ, all NaN are equal."""
    return (file.spec_id, repr(file.partition))


def _is_unpartitioned(schema: IcebergSchema, spec_id: int) -> bool:
    return not [field for field in schema.spec(spec_id).fields if str(field.transform) != "void"]


def refuse_deletes(schema: IcebergSchema, deletes: Iterable[ContentFile]) -> None:
    """Raises RefusedTable for equality deletes whose keys readers compare differently."""
    files = [delete for delete in deletes if delete.content is FileContent.EQUALITY_DELETES]
    refuse_keys(schema, files)
    top = {field.field_id: field for each in schema.schemas.values() for field in each.fields}
    for number in sorted({number for delete in files for number in delete.equality_ids}):
        if number not in top or not top[number].field_type.is_primitive:
            feature = f"equality deletes by {schema.field(number).name}, which is nested"
            raise RefusedTable(schema.table, feature, "delete by columns of primitive types")


def key_name(number: int) -> str:
    """The name of a key column's value in frames of rows."""
    return f"equality_{number}"


def keys_of(stored: IcebergStoredRows, key_ids: Iterable[int]) -> list[Column]:
    fields = {field.field_id: field for field in stored.columns.fields}
    return [_key(stored.value(fields[number]), fields[number]).alias(key_name(number)) for number in key_ids]


def _key(value: Column, field: NestedField) -> Column:
    """A value to compare. Floats are compared by text: Spark joins 0.0 with -0.0, which Java keeps apart."""
    return value.cast("string") if isinstance(field.field_type, FloatType | DoubleType) else value


@dataclass(frozen=True, slots=True)
class Deleting:
    """Hides deleted rows of `files` in frames that have `unit`, `position`, `sequence`, key columns and SHOWN.

    `side` is the number of the version that has these files and deletes.
    """

    spark: SparkSession
    storage: Storage
    schema: IcebergSchema
    files: Sequence[StoredFile[ContentFile]]
    deletes: Deletes
    side: int = 0

    def hidden(self, rows: DataFrame) -> DataFrame:
        """`rows` without the version's bit where it does not show a row."""
        for positions in (self._vector_positions(), self._file_positions()):
            rows = rows if positions is None else hidden_at(rows, positions, self.side)
        places: dict[tuple[int, ...], list[tuple[int | None, ContentFile]]] = {}
        for place, delete in (*self.deletes.scoped, *((None, delete) for delete in self.deletes.everywhere)):
            places.setdefault((place is None, *delete.equality_ids), []).append((place, delete))
        for (is_global, *numbers), files in places.items():
            rows = self._without_keys(rows, numbers, files, scoped=not is_global)
        return rows

    def _vector_positions(self) -> DataFrame | None:
        pairs = [(file, self.deletes.vectors.get(file.file.path)) for file in self.files]
        held = [(file, each) for file, each in pairs if each and each.sequence_number >= file.file.sequence_number]
        if not held:
            return None
        sources = [(self.storage, file.number, vector) for file, vector in held]
        count = sum(vector.rows for _, vector in held)
        return deleted_positions(self.spark, sources, _decoded, count=count, most=BROADCAST_ROWS)

    def _file_positions(self) -> DataFrame | None:
        """Positions, as words, from position delete files of the data file's partition that are not older than it.

        Data files with a vector are left out.
        """
        if not self.deletes.positional:
            return None
        files = [delete for _, delete in self.deletes.positional]
        read, paths = read_files(self.spark, self.storage, files, (PATH, POSITION))
        numbered = pa.table(
            {
                "file_path": pa.array(paths, pa.string()),
                "delete_sequence": pa.array([file.sequence_number for file in files], pa.int64()),
                "delete_unit": pa.array([place for place, _ in self.deletes.positional], pa.int32()),
            }
        )
        data = [file for file in self.files if file.file.path not in self.deletes.vectors]
        described = pa.table(
            {
                stored_name(PATH): pa.array([file.file.path for file in data], pa.string()),
                "number": pa.array([file.number for file in data], pa.int64()),
                "unit": pa.array([file.unit for file in data], pa.int32()),
                "sequence": pa.array([file.file.sequence_number for file in data], pa.int64()),
            }
        )
        deleted = with_file_facts(read, frame_of(self.spark, numbered), "file_path")
        aimed = deleted.join(F.broadcast(frame_of(self.spark, described)), on=stored_name(PATH))
        holds = (F.col("delete_unit") == F.col("unit")) & (F.col("delete_sequence") >= F.col("sequence"))
        position = packed(F.col("number"), F.col(stored_name(POSITION)))
        return broadcast_few(words_of(aimed.where(holds), position), sum(file.rows for file in files), BROADCAST_ROWS)

    def _without_keys(
        self, rows: DataFrame, numbers: Sequence[int], files: Sequence[tuple[int | None, ContentFile]], *, scoped: bool
    ) -> DataFrame:
        """Hides the rows that have a newer equal key in their scope. Null equals null."""
        fields = [self.schema.field(number) for number in numbers]
        read, paths = read_files(self.spark, self.storage, [delete for _, delete in files], fields)
        numbered = pa.table(
            {
                "file_path": pa.array(paths, pa.string()),
                "delete_sequence": pa.array([delete.sequence_number for _, delete in files], pa.int64()),
                "delete_unit": pa.array([place for place, _ in files], pa.int32()),
            }
        )
        keyed = with_file_facts(read, frame_of(self.spark, numbered), "file_path")
        for field in fields:
            keyed = keyed.withColumn(stored_name(field), _key(F.col(stored_name(field)), field))
        groups = [*map(stored_name, fields), *(["delete_unit"] if scoped else [])]
        newest = keyed.groupBy(*groups).agg(F.max("delete_sequence").alias(_NEWEST))
        equal = [F.col(key_name(field.field_id)).eqNullSafe(F.col(stored_name(field))) for field in fields]
        equal += [F.col("unit") == F.col("delete_unit")] if scoped else []
        keys = broadcast_few(newest, sum(delete.rows for _, delete in files), BROADCAST_ROWS)
        joined = rows.join(keys, on=reduce(and_, equal), how="left_outer")
        return hidden_where(joined, F.col(_NEWEST) > F.col("sequence"), self.side).drop(_NEWEST, *groups)


_NEWEST: Final = "newest"
_MAGIC: Final = bytes.fromhex("d1d33964")


def _decoded(source: tuple[Storage, int, ContentFile]) -> Iterator[tuple[int, BitMap64]]:
    storage, number, vector = source
    yield number, _positions(storage, vector)


def _positions(storage: Storage, vector: ContentFile) -> BitMap64:
    """A `deletion-vector-v1` blob: length, magic, bitmap, checksum (Puffin spec)."""
    with storage.open(vector.name) as puffin:
        # Some stores refuse to seek beyond the end.
        puffin.seek(min(vector.content_offset or 0, puffin.size()))
        blob = puffin.read(vector.content_bytes or 0)
    subject = f"{vector.path}: vector at {vector.content_offset}"
    try:
        (length,), (crc,) = struct.unpack_from(">I", blob), struct.unpack(">I", blob[-4:])
        body = blob[4 : 4 + length]
        if not body.startswith(_MAGIC) or len(blob) != length + 8 or zlib.crc32(body) != crc:
            raise ValueError("of another length, magic or checksum")
        return BitMap64.deserialize(body[len(_MAGIC) :])
    except (struct.error, ValueError) as failure:
        raise CorruptMetadata(subject, "a deletion vector", reason_of(failure)) from failure
