"""Data file bytes -> Arrow columns of the table's logical types. Older schemas are mapped by field id.

Positions are physical row ordinals of the file. Java class: C/io/KeyValueFileReaderFactory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.encodings.parquet_rows import LIMITS, beyond_arrow
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.paimon.metadata.schema import PaimonField
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.types import PaimonType, evolves
from nightkeep.kernels.int96 import open_parquet, times
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage

SEQUENCE = "_SEQUENCE_NUMBER"
KIND = "_VALUE_KIND"
KEY_PREFIX = "_KEY_"
RETRACT_KINDS = (1, 3)
"""Row kinds that delete: -U and -D of RowKind.java."""
DELETE_KIND = 3
BATCH_ROWS = 1 << 16
_SYSTEM = {SEQUENCE: pa.int64(), KIND: pa.int8()}


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column to read: `name` is its current name, `stored` its name in this file (None: filled with nulls)."""

    name: str
    stored: str | None
    written: PaimonType | None
    logical: pa.DataType


def key_columns(bucket: Bucket) -> tuple[str, ...]:
    return tuple(KEY_PREFIX + name for name in bucket.schemas.current.trimmed_keys)


def value_columns(bucket: Bucket) -> tuple[str, ...]:
    return tuple(field.name for field in bucket.schemas.current.fields)


class PaimonFileReader:
    """One open data file of a bucket. Columns are requested by their current names."""

    def __init__(self, storage: Storage, bucket: Bucket, file: PaimonDataFile) -> None:
        self.subject = bucket.path(file)
        self._bucket, self._file = bucket, file
        try:
            self.parquet, self._twelve_bytes = open_parquet(storage.open(self.subject))
        except (pa.ArrowInvalid, OSError) as failure:
            raise CorruptMetadata(self.subject, "a Parquet file", reason_of(failure)) from failure
        footer = self.parquet.metadata
        if footer.num_rows != file.rows:
            raise CorruptMetadata(self.subject, f"{file.rows} rows as its manifest says", str(footer.num_rows))
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def read(self, names: Sequence[str], groups: Sequence[int] | None = None) -> pa.Table:
        """The columns of whole row groups (all by default), concatenated in file order."""
        columns = [self._column(name) for name in names]
        wanted = list(range(len(self.starts) - 1)) if groups is None else list(groups)
        with self._decoding():
            table = self.parquet.read_row_groups(wanted, columns=self._stored(columns), use_threads=False)
        self._require_rows(wanted, table.num_rows)
        return self._logical(columns, table)

    def batches(
        self, names: Sequence[str], groups: Sequence[int], *, batch_rows: int | None = None
    ) -> Iterator[pa.Table]:
        """As `read`, in file order, at most `batch_rows` rows at a time, BATCH_ROWS by default."""
        columns = [self._column(name) for name in names]
        pending = self.parquet.iter_batches(
            batch_rows or BATCH_ROWS, row_groups=list(groups), columns=self._stored(columns), use_threads=False
        )
        rows = 0
        while True:
            with self._decoding():
                batch = next(pending, None)
            if batch is None:
                break
            rows += batch.num_rows
            yield self._logical(columns, pa.Table.from_batches([batch]))
        self._require_rows(groups, rows)

    def column(self, name: str) -> FileColumn:
        """How this file holds a column, by its current name."""
        return self._column(name)

    def stored_name(self, name: str) -> str:
        """This file's name of a column that every file has."""
        return self._column(name).stored or name

    def groups_holding(self, positions: npt.NDArray[np.int64]) -> list[int]:
        """Row groups that hold at least one of the ascending `positions`."""
        edges = np.searchsorted(positions, self.starts)
        return [int(group) for group in np.flatnonzero(edges[1:] > edges[:-1])]

    def taken(self, names: Sequence[str], positions: npt.NDArray[np.int64]) -> Iterator[pa.Table]:
        """The rows at the ascending `positions`, in file order, in pieces of at most BATCH_ROWS rows."""
        for group in self.groups_holding(positions):
            start = int(self.starts[group])
            for piece in self.batches(names, [group]):
                low, high = np.searchsorted(positions, (start, start + piece.num_rows))
                if high - low == piece.num_rows:
                    yield piece
                elif high > low:
                    yield piece.take(positions[low:high] - start)
                start += piece.num_rows

    def _stored(self, columns: Sequence[FileColumn]) -> list[str]:
        """Names of the columns that this file must have. Arrow silently skips missing ones."""
        stored = [column.stored for column in columns if column.stored is not None]
        missing = [name for name in stored if self.parquet.schema_arrow.get_field_index(name) < 0]
        if missing:
            found = ", ".join(self.parquet.schema_arrow.names)
            raise CorruptMetadata(self.subject, f"columns {', '.join(missing)}", f"columns {found}")
        return stored

    def _require_rows(self, groups: Sequence[int], row_count: int) -> None:
        expected = sum(int(self.starts[group + 1] - self.starts[group]) for group in groups)
        if row_count != expected:
            raise CorruptMetadata(self.subject, f"{expected} rows in its pages, as its footer says", str(row_count))

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except LIMITS as failure:
            raise beyond_arrow(self.subject, failure) from failure
        except (pa.ArrowException, OSError) as failure:
            raise CorruptMetadata(self.subject, "pages of a Parquet file", reason_of(failure)) from failure

    def _logical(self, columns: Sequence[FileColumn], table: pa.Table) -> pa.Table:
        arrays = [self._cast(column, table) for column in columns]
        return pa.table(dict(zip((c.name for c in columns), arrays, strict=True)))

    def _cast(self, column: FileColumn, table: pa.Table) -> ChunkedArray:
        if column.stored is None:
            return pa.chunked_array([pa.nulls(table.num_rows).cast(column.logical)])
        array = table.column(column.stored)
        if column.stored in self._twelve_bytes:
            array = self._times(array, column.name)
        if array.type == column.logical:
            return array
        try:
            written = array.type if column.written is None else column.written.arrow
            return array.cast(written).cast(column.logical)
        except pa.ArrowInvalid as failure:
            # Only casts of wider times can fail here.
            if pa.types.is_timestamp(column.logical):
                raise self._beyond_nanoseconds(column.name) from failure
            subject = f"{self.subject} column {column.name}"
            raise CorruptMetadata(subject, f"values of {column.logical}", reason_of(failure)) from failure

    def _times(self, array: ChunkedArray, name: str) -> ChunkedArray:
        instants = times(array)
        if instants is None:
            raise self._beyond_nanoseconds(name)
        return instants

    def _beyond_nanoseconds(self, name: str) -> RefusedTable:
        return RefusedTable(
            f"{self.subject} column {name}",
            "times outside the years 1678 to 2261 with nanoseconds are not handled",
            "store them with a precision of at most 6",
        )

    def _column(self, name: str) -> FileColumn:
        if name in _SYSTEM:
            return FileColumn(name, name, None, _SYSTEM[name])
        plain = name.removeprefix(KEY_PREFIX) if name in key_columns(self._bucket) else name
        prefix = name[: len(name) - len(plain)]
        wanted = self._bucket.schemas.current.field(plain)
        held = self._written_field(wanted)
        if held is None:
            return FileColumn(name, None, None, wanted.type.arrow)
        if evolves(held.type, wanted.type) is None and held.type.root != wanted.type.root:
            raise RefusedTable(
                self.subject,
                f"column {plain} was written as {held.type} and is now {wanted.type}",
                "rewrite the file with the engine that changed the type",
            )
        return FileColumn(name, prefix + held.name, held.type, wanted.type.arrow)

    def _written_field(self, field_now: PaimonField) -> PaimonField | None:
        try:
            schema = self._bucket.schemas.by_id[self._file.schema_id]
        except KeyError:
            schema_ids = sorted(self._bucket.schemas.by_id)
            raise CorruptMetadata(
                self.subject, f"a schema among {schema_ids}", f"schema {self._file.schema_id}"
            ) from None
        return next((field for field in schema.fields if field.id == field_now.id), None)
