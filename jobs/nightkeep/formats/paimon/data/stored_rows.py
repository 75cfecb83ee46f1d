"""The bytes of a data file -> its columns under their stored names, whatever the file's format.

A file has parts that are read as a whole: row groups of Parquet, stripes of ORC, all of an Avro file. Positions are
row ordinals in the file. The rows of parts are checked against the footer's counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.encodings.arrow_limits import LIMITS, beyond_arrow
from nightkeep.encodings.avro_columns import PART_ROWS, AvroColumns
from nightkeep.encodings.legacy_calendar import legacy_calendar
from nightkeep.encodings.open_parquet import open_parquet
from nightkeep.encodings.orc_rows import OrcRows
from nightkeep.encodings.parquet_rows import GroupDecoder, ParquetGroup, group_batches, leaf_bounds
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.paimon.metadata.file_formats import format_of
from nightkeep.kernels.int96 import times
from nightkeep.model.arrow_types import ChunkedArray

Edges: TypeAlias = tuple[Any, Any]
"""The least and the greatest value, as the file's format gives them."""


class StoredRows(Protocol):
    """One open file. `names` are its top-level columns; `starts` has the first row of each part, then the row count.

    `pads_chars`: values of CHAR(n) come padded with blanks, or are to be read as if they did.
    """

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def starts(self) -> npt.NDArray[np.int64]: ...

    @property
    def pads_chars(self) -> bool: ...

    def read(self, names: Sequence[str], parts: Sequence[int]) -> pa.Table:
        """Columns of whole parts, in file order. `names` are distinct and among the file's."""

    def batches(self, names: Sequence[str], parts: Sequence[int], *, rows: int) -> Iterator[pa.RecordBatch]:
        """As `read`, at most `rows` rows at a time."""

    def edges(self, name: str, part: int) -> Edges | None:
        """The range of a column in one part; None if the file does not state it."""


def open_stored(source: pa.NativeFile, name: str, *, subject: str, decoder: GroupDecoder | None = None) -> StoredRows:
    """Open a data file by the format of its name. `decoder` is for Parquet files.

    Raises CorruptMetadata naming `subject` for other bytes, and RefusedTable for another format.
    """
    suffix = format_of(name)
    if suffix not in _FORMATS:
        raise RefusedTable(subject, f"a data file of format {suffix} is not handled", f"{', '.join(_FORMATS)} are")
    return ParquetStoredRows(source, subject, decoder) if suffix == "parquet" else _FORMATS[suffix](source, subject)


def beyond_nanoseconds(subject: str) -> RefusedTable:
    """The refusal of a column of times that Arrow cannot hold."""
    return RefusedTable(
        subject,
        "times outside the years 1678 to 2261 with nanoseconds are not handled",
        "store them with a precision of at most 6",
    )


class ParquetStoredRows:
    """A Parquet file. Times of twelve bytes come as nanoseconds, maps with optional keys as lists of entries, and of
    batches that `decoder` decodes, texts and bytes as Arrow's views."""

    pads_chars: Final = False

    def __init__(self, source: pa.NativeFile, subject: str, decoder: GroupDecoder | None = None) -> None:
        self._subject, self._source, self._decoder = subject, source, decoder
        try:
            self.parquet, self._twelve_bytes = open_parquet(source, shows_entries=True)
        except (pa.ArrowInvalid, OSError) as failure:
            raise CorruptMetadata(subject, "a Parquet file", reason_of(failure)) from failure
        footer = self.parquet.metadata
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        self.starts: npt.NDArray[np.int64] = np.cumsum([0, *sizes], dtype=np.int64)
        self.names: Sequence[str] = self.parquet.schema_arrow.names
        leaves = map(self.parquet.schema.column, range(footer.num_columns))
        self.flat = {leaf.path: leaf for leaf in leaves if leaf.path == leaf.name}
        """Columns without parts, by name."""
        self.calendar = legacy_calendar(footer, subject=subject)

    def read(self, names: Sequence[str], parts: Sequence[int]) -> pa.Table:
        with self._decoding():
            table = self.parquet.read_row_groups(list(parts), columns=list(names), use_threads=False)
        self._require_rows(parts, table.num_rows)
        for name in self._twelve_bytes & set(names):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, self._times(name, table))
        return table

    def batches(self, names: Sequence[str], parts: Sequence[int], *, rows: int) -> Iterator[pa.RecordBatch]:
        pending = self._pending(names, parts, rows)
        count = 0
        while True:
            with self._decoding():
                batch = next(pending, None)
            if batch is None:
                break
            count += batch.num_rows
            for name in self._twelve_bytes & set(names):
                column = self._times(name, pa.Table.from_batches([batch])).combine_chunks()
                batch = batch.set_column(batch.schema.get_field_index(name), name, column)
            yield batch
        self._require_rows(parts, count)

    def _pending(self, names: Sequence[str], parts: Sequence[int], rows: int) -> Iterator[pa.RecordBatch]:
        if self._decoder is None:
            return self._of_arrow(names, parts, rows)
        footer, fields = self.parquet.metadata, list(self.parquet.schema_arrow)
        starts = leaf_bounds(fields)
        places = sorted(self.names.index(name) for name in names)
        leaves = [leaf for place in places for leaf in range(starts[place], starts[place + 1])]
        groups = (ParquetGroup(self._source, footer, fields, part, leaves, self._subject) for part in parts)
        return chain.from_iterable(
            group_batches(group, rows, self._decoder, self._of_arrow(names, [group.number], rows)) for group in groups
        )

    def _of_arrow(self, names: Sequence[str], parts: Sequence[int], rows: int) -> Iterator[pa.RecordBatch]:
        return self.parquet.iter_batches(rows, row_groups=list(parts), columns=list(names), use_threads=False)

    def edges(self, name: str, part: int) -> Edges | None:
        number = self.parquet.schema_arrow.get_field_index(name)
        statistics = self.parquet.metadata.row_group(part).column(number).statistics
        return None if statistics is None or not statistics.has_min_max else (statistics.min, statistics.max)

    def _times(self, name: str, table: pa.Table) -> ChunkedArray:
        instants = times(table.column(name))
        if instants is None:
            raise beyond_nanoseconds(f"{self._subject} column {name}")
        return instants

    def _require_rows(self, parts: Sequence[int], row_count: int) -> None:
        expected = sum(int(self.starts[part + 1] - self.starts[part]) for part in parts)
        if row_count != expected:
            raise CorruptMetadata(self._subject, f"{expected} rows in its pages, as its footer states", str(row_count))

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except LIMITS as failure:
            raise beyond_arrow(self._subject, failure) from failure
        except (pa.ArrowException, OSError) as failure:
            raise CorruptMetadata(self._subject, "pages of a Parquet file", reason_of(failure)) from failure


class OrcStoredRows:
    """An ORC file. Java's readers take trailing blanks off CHAR values, however a file stores them."""

    pads_chars: Final = True

    def __init__(self, source: pa.NativeFile, subject: str) -> None:
        self._rows = OrcRows(source, subject=subject)
        self.names: Sequence[str] = self._rows.names
        self.starts: npt.NDArray[np.int64] = self._rows.starts

    def read(self, names: Sequence[str], parts: Sequence[int]) -> pa.Table:
        return self._rows.read(names, parts)

    def batches(self, names: Sequence[str], parts: Sequence[int], *, rows: int) -> Iterator[pa.RecordBatch]:
        return self._rows.batches(names, parts, rows=rows)

    def edges(self, name: str, part: int) -> Edges | None:
        return None


class AvroStoredRows:
    """An Avro file. A part is some blocks.

    Java writes TIMESTAMP as `timestamp-*` and TIMESTAMP WITH LOCAL TIME ZONE as `local-timestamp-*`; both are read as
    times without a zone.
    """

    pads_chars: Final = False

    def __init__(self, source: pa.NativeFile, subject: str) -> None:
        self._columns = AvroColumns(source, subject=subject)
        self.names: Sequence[str] = [field.name for field in self._columns.fields]
        self.starts: npt.NDArray[np.int64] = self._columns.starts

    def read(self, names: Sequence[str], parts: Sequence[int]) -> pa.Table:
        kinds = {field.name: field.type for field in self._columns.fields}
        schema = pa.schema([(name, kinds[name]) for name in names])
        return pa.Table.from_batches(self.batches(names, parts, rows=PART_ROWS), schema)

    def batches(self, names: Sequence[str], parts: Sequence[int], *, rows: int) -> Iterator[pa.RecordBatch]:
        places = sorted(self.names.index(name) for name in names)
        for part in parts:
            for batch in self._columns.batches(places, part, rows=rows):
                yield batch.select(list(names))

    def edges(self, name: str, part: int) -> Edges | None:
        return None


_FORMATS: Final[Mapping[str, Callable[[pa.NativeFile, str], StoredRows]]] = {
    "parquet": ParquetStoredRows,
    "orc": OrcStoredRows,
    "avro": AvroStoredRows,
}
