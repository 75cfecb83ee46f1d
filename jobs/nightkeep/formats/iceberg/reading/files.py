"""A partition's files -> their bounds, their deleted rows and their rows, as readers see them.

Which rows all kinds of deletes leave is computed by the gate's own code: what it proves is what people read.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa
from pyiceberg.types import FixedType, UUIDType
from pyroaring import BitMap64

from nightkeep.encodings.parquet_statistics import GroupedRows
from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.conform import constant
from nightkeep.formats.iceberg.data.partition_values import require_partition_values
from nightkeep.formats.iceberg.gate.scan import survivors
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.conversions import from_bytes
from nightkeep.formats.iceberg.metadata.leaf_columns import IcebergLeaf, leaves
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.types import arrow_type, shown_schema
from nightkeep.kernels.spans import ColumnSpans
from nightkeep.model.arrow_types import Array
from nightkeep.protocol.reading import FileSection, Path, ReadFile, ReadView, RowFile
from nightkeep.storage import Storage


def default_view(snapshot: IcebergSnapshot) -> ReadView:
    return ReadView.MERGE_ON_READ


def sections(snapshot: IcebergSnapshot, view: ReadView) -> Sequence[FileSection[IcebergUnit]]:
    """All files. Raises RefusedTable for a raw view with equality deletes, which are applied by joins, for one of
    compacted files, and for a partition that is not read."""
    table = snapshot.table.name
    if view is ReadView.READ_OPTIMIZED:
        feature = f"view {view} is not handled: files of Iceberg tables have no levels"
        raise RefusedTable(table, feature, f"use view {ReadView.MERGE_ON_READ} or none")
    for unit in snapshot.units:
        if unit.unread is not None:
            raise unit.unread
        if view is ReadView.RAW and unit.equality:
            feature = f"view {view} of a table with equality deletes is not handled"
            raise RefusedTable(table, feature, f"use view {ReadView.MERGE_ON_READ} or none")
    return [
        FileSection(unit, tuple(ReadFile(file.name, file.bytes, file.rows) for file in unit.files))
        for unit in snapshot.units
        if unit.files
    ]


def narrowed(unit: IcebergUnit, names: Collection[str]) -> IcebergUnit:
    """The unit with only these data files, and the position deletes that may be of them."""
    files = tuple(file for file in unit.files if file.name in names)
    paths = {file.path for file in files}
    positional = tuple(file for file in unit.positional if file.referenced is None or file.referenced in paths)
    return replace(unit, files=files, positional=positional)


def content(unit: IcebergUnit) -> Hashable:
    """The files with their sequence numbers, and all deletes in their scope."""
    every = (*unit.files, *unit.positional, *unit.equality)
    return frozenset((file.identity, file.bytes, file.sequence_number) for file in every)


def columns(snapshot: IcebergSnapshot) -> pa.Schema:
    return pa.schema([(field.name, arrow_type(field.field_type)) for field in snapshot.schema.current.fields])


def shown(snapshot: IcebergSnapshot) -> pa.Schema:
    """The columns with uuids."""
    read = columns(snapshot)
    return pa.schema(
        [field for field in shown_schema(snapshot.schema.current) if field.type != read.field(field.name).type]
    )


def partition_spans(unit: IcebergUnit, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
    """The values of the columns that partition the unit by identity."""
    return _constants(unit, paths, 1)


def file_spans(unit: IcebergUnit, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
    """Bounds by the manifests. Those of uuids are left out, as Java orders them otherwise, and those of fixed."""
    wanted = [leaf for leaf in leaves(unit.schema) if leaf.path in paths and leaf.ordered and _is_read(leaf)]
    return {**{leaf.path: _bounds(unit.files, leaf) for leaf in wanted}, **_constants(unit, paths, len(unit.files))}


def _is_read(leaf: IcebergLeaf) -> bool:
    return not isinstance(leaf.field.field_type, UUIDType | FixedType)


def _bounds(files: Sequence[ContentFile], leaf: IcebergLeaf) -> ColumnSpans:
    number = leaf.field.field_id
    lows, highs = (pa.concat_arrays([_bound(file, leaf, side) for file in files]) for side in ("lower", "upper"))
    nulls: Array = pa.array([_count(file, number) for file in files], pa.int64())
    return ColumnSpans(lows, highs, nulls, pa.array([file.rows for file in files], pa.int64()))


def _count(file: ContentFile, number: int) -> int | None:
    nulls = file.count("null_value_counts", number)
    return nulls if nulls is not None and 0 <= nulls <= file.rows else None


def _bound(file: ContentFile, leaf: IcebergLeaf, side: str) -> Array:
    """One bound; null if it is missing, or was written with a type that the column no longer has."""
    unknown: Array = pa.array([None], leaf.type)
    stored = file.bound(f"{side}_bounds", leaf.field.field_id)
    if stored is None:
        return unknown
    try:
        value = from_bytes(leaf.field.field_type, stored, subject=f"{file.path}: bounds of {leaf.field.name}")
        return constant(value, leaf.type, 1)
    except (CorruptMetadata, ValueError, TypeError, OverflowError):
        return unknown


def _constants(unit: IcebergUnit, paths: Collection[Path], parts: int) -> Mapping[Path, ColumnSpans]:
    spans: dict[Path, ColumnSpans] = {}
    for field, value in zip(unit.schema.spec(unit.spec_id).fields, unit.values, strict=True):
        source = next((each for each in unit.schema.current.fields if each.field_id == field.source_id), None)
        if source is None or str(field.transform) != "identity" or (source.name,) not in paths:
            continue
        one = constant(None if value != value else value, arrow_type(source.field_type), parts)
        nulls, rows = (cast(Array, pa.array([count] * parts, pa.int64())) for count in (int(value is None), 1))
        spans[(source.name,)] = ColumnSpans(one, one, nulls, rows)
    return spans


def hidden(storage: Storage, unit: IcebergUnit) -> Mapping[str, BitMap64]:
    if not unit.positional and not unit.equality:
        return {}
    if unit.equality:
        require_partition_values(storage, unit.schema, unit.files)
    live = survivors(storage, unit)
    return {file.name: BitMap64(range(file.rows)) - live[file.name] for file in unit.files}


def open_file(storage: Storage, unit: IcebergUnit, name: str) -> RowFile:
    """Raises CorruptMetadata if a footer and the manifest differ on the row count."""
    (file,) = (file for file in unit.files if file.name == name)
    require_partition_values(storage, unit.schema, [file])
    reader = IcebergFileReader(storage, unit.schema, file)
    if file.rows != reader.rows:
        raise CorruptMetadata(file.path, f"{file.rows} rows as its manifest states", f"{reader.rows} in its footer")
    return _PartRows(reader) if reader.footer is None else GroupedRows(reader, reader.footer)


class _PartRows:
    """RowFile of a file whose parts state no bounds that are read."""

    def __init__(self, reader: IcebergFileReader) -> None:
        self.subject, self.groups, self.pieces = reader.subject, reader.parts, reader.pieces

    def spans(self, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
        return {}
