"""A partition's files -> their bounds, their deleted rows and their rows, as readers see them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.parquet_statistics import GroupedRows
from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.data.bounds import every_bounds
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.feature_use import collated_columns
from nightkeep.formats.delta.metadata.locations import located
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.kernels.spans import ColumnSpans, constant_spans
from nightkeep.protocol.reading import FileSection, Path, ReadFile, ReadView, RowFile
from nightkeep.storage import Storage


def default_view(snapshot: DeltaSnapshot) -> ReadView:
    return ReadView.RAW


def sections(snapshot: DeltaSnapshot, view: ReadView) -> Sequence[FileSection[DeltaUnit]]:
    """All files. Nothing is ever merged, so that the first two views are one. Raises RefusedTable for the third."""
    if view is ReadView.READ_OPTIMIZED:
        feature = f"view {view} is not handled: files of Delta tables have no levels"
        raise RefusedTable(snapshot.table.name, feature, f"use view {ReadView.RAW} or none")
    return [
        FileSection(unit, tuple(ReadFile(file.name, file.bytes, file.rows) for file in unit.files))
        for unit in snapshot.units
        if unit.files
    ]


def narrowed(unit: DeltaUnit, names: Collection[str]) -> DeltaUnit:
    return replace(unit, files=tuple(file for file in unit.files if file.name in names))


def content(unit: DeltaUnit) -> Hashable:
    """The files with their vectors."""
    return frozenset((file.identity, file.bytes) for file in unit.files)


def columns(snapshot: DeltaSnapshot) -> pa.Schema:
    return pa.schema([(field.name, field.type) for field in snapshot.schema.fields])


def collated(snapshot: DeltaSnapshot) -> Sequence[str]:
    return collated_columns(snapshot.raw_metadata)


def partition_spans(unit: DeltaUnit, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
    return _constants(unit, paths, 1)


def file_spans(unit: DeltaUnit, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
    """Bounds by the statistics of the log. Those of floats are left out: some writers ignore NaN, and delta-spark
    rounds bounds of widened floats."""
    found = every_bounds(unit.schema, unit.files, list(paths))
    of_values = {
        path: ColumnSpans(one.lows, one.highs, one.nulls, one.rows)
        for path, one in found.items()
        if not pa.types.is_floating(one.lows.type)
    }
    return {**of_values, **_constants(unit, paths, len(unit.files))}


def _constants(unit: DeltaUnit, paths: Collection[Path], parts: int) -> Mapping[Path, ColumnSpans]:
    return {
        (name,): constant_spans(value, unit.schema.field(name).type, parts)
        for name, value in unit.partition.items()
        if (name,) in paths
    }


def hidden(storage: Storage, unit: DeltaUnit) -> Mapping[str, BitMap64]:
    return {file.name: read_vector(storage, file) for file in unit.files if file.vector is not None}


def open_file(storage: Storage, unit: DeltaUnit, name: str) -> RowFile:
    """Raises CorruptMetadata if a footer and the log differ on the row count."""
    (file,) = (file for file in unit.files if file.name == name)
    store, held_as = located(storage, file.path)
    reader = DeltaFileReader(store, unit, replace(file, name=held_as))
    if file.rows is not None and file.rows != reader.rows:
        raise CorruptMetadata(file.path, f"{file.rows} rows as the log states", f"{reader.rows} in its footer")
    return GroupedRows(reader, reader.footer)
