"""A data or delete file of any format -> its columns with their field ids, and batches of them.

A file has parts that are decoded one at a time: row groups of Parquet, stripes of ORC, some blocks of Avro. Positions
are row ordinals in the file. The rows of parts are checked against the counts that the file states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.avro_columns import AvroColumns
from nightkeep.encodings.legacy_calendar import LegacyCalendar, legacy_calendar
from nightkeep.encodings.orc_fields import read_field
from nightkeep.encodings.orc_footer import OrcKind
from nightkeep.encodings.orc_rows import OrcRows
from nightkeep.encodings.parquet_rows import BATCH_ROWS, GroupDecoder, ParquetRows, leaf_bounds
from nightkeep.encodings.stored_types import declared
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.model.arrow_types import ArrowField
from nightkeep.storage import Storage

Starts = npt.NDArray[np.int64]


class StoredColumns(Protocol):
    """One open file, closed with the last reference. `fields` are the top-level columns, at every level with the ids
    that the file has. `starts` has the first row of each part, then the number of rows."""

    @property
    def fields(self) -> Sequence[ArrowField]: ...

    @property
    def starts(self) -> Starts: ...

    def batches(
        self, leaves: Sequence[int], *, groups: Sequence[int] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of parts in file order, each with the position of its first row, of the top-level columns that have
        any of `leaves`, in their order. A leaf is a column without parts; of the others a batch may lack some.

        `groups` None: all parts. A batch has at most `batch_rows` rows.
        """


def open_columns(
    storage: Storage, name: str, file_format: str, *, subject: str, decoder: GroupDecoder | None = None
) -> StoredColumns:
    """Open a file of one of FORMATS. `decoder` is for Parquet.

    Raises CorruptMetadata naming `subject` for other bytes, MissingFile, and RefusedTable for what is not decoded.
    """
    source = storage.open(name)
    if file_format == "parquet":
        return ParquetRows(source, subject=subject, decoder=decoder)
    return _OTHERS[file_format](source, subject)


def format_of_name(path: str) -> str:
    """The format that the end of a file's name states; Parquet if it states none of FORMATS."""
    suffix = path.rpartition(".")[2]
    return suffix if suffix in FORMATS else "parquet"


def footer_of(columns: StoredColumns) -> pq.FileMetaData | None:
    """The footer of a Parquet file; None for another."""
    return columns.footer if isinstance(columns, ParquetRows) else None


def calendar_of(columns: StoredColumns, *, subject: str) -> LegacyCalendar | None:
    """The old calendar of a Parquet file. Days in ORC files are numbers to Iceberg's readers, whatever calendar the
    footer names."""
    footer = footer_of(columns)
    return None if footer is None else legacy_calendar(footer, subject=subject)


class _OrcColumns:
    """An ORC file. A part is a stripe. Times without a zone are in UTC, or the file is refused."""

    def __init__(self, source: pa.NativeFile, subject: str) -> None:
        self._rows = OrcRows(source, subject=subject, in_utc=True)
        if OrcKind.CHAR in self._rows.footer.kinds:
            raise RefusedTable(subject, "a column of CHAR in an ORC file is not handled", "rewrite it as Parquet")
        self._subject = subject
        self.fields = [read_field(field) for field in self._rows.fields]
        self.starts: Starts = self._rows.starts

    def batches(
        self, leaves: Sequence[int], *, groups: Sequence[int] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        fields = [self.fields[place] for place in _tops(self.fields, leaves)]
        names = [field.name for field in fields]
        for part in range(len(self.starts) - 1) if groups is None else groups:
            start = int(self.starts[part])
            for batch in self._rows.batches(names, [part], rows=batch_rows):
                yield start, self._declared(batch, fields)
                start += batch.num_rows

    def _declared(self, batch: pa.RecordBatch, fields: Sequence[ArrowField]) -> pa.RecordBatch:
        if not fields:
            return batch
        try:
            arrays = [declared(array, field.type) for array, field in zip(batch.columns, fields, strict=True)]
        except ValueError as failure:
            raise CorruptMetadata(self._subject, "values of the types in its footer", reason_of(failure)) from failure
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class _AvroColumns:
    """An Avro file. A part is some blocks."""

    def __init__(self, source: pa.NativeFile, subject: str) -> None:
        self._columns = AvroColumns(source, subject=subject)
        if self._columns.branch is not None:
            raise RefusedTable(subject, "an Avro file of optional rows is not handled", "rewrite it as Parquet")
        self.fields = self._columns.fields
        self.starts: Starts = self._columns.starts

    def batches(
        self, leaves: Sequence[int], *, groups: Sequence[int] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        places = _tops(self.fields, leaves)
        for part in range(len(self.starts) - 1) if groups is None else groups:
            start = int(self.starts[part])
            for batch in self._columns.batches(places, part, rows=batch_rows):
                yield start, batch
                start += batch.num_rows


def _tops(fields: Sequence[ArrowField], leaves: Sequence[int]) -> list[int]:
    """The ascending indexes of the top-level columns that have any of these leaves."""
    found = np.searchsorted(leaf_bounds(fields), np.asarray(leaves, np.int64), side="right") - 1
    return [int(place) for place in np.unique(found)]


_OTHERS: Final[Mapping[str, Callable[[pa.NativeFile, str], StoredColumns]]] = {"orc": _OrcColumns, "avro": _AvroColumns}
FORMATS: Final = frozenset({"parquet", *_OTHERS})
"""Formats of files that are read, by their names in manifests, in lower case."""
