"""Data file bytes -> Arrow columns with the table's logical types and names, matched by the column mapping's mode.

Positions are physical row ordinals of the file. All tables of one schema and the same names have the same Arrow schema,
whatever types the files have. Values of partition columns come from the log, never from the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from nightkeep.encodings.legacy_calendar import legacy_calendar
from nightkeep.encodings.parquet_rows import (
    BATCH_ROWS,
    GroupDecoder,
    ParquetRows,
    leaf_bounds,
    only,
    parts_holding,
    sample,
)
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of, unfit_values
from nightkeep.formats.delta.data.conform import FileRules, Find, by_name, chunked, conform, finder
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.kernels.arrow_buffers import is_view_of, one_array
from nightkeep.model.arrow_types import FIELD_ID, Array, ArrowField, ChunkedArray, Datum, field_id
from nightkeep.model.variant_type import Shredding
from nightkeep.storage import Storage

ROW_ID: Final = "_metadata.row_id"
COMMIT_VERSION: Final = "_metadata.row_commit_version"
"""delta-spark's names of stable row ids and row commit versions. Only with row tracking enabled."""


def every_column(schema: DeltaSchema) -> tuple[str, ...]:
    """The names of the table's columns, in its order, then those of row tracking."""
    names = tuple(field.name for field in schema.fields)
    return names if schema.row_tracking is None else (*names, ROW_ID, COMMIT_VERSION)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column to read: the file's field at index `held`, as `type`. `held` is None if the file has no such field.

    A missing field is filled with `constant`. If `tracked`, nulls in the file are filled too, and a row id counts up
    from `constant`.
    """

    name: str
    type: pa.DataType
    stored: pa.DataType
    held: int | None
    constant: object = None
    tracked: bool = False


class DeltaFileReader:
    """One open data file of a unit. Columns are requested by logical name, all by default.

    Raises RefusedRows naming the file and column whose values do not fit the schema, CorruptMetadata, MissingFile, and
    RefusedTable for a file without field ids where columns are matched by id. What `decoder` decodes has texts and
    bytes as Arrow's views. With `Shredding.KEPT`, tables of two files have two schemas where their shredding differs.
    """

    def __init__(
        self,
        storage: Storage,
        unit: DeltaUnit,
        file: DeltaDataFile,
        *,
        decoder: GroupDecoder | None = None,
        shredding: Shredding = Shredding.ASSEMBLED,
    ) -> None:
        self.subject = file.path
        self._unit, self._schema, self._file = unit, unit.schema, file
        self._parquet = ParquetRows(storage.open(file.name), subject=file.path, decoder=decoder)
        calendar = legacy_calendar(self._parquet.footer, subject=file.path)
        self._shows_views = decoder is not None
        self._rules = FileRules(finder(self._schema.mapping), calendar, shredding)
        self._leaves = leaf_bounds(self._parquet.fields)
        self.rows, self.footer = self._parquet.rows, self._parquet.footer

    def read(self, names: Sequence[str] | None = None) -> pa.Table:
        """The columns of all rows, in file order."""
        return self._whole(names, self.batches(names))

    def batches(self, names: Sequence[str] | None = None, *, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """As `read`, at most `batch_rows` rows at a time. No more rows of any column are in memory."""
        for _, piece in self._pieces(self._columns(names), batch_rows=batch_rows):
            yield piece

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        """The rows at `positions`, in file order, in pieces. Row groups without such rows are not read."""
        yield from only(
            self._pieces(self._columns(names), groups=parts_holding(self._parquet.starts, positions)), positions
        )

    def pieces(self, names: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """The rows of row groups in file order, each piece with the position of its first row."""
        return self._pieces(self._columns(names), groups=groups)

    def leaf_of(self, name: str) -> tuple[int, pa.DataType, pa.DataType] | None:
        """The index of the Parquet column that stores a column, its type there, and its type here; None if no Parquet
        column does, or several do. None too where values move on reading, so that bounds in the file are of others."""
        column = self._column(name)
        is_moved = self._rules.calendar is not None and pa.types.is_temporal(column.type)
        if column.held is None or is_moved or pa.types.is_nested(self._parquet.fields[column.held].type):
            return None
        return self._leaves[column.held], self._parquet.fields[column.held].type, column.type

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        """A uniform random sample of `rows` rows, or all rows if the file has no more."""
        return self._whole(names, self.taken(names, sample(self.rows, rows, seed)))

    def _whole(self, names: Sequence[str] | None, pieces: Iterable[pa.Table]) -> pa.Table:
        tables = list(pieces)
        return pa.concat_tables(tables) if tables else self._empty(self._columns(names))

    def _empty(self, columns: Sequence[_Column]) -> pa.Table:
        places = [column.held for column in columns if column.held is not None]
        held = {place: pa.nulls(0, self._parquet.fields[place].type) for place in places}
        arrays = [self._array(column, held, range(0)) for column in columns]
        return pa.Table.from_arrays(arrays, [column.name for column in columns])

    def _pieces(
        self, columns: Sequence[_Column], *, groups: Sequence[int] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.Table]]:
        """Pairs of the first row's position and the columns, in file order."""
        held = sorted({column.held for column in columns if column.held is not None})
        leaves = [leaf for place in held for leaf in range(self._leaves[place], self._leaves[place + 1])]
        for start, piece in self._parquet.batches(leaves, groups=groups, batch_rows=batch_rows):
            by_name = dict(zip(held, piece.columns, strict=True))
            ordinals = range(start, start + piece.num_rows)
            arrays = [self._array(column, by_name, ordinals) for column in columns]
            yield start, pa.Table.from_arrays(arrays, [column.name for column in columns])

    def _array(self, column: _Column, held: Mapping[int, Array], ordinals: range) -> ChunkedArray:
        """The column for the rows at `ordinals`. `held` has the file's own values by index."""
        if column.held is None:
            return chunked([self._filled(column, ordinals)], column.type)
        if self._shows_views and is_view_of(held[column.held].type, column.type):
            return chunked([held[column.held]], None)
        try:
            array = conform(chunked([held[column.held]], None), column.type, column.stored, self._rules)
        except ValueError as failure:
            subject = f"{self.subject} column {column.name}"
            raise unfit_values(subject, f"values of {column.type}", reason_of(failure)) from failure
        if not column.tracked or not array.null_count:
            return array
        return chunked([pc.coalesce(one_array(array), self._filled(column, ordinals))], column.type)

    def _filled(self, column: _Column, ordinals: range) -> Array:
        """Values for a column that the file does not have."""
        base = column.constant
        if column.tracked and not isinstance(base, int):
            raise CorruptMetadata(self.subject, "a base row id and commit version: rows are tracked", "none")
        if column.tracked and column.name == ROW_ID and isinstance(base, int):
            return pa.array(np.arange(base + ordinals.start, base + ordinals.stop, dtype=np.int64))
        constant: Datum = pa.scalar(base, column.type)
        return cast(Array, pa.repeat(constant, len(ordinals)))

    def _columns(self, names: Sequence[str] | None) -> list[_Column]:
        return [self._column(name) for name in (every_column(self._schema) if names is None else names)]

    def _column(self, name: str) -> _Column:
        tracking, raw = self._schema.row_tracking, self._file.raw
        if tracking is not None and name == ROW_ID:
            return self._tracked(name, tracking.row_id, raw.get("baseRowId"))
        if tracking is not None and name == COMMIT_VERSION:
            return self._tracked(name, tracking.commit_version, raw.get("defaultRowCommitVersion"))
        field = self._schema.field(name)
        if name in self._schema.partition_columns:
            return _Column(name, field.type, field.stored, None, self._unit.partition[name])
        return _Column(name, field.type, field.stored, self._place(field))

    def _tracked(self, name: str, materialised: str, constant: object) -> _Column:
        place = self._index(by_name, name, pa.field(materialised, pa.int64()))
        return _Column(name, pa.int64(), pa.int64(), place, constant, tracked=True)

    def _place(self, field: DeltaField) -> int | None:
        mapped = self._schema.mapping is ColumnMapping.ID
        if mapped and all(field_id(held) is None for held in self._parquet.fields):
            advice = "rewrite the table with the engine that wrote this file"
            raise RefusedTable(self.subject, "columns are found by id and the file has no field ids", advice)
        metadata = {FIELD_ID: str(field.id).encode()} if field.id is not None else None
        named = pa.field(field.physical, field.stored, metadata=metadata)
        return self._index(self._rules.find, field.name, named)

    def _index(self, find: Find, name: str, named: ArrowField) -> int | None:
        try:
            return find(self._parquet.fields, named, 0)
        except ValueError as failure:
            expected = f"one field {named.name}"
            raise unfit_values(f"{self.subject} column {name}", expected, reason_of(failure)) from failure
