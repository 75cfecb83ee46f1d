"""Rows in their final order -> data files of one partition, with the metrics that readers prune by.

The table's properties choose the format, Parquet or ORC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import BinaryIO, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.types import BooleanType, NestedField, UnknownType

from nightkeep.encodings.nested_values import typed_as
from nightkeep.encodings.orc_writing import write_rows
from nightkeep.encodings.parquet_settings import CODECS, DATA_SETTINGS, PAGE_ROWS, WriterOptions
from nightkeep.encodings.variant_groups import parquet_output
from nightkeep.errors import RefusedTable, reason_of, unfit_values
from nightkeep.formats.iceberg.data.columns import LINEAGE
from nightkeep.formats.iceberg.data.conform import stored
from nightkeep.formats.iceberg.data.file_statistics import IcebergFileStats, footer_facts
from nightkeep.formats.iceberg.data.orc_output import BATCH_ROWS, orc_field, orc_output
from nightkeep.formats.iceberg.data.orc_output import settings as orc_settings
from nightkeep.formats.iceberg.metadata.content_files import FileContent, NewFile
from nightkeep.formats.iceberg.metadata.file_formats import data_format
from nightkeep.formats.iceberg.metadata.leaf_columns import StatsModes, leaves_of
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.new_locations import data_location
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.sort_orders import UNSORTED
from nightkeep.formats.iceberg.metadata.types import parquet_field
from nightkeep.kernels.row_groups import ROW_GROUP_ROWS, ChunkSource, FileLimit, with_bounds, with_dictionaries
from nightkeep.model.arrow_types import Array, ArrowField, ChunkedArray
from nightkeep.storage import Storage

_DEFAULT_LEVELS: Final = {"zstd": 3}
"""Java's default level of zstd; Arrow's is 1."""
_LEVELLED: Final = frozenset({"gzip", "zstd", "brotli"})
N = TypeVar("N", int, float)
BloomFilters = dict[str, dict[str, float]]
"""The expected values and the rate of false matches of each column's filter, as pyarrow takes them."""
Facts = Mapping[str, object]
"""What only the file's own footer states, by the names of data_file."""
_BLOOM: Final = "write.parquet.bloom-filter-"


class Lineage(Enum):
    """Whether rows already have row ids, which are written with them. New rows get theirs from the commit."""

    CARRIED = "carried"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class WrittenIcebergFile:
    """A new data file: its name in storage, its rows and bytes, and the `file` that a commit adds."""

    name: str
    rows: int
    bytes: int
    file: NewFile = field(hash=False, repr=False)


class IcebergFileWriter:
    """Writes files of one partition: the partition `values` of spec `spec_id`, in the form of manifests.

    `columns` names what chunks must have: the current columns and, for rows that are not new in a table with row
    lineage, the lineage columns with inherited values filled in. Other columns of a chunk are dropped. Files get the
    data sequence number `sequence_number`, or the commit's if None. Table properties set codec, sizes and metrics.
    `sort_order_id` names the order that the rows of every chunk have. `group_bytes`: the stored size of a row group at
    most.
    """

    def __init__(
        self,
        storage: Storage,
        schema: IcebergSchema,
        naming: IcebergNaming,
        *,
        spec_id: int,
        values: Sequence[object],
        sequence_number: int | None = None,
        lineage: Lineage = Lineage.CARRIED,
        sort_order_id: int = UNSORTED,
        group_bytes: int | None = None,
    ) -> None:
        self._storage, self._schema, self._naming = storage, schema, naming
        self._spec_id, self._values, self._sequence = spec_id, tuple(values), sequence_number
        self._sort_order_id, self._stored_group_bytes = sort_order_id, group_bytes
        self._fields, self._format = _fields(schema, lineage), data_format(schema)
        self._modes = StatsModes(schema)
        self._is_orc = self._format == "orc"
        self._settings = orc_settings(schema) if self._is_orc else _settings(schema)
        self._stored = pa.schema([(orc_field if self._is_orc else parquet_field)(column) for column in self._fields])
        # Java's writer also stores the schema under this key.
        self._key_values = {"iceberg.schema": schema.current.model_dump_json()}
        self._group_bytes = _number(schema, "write.parquet.row-group-size-bytes", 128 << 20)
        self._row_bytes: float | None = None
        self._dictionaries: list[str] | None = None
        self.columns: tuple[str, ...] = tuple(column.name for column in self._fields)

    def write(
        self, chunks: Iterable[pa.Table], *, target_bytes: int | None = None, rows_per_file: int | None = None
    ) -> list[WrittenIcebergFile]:
        """Write all rows in their order; no file for no rows. Pass exactly one of the limits.

        Each file but the last has `rows_per_file` rows, or about `target_bytes` bytes. One row group is in memory at a
        time. Raises RefusedRows for a null in a required column.
        """
        limit = FileLimit(target_bytes, rows_per_file, self._group_bytes, self._stored_group_bytes)
        source = ChunkSource(chunks)
        files: list[WrittenIcebergFile] = []
        while source.row_bytes is not None:
            files.append(self._write_file(source, limit))
        return files

    def _write_file(self, source: ChunkSource, limit: FileLimit) -> WrittenIcebergFile:
        place = self._naming.data(self._format)
        location = data_location(self._schema, self._spec_id, self._values, place)
        name, stats = name_in(self._storage, location), IcebergFileStats(self._fields, self._modes)
        write = self._write_stripes if self._is_orc else self._write_groups
        with self._storage.create(name) as sink:
            facts = write(sink, source, limit, stats)
            size = sink.tell()
        self._row_bytes = size / stats.rows
        raw: dict[str, object] = {
            "content": int(FileContent.DATA),
            "file_path": location,
            "file_format": self._format.upper(),
            "partition": self._values,
            "record_count": stats.rows,
            "file_size_in_bytes": size,
            **stats.metrics(),
            **facts,
            "sort_order_id": self._sort_order_id,
        }
        new = NewFile(FileContent.DATA, self._spec_id, raw, self._sequence)
        return WrittenIcebergFile(name, stats.rows, size, new)

    def _write_stripes(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: IcebergFileStats) -> Facts:
        """No facts: engines split a file without offsets by bytes."""
        with orc_output(sink, self._settings, target_bytes=limit.bytes) as writer:
            while group := self._stripe_rows(sink, source, limit, stats):
                rows = source.take(group)
                write_rows(writer, self._as_stored(rows), batch_rows=BATCH_ROWS)
                stats.add(rows)
        return {}

    def _stripe_rows(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: IcebergFileStats) -> int:
        # What is not yet in a stripe is not yet in the sink.
        size = max(sink.tell(), int((self._row_bytes or 0) * stats.rows))
        return limit.group_rows(source.row_bytes, self._row_bytes, size=size, written=stats.rows)

    def _write_groups(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: IcebergFileStats) -> Facts:
        group = self._group(sink, source, limit, stats)
        if self._dictionaries is None:
            self._dictionaries = with_dictionaries(group.select(self.columns))
        rows = self._as_stored(group)
        footers: list[pq.FileMetaData] = []
        settings = {
            **self._settings,
            "use_dictionary": self._dictionaries,
            "bloom_filter_options": _bloom_filters(self._schema, self._fields, group.num_rows),
            "metadata_collector": footers,
        }
        held = rows.schema
        with parquet_output(sink, held, write_statistics=with_bounds(held), **settings) as writer:
            writer.add_key_value_metadata(self._key_values)
            while group.num_rows:
                writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
                stats.add(group)
                self._row_bytes = sink.tell() / stats.rows
                group = self._group(sink, source, limit, stats)
                rows = self._as_stored(group)
        return footer_facts(footers[0], held, self._modes)

    def _group(self, sink: BinaryIO, source: ChunkSource, limit: FileLimit, stats: IcebergFileStats) -> pa.Table:
        rows = limit.group_rows(source.row_bytes, self._row_bytes, size=sink.tell(), written=stats.rows)
        return source.take(rows)

    def _as_stored(self, chunk: pa.Table) -> pa.Table:
        """The chunk with the types of data files. Shredded variants keep their typed columns."""
        columns = [_as_stored(chunk, place) for place in self._stored]
        fields = [typed_as(place, column) for place, column in zip(self._stored, columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _as_stored(chunk: pa.Table, place: ArrowField) -> ChunkedArray:
    column = chunk.column(place.name)
    if column.null_count and not place.nullable:
        raise unfit_values(f"column {place.name}", "no nulls", f"{column.null_count} of {chunk.num_rows}")
    try:
        pieces: list[Array] = [stored(piece, place.type, place.name) for piece in column.chunks]
    except ValueError as failure:
        raise unfit_values(f"column {place.name}", f"values of {place.type}", reason_of(failure)) from failure
    return pa.chunked_array(pieces) if pieces else pa.chunked_array(pieces, place.type)


def _fields(schema: IcebergSchema, lineage: Lineage) -> tuple[NestedField, ...]:
    """The columns of data files. Columns of type unknown are always null and not written (spec, "Primitive Types")."""
    columns = tuple(column for column in schema.current.fields if not isinstance(column.field_type, UnknownType))
    carried = schema.has_row_lineage and lineage is Lineage.CARRIED
    return (*columns, *LINEAGE.values()) if carried else columns


def _settings(schema: IcebergSchema) -> WriterOptions:
    codec = schema.properties.get("write.parquet.compression-codec", "zstd").lower()
    if codec not in CODECS:
        raise RefusedTable(schema.table, f"compression {codec} is not handled", "set it to zstd or snappy")
    level = _number(schema, "write.parquet.compression-level", _DEFAULT_LEVELS.get(codec, -1))
    return {
        "compression": CODECS[codec],
        "compression_level": level if codec in _LEVELLED and level >= 0 else None,
        **DATA_SETTINGS,
        "data_page_size": _number(schema, "write.parquet.page-size-bytes", 1 << 20),
        "max_rows_per_page": _number(schema, "write.parquet.page-row-limit", PAGE_ROWS),
        "dictionary_pagesize_limit": _number(schema, "write.parquet.dict-size-bytes", 2 << 20),
    }


def _bloom_filters(schema: IcebergSchema, fields: Sequence[NestedField], rows: int) -> BloomFilters | None:
    """Bloom filter settings of the columns that the table's properties name.

    `rows` is the estimate of distinct values, unless a property sets it.
    """
    filters: BloomFilters = {}
    for leaf in (leaf for column in fields for leaf in leaves_of(column)):
        name = ".".join(leaf.path)
        enabled = schema.properties.get(f"{_BLOOM}enabled.column.{name}", "").lower() == "true"
        # Lists, maps and booleans have no filter, as in Java.
        if enabled and leaf.ordered and not isinstance(leaf.field.field_type, BooleanType):
            ndv = _number(schema, f"{_BLOOM}ndv.column.{name}", rows)
            filters[name] = {"ndv": ndv, "fpp": _number(schema, f"{_BLOOM}fpp.column.{name}", 0.01)}
    return filters or None


def _number(schema: IcebergSchema, key: str, default: N) -> N:
    """A table property as a number of the type of `default`. Raises RefusedTable if it is none: Java then reads, and
    fails to write."""
    text = schema.properties.get(key)
    try:
        return default if text is None else type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise RefusedTable(schema.table, f"table property {key} is {text!r}, which is not {kind}", "set it") from None
