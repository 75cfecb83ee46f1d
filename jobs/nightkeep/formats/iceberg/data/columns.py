"""Data file bytes -> Arrow columns of the table's current schema, resolved by field id.

Positions are row ordinals in the file. For one schema and the same names the Arrow schema is always the same, whatever
schema the file was written with. `keys` also reads equality delete files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import LongType, NestedField
from pyroaring import BitMap64

from nightkeep.encodings.legacy_calendar import require_one_calendar
from nightkeep.encodings.parquet_rows import BATCH_ROWS, GroupDecoder, leaf_bounds, only, parts_holding, sample
from nightkeep.errors import CorruptMetadata, reason_of, unfit_values
from nightkeep.formats.iceberg.data.conform import ConformRules, conform, constant, places
from nightkeep.formats.iceberg.data.stored_columns import calendar_of, footer_of, open_columns
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.features import refusal
from nightkeep.formats.iceberg.metadata.name_mapping import with_ids
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.types import arrow_type
from nightkeep.kernels.arrow_buffers import is_view_of
from nightkeep.model.arrow_types import Array, ArrowField
from nightkeep.model.variant_type import Shredding
from nightkeep.storage import Storage

ROW_ID: Final = "_row_id"
LAST_UPDATED: Final = "_last_updated_sequence_number"
"""Names of the row lineage columns, as Iceberg's readers call them. Only tables with row lineage have them."""
LINEAGE: Final[Mapping[str, NestedField]] = {
    ROW_ID: NestedField(2147483540, ROW_ID, LongType()),
    LAST_UPDATED: NestedField(2147483539, LAST_UPDATED, LongType()),
}
"""The row lineage columns by name, with their reserved field ids (spec, "Reserved Field IDs")."""


def every_column(schema: IcebergSchema) -> tuple[str, ...]:
    """The names of the current columns in their order, then of the row lineage columns if the table has them."""
    names = tuple(field.name for field in schema.current.fields)
    return (*names, *LINEAGE) if schema.has_row_lineage else names


_Held = tuple[tuple[int, ...], range, pa.DataType]
"""The path of indexes to a field in the file, the indexes of its leaf columns, and its type."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column to read: the table's `field`, returned as `name`.

    `places` is the path to it in the file, as indexes at the top and within structs; None if the file does not have
    it. `leaves` are the indexes of its leaf columns.
    """

    name: str
    field: NestedField
    places: tuple[int, ...] | None
    leaves: range
    held: pa.DataType

    @property
    def tracked(self) -> bool:
        return LINEAGE.get(self.name) is self.field


class IcebergFileReader:
    """One open data or delete file. Callers name columns by their current names; the default is all columns.

    Raises RefusedRows naming file and column for values that do not fit the schema, MissingFile, and RefusedTable
    for a file without field ids in a table without a name mapping. `rows` is the row count that the file states, and
    `parts` are those of its parts, such as row groups. `footer` is None for a file that is not Parquet. What `decoder`
    decodes has texts and bytes as Arrow's views. `held` are the file's own columns, with the ids that it has itself.
    With `Shredding.KEPT`, tables of two files have two schemas where their variants are shredded in other ways.
    """

    def __init__(
        self,
        storage: Storage,
        schema: IcebergSchema,
        file: ContentFile,
        *,
        decoder: GroupDecoder | None = None,
        shredding: Shredding = Shredding.ASSEMBLED,
    ) -> None:
        self.subject = file.path
        self._schema, self._file = schema, file
        self._stored = open_columns(storage, file.name, file.format, subject=file.path, decoder=decoder)
        self._shows_views = decoder is not None
        self._rules = ConformRules(self._filled, shredding)
        self._fields = with_ids(self._stored.fields, schema, subject=self.subject)
        self._by_name = {field.name: field for field in schema.current.fields}
        self._columns_held = self._columns_of_file()
        self._constants = _identities(schema, file)
        self.held = self._stored.fields
        self.rows, self.footer = int(self._stored.starts[-1]), footer_of(self._stored)
        self.parts: Sequence[int] = np.diff(self._stored.starts).tolist()
        self._calendar = calendar_of(self._stored, subject=file.path)

    def read(self, names: Sequence[str] | None = None) -> pa.Table:
        """The columns of all rows, in file order."""
        return self._whole(names, self.batches(names))

    def batches(self, names: Sequence[str] | None = None, *, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """As `read`, at most `batch_rows` rows at a time; only these rows are in memory."""
        for _, piece in self._pieces(self._columns(names), batch_rows=batch_rows):
            yield piece

    def keys(self, field_ids: Sequence[int], *, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """Key columns of all rows in file order. Each is named by the digits of its field id; no others are read.

        Dropped columns and nested fields are allowed. A value has the newest type of its field, and is null where a
        struct above it is null. A column missing in a data file is filled as in `read`; an equality delete file must
        have all of its key columns.
        """
        columns = [self._located(str(number), self._schema.field(number)) for number in field_ids]
        for column in columns:
            if column.places is None and self._file.content is FileContent.EQUALITY_DELETES:
                raise CorruptMetadata(self.subject, f"a column with field id {column.field.field_id}", "none")
        for _, piece in self._pieces(columns, batch_rows=batch_rows):
            yield piece

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        """The rows at `positions`, in file order, in several tables; parts without a position are not read."""
        groups = parts_holding(self._stored.starts, positions)
        yield from only(self._pieces(self._columns(names), groups=groups), positions)

    def pieces(self, names: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """The rows of parts in file order, each piece with the position of its first row."""
        return self._pieces(self._columns(names), groups=groups)

    def leaf_of(self, name: str) -> tuple[int, pa.DataType, pa.DataType] | None:
        """The index of the leaf that stores a column, its type there, and its type here; None if none or several do."""
        column = self._column(name)
        if column.places is None or len(column.places) > 1 or pa.types.is_nested(column.held):
            return None
        return column.leaves.start, column.held, arrow_type(column.field.field_type)

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        """A uniform random sample of `rows` rows, or all rows if the file has fewer."""
        return self._whole(names, self.taken(names, sample(self.rows, rows, seed)))

    def _whole(self, names: Sequence[str] | None, pieces: Iterable[pa.Table]) -> pa.Table:
        tables = list(pieces)
        return pa.concat_tables(tables) if tables else self._empty(self._columns(names))

    def _empty(self, columns: Sequence[_Column]) -> pa.Table:
        tops = [column.places[0] for column in columns if column.places is not None]
        held = {top: pa.nulls(0, self._fields[top].type) for top in tops}
        arrays = [self._array(column, held, range(0)) for column in columns]
        return pa.Table.from_arrays(arrays, [column.name for column in columns])

    def _pieces(
        self, columns: Sequence[_Column], *, groups: Sequence[int] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield tables in file order, each with the position of its first row."""
        tops = sorted({column.places[0] for column in columns if column.places is not None})
        leaves = sorted({leaf for column in columns for leaf in column.leaves})
        for start, piece in self._stored.batches(leaves, groups=groups, batch_rows=batch_rows):
            by_name = dict(zip(tops, piece.columns, strict=True))
            ordinals = range(start, start + piece.num_rows)
            arrays = [self._array(column, by_name, ordinals) for column in columns]
            yield start, pa.Table.from_arrays(arrays, [column.name for column in columns])

    def _array(self, column: _Column, tops: Mapping[int, Array], ordinals: range) -> Array:
        """The column's values at these positions; `tops` are the file's top-level columns by index."""
        if column.tracked:
            return self._lineage(column, tops, ordinals)
        if column.places is None:
            return self._filled(column.field, len(ordinals))
        return self._conformed(column, tops)

    def _conformed(self, column: _Column, tops: Mapping[int, Array]) -> Array:
        top, *below = column.places or ()
        try:
            array = _below(tops[top], self._fields[top].type, below)
            require_one_calendar(self._calendar, array, column.field.name)
            if self._shows_views and is_view_of(array.type, arrow_type(column.field.field_type)):
                return array
            return conform(array, column.held, column.field.field_type, self._rules)
        except ValueError as failure:
            subject = f"{self.subject} column {column.field.name} (id {column.field.field_id})"
            raise unfit_values(subject, f"values of {column.field.field_type}", reason_of(failure)) from failure

    def _lineage(self, column: _Column, tops: Mapping[int, Array], ordinals: range) -> Array:
        """Row lineage values: the stored ones, else inherited; null in a file without ids (spec, "Row Lineage")."""
        first = self._file.first_row_id
        if first is None:
            return pa.nulls(len(ordinals), pa.int64())
        inherited = np.full(len(ordinals), self._file.sequence_number, np.int64)
        if column.name == ROW_ID:
            inherited = np.arange(first + ordinals.start, first + ordinals.stop, dtype=np.int64)
        if column.places is None:
            return pa.array(inherited)
        stored = self._conformed(column, tops)
        return pc.coalesce(stored, pa.array(inherited)) if stored.null_count else stored

    def _filled(self, field: NestedField, rows: int) -> Array:
        """Values of a field missing in the file: its identity partition value, else its initial default, else null."""
        value = self._constants.get(field.field_id, field.initial_default)
        if self._file.format == "orc" and field.field_id not in self._constants and value is not None:
            use = f"{self.subject} has no column {field.name}, whose default is {value!r:.40}"
            raise refusal(self._schema.table, "default values in ORC files", use)
        return constant(value, arrow_type(field.field_type), rows)

    def _columns(self, names: Sequence[str] | None) -> list[_Column]:
        return [self._column(name) for name in (every_column(self._schema) if names is None else names)]

    def _column(self, name: str) -> _Column:
        if self._schema.has_row_lineage and name in LINEAGE:
            return self._located(name, LINEAGE[name])
        if name not in self._by_name:
            raise CorruptMetadata(f"{self._schema.table}: column {name}", "a column of the current schema", "none")
        return self._located(name, self._by_name[name])

    def _located(self, name: str, field: NestedField) -> _Column:
        """The column with its path in the file: at the top, or within structs."""
        held = self._columns_held.get(field.field_id)
        return _Column(name, field, *(held or (None, range(0), pa.null())))

    def _columns_of_file(self) -> Mapping[int, _Held]:
        try:
            return dict(_below_structs(self._fields, (), 0))
        except ValueError as failure:
            raise CorruptMetadata(self.subject, "fields with an id each", reason_of(failure)) from failure


def _identities(schema: IcebergSchema, file: ContentFile) -> dict[int, object]:
    """Values of the columns that the file's spec partitions by identity, by field id."""
    fields = schema.spec(file.spec_id).fields
    if len(fields) != len(file.partition):
        raise CorruptMetadata(file.path, f"{len(fields)} partition values", str(len(file.partition)))
    pairs = zip(fields, file.partition, strict=True)
    return {field.source_id: value for field, value in pairs if str(field.transform) == "identity"}


def _below_structs(fields: Sequence[ArrowField], above: tuple[int, ...], leaf: int) -> Iterator[tuple[int, _Held]]:
    """Fields that have an id, at the top or within structs, by id; `leaf` is the index of their first leaf column."""
    starts = leaf_bounds(fields, leaf)
    for number, place in places(fields).items():
        yield number, ((*above, place), range(starts[place], starts[place + 1]), fields[place].type)
    for place, field in enumerate(fields):
        if isinstance(field.type, pa.StructType):
            yield from _below_structs(list(field.type), (*above, place), starts[place])


def _below(array: Array, held: pa.DataType, places: Sequence[int]) -> Array:
    """The field at the path `places`. The array may have fewer struct fields than `held`: not all were read."""
    for place in places:
        name = held.field(place).name
        struct = cast(pa.StructArray, array)
        array, held = struct.flatten()[array.type.get_field_index(name)], held.field(place).type
    return array
