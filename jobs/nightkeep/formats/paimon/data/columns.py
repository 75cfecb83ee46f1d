"""Data file bytes -> Arrow columns of the table's logical types. Older schemas are mapped by field id.

Positions are physical row ordinals of the file. Java class: C/io/KeyValueFileReaderFactory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nightkeep.encodings.legacy_calendar import require_one_calendar
from nightkeep.encodings.parquet_rows import GroupDecoder
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of, unfit_values
from nightkeep.formats.paimon.data.conversions import Conversion, conversion_of
from nightkeep.formats.paimon.data.nested_columns import absent, conformed
from nightkeep.formats.paimon.data.physical_types import refuse_unlike
from nightkeep.formats.paimon.data.stored_rows import Edges, ParquetStoredRows, beyond_nanoseconds, open_stored
from nightkeep.formats.paimon.metadata.file_formats import format_of, refuse_mixed_times
from nightkeep.formats.paimon.metadata.merge_engine import ordering_fields
from nightkeep.formats.paimon.metadata.schema import PaimonField, bucket_key
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.snapshot_order import file_sequence
from nightkeep.formats.paimon.metadata.type_changes import is_converted
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.kernels.arrow_buffers import flagged_rows, has_views, is_view_of
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
    """A column to read: `name` is its current name, `stored` its name in this file (None: filled with nulls).

    `written` and `wanted` are its types then and now; None for a system column. `conversion`: how values of the older
    type become those of the newer, if not by a cast that keeps them.
    """

    name: str
    stored: str | None
    written: PaimonType | None
    wanted: PaimonType | None
    logical: pa.DataType
    conversion: Conversion | None = None


def key_columns(bucket: Bucket) -> tuple[str, ...]:
    return tuple(KEY_PREFIX + name for name in bucket.schemas.current.trimmed_keys)


def value_columns(bucket: Bucket) -> tuple[str, ...]:
    return tuple(field.name for field in bucket.schemas.current.fields)


class PaimonFileReader:
    """One open data file of a bucket. Columns are requested by their current names. Batches that `decoder` decodes have
    texts and bytes as Arrow's views."""

    def __init__(
        self, storage: Storage, bucket: Bucket, file: PaimonDataFile, *, decoder: GroupDecoder | None = None
    ) -> None:
        self.subject = bucket.path(file)
        self._bucket, self._file = bucket, file
        self._sequence = file_sequence(file, bucket.schemas.current)
        self._stored = open_stored(storage.open(self.subject), file.name, subject=self.subject, decoder=decoder)
        self._shows_views = decoder is not None
        self.starts = self._stored.starts
        """The first row of each part of the file (row group, stripe, block) that is read as a whole, then its rows."""
        if self.starts[-1] != file.rows:
            raise CorruptMetadata(self.subject, f"{file.rows} rows as its manifest states", str(self.starts[-1]))

    def read(self, names: Sequence[str], groups: Sequence[int] | None = None) -> pa.Table:
        """The columns of whole parts (all by default), concatenated in file order."""
        columns = [self._column(name) for name in names]
        wanted = list(range(len(self.starts) - 1)) if groups is None else list(groups)
        return self._logical(columns, self._stored.read(self._names(columns), wanted))

    def batches(
        self, names: Sequence[str], groups: Sequence[int], *, batch_rows: int | None = None
    ) -> Iterator[pa.Table]:
        """As `read`, in file order, at most `batch_rows` rows at a time, BATCH_ROWS by default."""
        columns = [self._column(name) for name in names]
        for batch in self._stored.batches(self._names(columns), list(groups), rows=batch_rows or BATCH_ROWS):
            yield self._logical(columns, pa.Table.from_batches([batch]))

    def edges(self, name: str, group: int) -> Edges | None:
        """The range of a column that every file has, in one part; None if the file does not state it."""
        return self._stored.edges(self._column(name).stored or name, group)

    @property
    def parquet(self) -> pq.ParquetFile | None:
        """The open file if it is a Parquet file, whose footer has the ranges of all its parts."""
        return self._stored.parquet if isinstance(self._stored, ParquetStoredRows) else None

    def column(self, name: str) -> FileColumn:
        """How this file holds a column, by its current name."""
        return self._column(name)

    def groups_holding(self, positions: npt.NDArray[np.int64]) -> list[int]:
        """Parts that hold at least one of the ascending `positions`."""
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
                elif high > low and has_views(piece):
                    flags = np.zeros(piece.num_rows, np.bool_)
                    flags[positions[low:high] - start] = True
                    yield flagged_rows(piece, flags)
                elif high > low:
                    yield piece.take(positions[low:high] - start)
                start += piece.num_rows

    def _names(self, columns: Sequence[FileColumn]) -> list[str]:
        """Names of the columns that this file must have. Arrow silently skips missing ones."""
        stored = list(dict.fromkeys(column.stored for column in columns if column.stored is not None))
        missing = [name for name in stored if name not in self._stored.names]
        if missing:
            found = ", ".join(self._stored.names)
            raise CorruptMetadata(self.subject, f"columns {', '.join(missing)}", f"columns {found}")
        return stored

    def _logical(self, columns: Sequence[FileColumn], table: pa.Table) -> pa.Table:
        arrays = [self._cast(column, table) for column in columns]
        return pa.table(dict(zip((c.name for c in columns), arrays, strict=True)))

    def _cast(self, column: FileColumn, table: pa.Table) -> ChunkedArray:
        if column.stored is None:
            return absent(table.num_rows, column.logical)
        if column.name == SEQUENCE and self._sequence is not None:
            return pa.chunked_array([pa.array(np.full(table.num_rows, self._sequence, np.int64))])
        array = self._as_held(column.stored, table)
        if column.written is not None and column.wanted is not None and column.wanted.is_nested:
            return self._nested(column.name, array, column.written, column.wanted)
        if self._stored.pads_chars and column.written is not None and column.written.root is TypeRoot.CHAR:
            array = pc.utf8_rtrim(array, " ")
        if column.conversion is not None:
            return self._converted(column, array, column.conversion)
        return self._widened(column, array)

    def _widened(self, column: FileColumn, array: ChunkedArray) -> ChunkedArray:
        if array.type == column.logical or (self._shows_views and is_view_of(array.type, column.logical)):
            return array
        try:
            written = array.type if column.written is None else column.written.arrow
            return array.cast(written).cast(column.logical)
        except pa.ArrowInvalid as failure:
            # Only casts of wider times can fail here.
            if pa.types.is_timestamp(column.logical):
                raise beyond_nanoseconds(f"{self.subject} column {column.name}") from failure
            subject = f"{self.subject} column {column.name}"
            raise unfit_values(subject, f"values of {column.logical}", reason_of(failure)) from failure

    def _converted(self, column: FileColumn, array: ChunkedArray, conversion: Conversion) -> ChunkedArray:
        assert column.written is not None and column.wanted is not None
        subject, expected = f"{self.subject} column {column.name}", f"values of {column.wanted}"
        try:
            shown = conversion(array.cast(column.written.arrow), column.written, column.wanted)
        except pa.ArrowInvalid as failure:
            raise unfit_values(subject, expected, reason_of(failure)) from failure
        if shown.null_count and not column.wanted.nullable:
            raise unfit_values(subject, expected, f"values of {column.written} that do not fit")
        if isinstance(shown, pa.ChunkedArray):
            return shown
        kind: Any = column.logical
        whole: ChunkedArray = pa.chunked_array([shown], kind)
        return whole

    def _as_held(self, name: str, table: pa.Table) -> ChunkedArray:
        array = table.column(name)
        if isinstance(self._stored, ParquetStoredRows):
            require_one_calendar(self._stored.calendar, array, name)
        return array

    def _nested(self, name: str, array: ChunkedArray, written: PaimonType, wanted: PaimonType) -> ChunkedArray:
        try:
            return conformed(array, written, wanted, pads_chars=self._stored.pads_chars)
        except (KeyError, pa.ArrowInvalid, pa.ArrowTypeError) as failure:
            subject = f"{self.subject} column {name}"
            raise unfit_values(subject, f"values of {written}", reason_of(failure)) from failure

    def _column(self, name: str) -> FileColumn:
        if name in _SYSTEM:
            return FileColumn(name, name, None, None, _SYSTEM[name])
        plain = name.removeprefix(KEY_PREFIX) if name in key_columns(self._bucket) else name
        prefix = name[: len(name) - len(plain)]
        wanted = self._bucket.schemas.current.field(plain)
        refuse_mixed_times(self._bucket.schemas.current, wanted, format_of(self._file.name), subject=self.subject)
        held = self._written_field(wanted)
        if held is None:
            return FileColumn(name, None, None, wanted.type, wanted.type.arrow)
        conversion = self._conversion(plain, held.type, wanted.type)
        # Of a thin file (data-file.thin-mode), keys are its value columns.
        is_thin = prefix + held.name not in self._stored.names
        stored = held.name if is_thin else prefix + held.name
        if isinstance(self._stored, ParquetStoredRows) and stored in self._stored.flat:
            refuse_unlike(self._stored.flat[stored], held.type, subject=self.subject)
        return FileColumn(name, stored, held.type, wanted.type, wanted.type.arrow, conversion)

    def _conversion(self, name: str, held: PaimonType, wanted: PaimonType) -> Conversion | None:
        if not is_converted(held, wanted):
            return None
        schemas = self._bucket.schemas
        # By what decides which rows there are, Java finds, orders and merges files that were written before.
        decides = (*schemas.current.primary_keys, *bucket_key(schemas.current), *ordering_fields(schemas.current))
        conversion = conversion_of(held, wanted) if schemas.converts and name not in decides else None
        if conversion is None:
            raise RefusedTable(
                self.subject,
                f"column {name} was written as {held} and is now {wanted}",
                "rewrite the file with the engine that changed the type",
            )
        return conversion

    def _written_field(self, field_now: PaimonField) -> PaimonField | None:
        try:
            schema = self._bucket.schemas.by_id[self._file.schema_id]
        except KeyError:
            schema_ids = sorted(self._bucket.schemas.by_id)
            raise CorruptMetadata(
                self.subject, f"a schema among {schema_ids}", f"schema {self._file.schema_id}"
            ) from None
        return next((field for field in schema.fields if field.id == field_now.id), None)
