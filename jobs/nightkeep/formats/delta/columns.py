"""Data file bytes -> Arrow columns of the table's logical types and names, by the column mapping's mode.

Positions are physical row ordinals of the file. Every table handed out for one schema and the same names has the same
Arrow schema, whatever the file was written as. Values of partition columns come from the log, never from the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.delta.conform import ArrowField, Find, by_name, chunked, conform, field_id, finder
from nightkeep.formats.delta.metadata import DataFile, DeltaUnit
from nightkeep.formats.delta.schema import ColumnMapping, Field, TableSchema
from nightkeep.kernels.arrow_buffers import Array, ChunkedArray, one_array
from nightkeep.kernels.bitmap import Width, from_positions, mask
from nightkeep.kernels.twelve_bytes import open_parquet
from nightkeep.storage import Storage

ROW_ID: Final = "_metadata.row_id"
COMMIT_VERSION: Final = "_metadata.row_commit_version"
"""Stable row ids and row commit versions, as delta-spark calls the columns; with row tracking enabled only."""
BATCH_ROWS: Final = 1 << 16


def every_column(schema: TableSchema) -> tuple[str, ...]:
    """The names of the table's columns in its order, then of what row tracking keeps of a row."""
    names = tuple(field.name for field in schema.fields)
    return names if schema.row_tracking is None else (*names, ROW_ID, COMMIT_VERSION)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column to read: the file's field at place `held` (None: it has none) as `type`.

    Where it has none, the value is `constant`; where it has null too if `tracked`, and a row id counts on from there.
    """

    name: str
    type: pa.DataType
    stored: pa.DataType
    held: int | None
    constant: object = None
    tracked: bool = False


class FileReader:
    """One open data file of a unit; columns are asked for by their logical names, all of them by default.

    Raises CorruptMetadata naming the file and column for what is not as the schema has it, MissingFile, and
    RefusedTable for a file without field ids where columns are found by id.
    """

    def __init__(self, storage: Storage, unit: DeltaUnit, file: DataFile) -> None:
        self.subject = file.path
        self._unit, self._schema, self._file = unit, unit.schema, file
        path = storage.local_path(file.name)
        try:
            self._parquet, _ = open_parquet(path)
        except FileNotFoundError:
            raise MissingFile(path, "a data file that the log names", "no such file") from None
        except (pa.ArrowException, OSError, ValueError) as failure:
            raise CorruptMetadata(self.subject, "a Parquet file", str(failure)) from failure
        footer = self._parquet.metadata
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._fields: list[ArrowField] = list(self._parquet.schema_arrow)
        self._find = finder(self._schema.mapping)
        self._leaves = list(accumulate((_width(field.type) for field in self._fields), initial=0))
        self.rows: int = footer.num_rows

    def read(self, names: Sequence[str] | None = None) -> pa.Table:
        """The columns of all rows, in file order."""
        pieces = list(self.batches(names))
        return pa.concat_tables(pieces) if pieces else self._empty(names)

    def batches(self, names: Sequence[str] | None = None, *, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """The same, at most `batch_rows` rows at a time; no more than that of any column is in memory."""
        columns = self._columns(names)
        for _, piece in self._pieces(columns, range(len(self._starts) - 1), batch_rows):
            yield piece

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        """The rows at `positions`, in file order, in pieces; row groups without any are not read."""
        columns = self._columns(names)
        wanted = [group for group in range(len(self._starts) - 1) if self._held(positions, group)]
        for start, piece in self._pieces(columns, wanted, BATCH_ROWS):
            held = positions.range_cardinality(start, start + piece.num_rows)
            if held == piece.num_rows:
                yield piece
            elif held:
                yield piece.filter(pa.array(mask(positions, piece.num_rows, start)))

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        """`rows` of the file's rows, or all if it has no more: any set of them is as likely as any other."""
        chosen = np.random.default_rng(seed).choice(self.rows, min(rows, self.rows), replace=False, shuffle=False)
        pieces = list(self.taken(names, BitMap64(from_positions(chosen.astype(np.int64), Width.BITS_64))))
        return pa.concat_tables(pieces) if pieces else self._empty(names)

    def _held(self, positions: BitMap64, group: int) -> int:
        return int(positions.range_cardinality(int(self._starts[group]), int(self._starts[group + 1])))

    def _pieces(
        self, columns: Sequence[_Column], groups: Sequence[int], batch_rows: int
    ) -> Iterator[tuple[int, pa.Table]]:
        """Position of the first row, and the columns, in file order."""
        held = sorted({column.held for column in columns if column.held is not None})
        for group in groups:
            start, stop = int(self._starts[group]), int(self._starts[group + 1])
            for piece in self._decoded(group, held, max(1, min(batch_rows, stop - start))):
                found = dict(zip(held, piece.columns, strict=True))
                ordinals = range(start, start + piece.num_rows)
                arrays = [self._array(column, found, ordinals) for column in columns]
                yield start, pa.Table.from_arrays(arrays, schema=self._arrow_schema(columns))
                start += piece.num_rows
            if start != stop:
                subject, missing = f"{self.subject} row group {group}", stop - start
                raise CorruptMetadata(subject, "the rows in its pages that its footer counts", f"{missing} fewer")

    def _decoded(self, group: int, held: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        leaves = [leaf for place in held for leaf in range(self._leaves[place], self._leaves[place + 1])]
        # By number: Arrow takes a dot in a name for a path.
        pending = self._parquet.reader.iter_batches(batch_rows, [group], column_indices=leaves, use_threads=False)
        while True:
            with self._decoding():
                batch = next(pending, None)
            if batch is None:
                return
            yield batch

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as failure:
            raise CorruptMetadata(self.subject, "pages of a Parquet file", str(failure)) from failure

    def _array(self, column: _Column, held: Mapping[int, Array], ordinals: range) -> ChunkedArray:
        """Of rows at these positions; `held` are the file's own values by place."""
        if column.held is None:
            return chunked([self._filled(column, ordinals)], column.type)
        try:
            found = conform(chunked([held[column.held]], None), column.type, column.stored, self._find)
        except ValueError as failure:
            subject = f"{self.subject} column {column.name}"
            raise CorruptMetadata(subject, f"values of {column.type}", str(failure)) from failure
        if not column.tracked or not found.null_count:
            return found
        return chunked([pc.coalesce(one_array(found), self._filled(column, ordinals))], column.type)

    def _filled(self, column: _Column, ordinals: range) -> Array:
        """What the file has no values for."""
        base = column.constant
        if column.tracked and not isinstance(base, int):
            raise CorruptMetadata(self.subject, "a base row id and commit version: rows are tracked", "none")
        if column.tracked and column.name == ROW_ID and isinstance(base, int):
            return pa.array(np.arange(base + ordinals.start, base + ordinals.stop, dtype=np.int64))
        constant: Any = pa.scalar(base, column.type)
        return cast(Array, pa.repeat(constant, len(ordinals)))

    def _empty(self, names: Sequence[str] | None) -> pa.Table:
        return self._arrow_schema(self._columns(names)).empty_table()

    def _arrow_schema(self, columns: Sequence[_Column]) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in columns])

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
        place = self._found(by_name, name, pa.field(materialised, pa.int64()))
        return _Column(name, pa.int64(), pa.int64(), place, constant, tracked=True)

    def _place(self, field: Field) -> int | None:
        mapped = self._schema.mapping is ColumnMapping.ID
        if mapped and all(field_id(held) is None for held in self._fields):
            advice = "rewrite the table with the engine that wrote this file"
            raise RefusedTable(self.subject, "columns are found by id and the file has no field ids", advice)
        metadata = {"PARQUET:field_id": str(field.id)} if field.id is not None else None
        wanted = pa.field(field.physical, field.stored, metadata=metadata)
        return self._found(self._find, field.name, wanted)

    def _found(self, find: Find, name: str, wanted: ArrowField) -> int | None:
        try:
            return find(self._fields, wanted, 0)
        except ValueError as failure:
            raise CorruptMetadata(
                f"{self.subject} column {name}", f"one field {wanted.name}", str(failure)
            ) from failure


def _width(kind: pa.DataType) -> int:
    """How many Parquet columns hold the values of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    return sum(_width(kind.field(child).type) for child in range(kind.num_fields)) or 1
