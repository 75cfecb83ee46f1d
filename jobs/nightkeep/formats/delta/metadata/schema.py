"""A table's schema string and configuration -> DeltaSchema: what a column is called, where, and of which type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from nightkeep.errors import CorruptMetadata, RefusedTable, kind_of
from nightkeep.formats.delta.metadata.actions import Raw, parse_object, text_map
from nightkeep.formats.delta.metadata.features import supported
from nightkeep.formats.delta.metadata.types import arrow_type, require_once, struct_fields, widens


class ColumnMapping(StrEnum):
    """How columns are matched to the columns of a data file (PROTOCOL.md, "Column Mapping")."""

    NONE = "none"
    NAME = "name"
    ID = "id"


@dataclass(frozen=True, slots=True)
class DeltaField:
    """A top-level column. `type` has the logical names of nested fields, `stored` the physical ones.

    `physical` is its name in data files, statistics and partition values; `id` its Parquet field id, None without
    column mapping. `stored` carries the ids of nested fields as Arrow metadata (FIELD_ID).
    """

    name: str
    physical: str
    id: int | None
    type: pa.DataType
    stored: pa.DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class RowTracking:
    """Row tracking, if enabled: names of the columns that store row ids and row commit versions in data files."""

    row_id: str
    commit_version: str


@dataclass(frozen=True, slots=True)
class DeltaSchema:
    """One version's columns, partition columns included, in the table's order, and the rules for its files.

    `assigns_row_ids`: every add needs a base row id (the feature is supported). `row_tracking`: rows keep their ids
    when they move (the feature is enabled). `has_vectors`: the feature deletionVectors is supported, so statistics
    state whether their bounds are tight. `writes_vectors`: new vectors may be written. `stores_partitions`: new data
    files must hold the partition columns too. `clustering`: the columns that the table is clustered by, as paths of
    physical names; empty unless it is.
    """

    fields: tuple[DeltaField, ...]
    partition_columns: tuple[str, ...]
    mapping: ColumnMapping
    configuration: Mapping[str, str]
    assigns_row_ids: bool = False
    row_tracking: RowTracking | None = None
    has_vectors: bool = False
    writes_vectors: bool = False
    stores_partitions: bool = False
    clustering: tuple[tuple[str, ...], ...] = ()

    @property
    def data_fields(self) -> tuple[DeltaField, ...]:
        """The columns that data files hold."""
        return tuple(field for field in self.fields if field.name not in self.partition_columns)

    def field(self, name: str) -> DeltaField:
        """The column of this exact name. Raises CorruptMetadata."""
        for field in self.fields:
            if field.name == name:
                return field
        raise CorruptMetadata("schema", f"a column named {name}", f"columns {', '.join(f.name for f in self.fields)}")

    def __reduce__(self) -> tuple[Callable[..., DeltaSchema], tuple[object, ...]]:
        # MappingProxyType does not pickle; tasks carry schemas to executors.
        flags = (self.assigns_row_ids, self.row_tracking, self.has_vectors, self.writes_vectors, self.stores_partitions)
        rest = (*flags, self.clustering)
        return (_restore, (self.fields, self.partition_columns, self.mapping, dict(self.configuration), *rest))


def parse_schema(raw_metadata: Raw, raw_protocol: Raw, *, table: str = "table") -> DeltaSchema:
    """The schema of a version from its metaData and protocol actions.

    A property counts only if the protocol supports its feature. Raises CorruptMetadata, and RefusedTable (naming
    `table`) for types and names that we do not handle.
    """
    features = supported(raw_protocol)
    configuration = _configuration(raw_metadata)
    mapping = _mapping(configuration, features)
    columns = _columns(raw_metadata, table)
    try:
        fields = tuple(_field(column, mapping, table) for column in columns)
    except RecursionError as failure:
        raise CorruptMetadata(f"{table}: schemaString", "types that can be followed", "deep nesting") from failure
    require_once((field.physical for field in fields), subject=f"{table}: columns", what="physical name")
    require_once((field.id for field in fields if field.id is not None), subject=f"{table}: columns", what="id")
    partition_columns = tuple(_partition_columns(raw_metadata, fields))
    require_once(partition_columns, subject=f"{table}: partition columns", what="name")
    tracked = "rowTracking" in features and not is_true(configuration, "delta.rowTrackingSuspended")
    return DeltaSchema(
        fields=fields,
        partition_columns=partition_columns,
        mapping=mapping,
        configuration=MappingProxyType(configuration),
        assigns_row_ids=tracked,
        row_tracking=_row_tracking(configuration) if tracked else None,
        has_vectors="deletionVectors" in features,
        writes_vectors="deletionVectors" in features and is_true(configuration, "delta.enableDeletionVectors"),
        stores_partitions="materializePartitionColumns" in features
        or is_true(configuration, "delta.writePartitionColumnsToParquet"),
    )


def parse_partitions(raw_metadata: Raw, raw_protocol: Raw, *, table: str) -> DeltaSchema:
    """As parse_schema, but only the partition columns, which state where files are. Other columns may have any type."""
    partition_names = {str(name).lower() for name in raw_metadata.get("partitionColumns") or ()}  # type: ignore[attr-defined]
    columns = [column for column in _columns(raw_metadata, table) if str(column["name"]).lower() in partition_names]
    text = json.dumps({"type": "struct", "fields": columns})
    return parse_schema({**raw_metadata, "schemaString": text}, raw_protocol, table=table)


def _restore(
    fields: object, partition_columns: object, mapping: object, configuration: object, *rest: object
) -> DeltaSchema:
    return DeltaSchema(fields, partition_columns, mapping, MappingProxyType(configuration), *rest)  # type: ignore[arg-type]


_PHYSICAL: Final = "delta.columnMapping.physicalName"
_ID: Final = "delta.columnMapping.id"
_ROW_TRACKING: Final = "delta.rowTracking.materialized{}ColumnName"


def _configuration(raw_metadata: Raw) -> dict[str, str]:
    configuration = text_map(raw_metadata, "configuration", subject="metaData")
    return {str(name): str(value) for name, value in configuration.items() if value is not None}


def is_true(configuration: Mapping[str, str], name: str) -> bool:
    return configuration.get(name, "false").lower() == "true"


def _mapping(configuration: Mapping[str, str], features: frozenset[str]) -> ColumnMapping:
    mode = configuration.get("delta.columnMapping.mode", "none").lower()
    if "columnMapping" not in features:
        return ColumnMapping.NONE
    if mode not in set(ColumnMapping):
        raise CorruptMetadata("delta.columnMapping.mode", ", ".join(ColumnMapping), mode)
    return ColumnMapping(mode)


def _columns(raw_metadata: Raw, table: str) -> list[Raw]:
    kind = parse_object(str(raw_metadata["schemaString"]), subject=f"{table}: schemaString")
    if kind.get("type") != "struct":
        raise CorruptMetadata(f"{table}: schemaString", "a struct", kind_of(kind.get("type")))
    return struct_fields(kind, subject=f"{table}: schemaString")


def _field(column: Raw, mapping: ColumnMapping, table: str) -> DeltaField:
    name = str(column["name"])
    subject = f"{table}: column {name}"
    _check_metadata(column, subject)
    physical, number = _naming(mapping)(column)
    return DeltaField(
        name=name,
        physical=physical,
        id=number,
        type=arrow_type(column["type"], _logical, subject=subject),
        stored=arrow_type(column["type"], _naming(mapping), subject=subject),
        nullable=column.get("nullable") is not False,
    )


def _logical(column: Raw) -> tuple[str, int | None]:
    return str(column["name"]), None


def _naming(mapping: ColumnMapping) -> Callable[[Raw], tuple[str, int | None]]:
    return _logical if mapping is ColumnMapping.NONE else _mapped


def _mapped(column: Raw) -> tuple[str, int | None]:
    metadata = column.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    physical, number = fields.get(_PHYSICAL), fields.get(_ID)
    if not isinstance(physical, str) or not isinstance(number, int) or isinstance(number, bool):
        found = f"{physical!r} and {number!r}"
        raise CorruptMetadata(f"column {column['name']}", f"{_PHYSICAL} and {_ID}, as columns are mapped", found)
    return physical, number


def _check_metadata(column: Raw, subject: str) -> None:
    """Raises RefusedTable for a type change that we do not handle, of the column or a nested field."""
    for field in _nested(column):
        metadata = field.get("metadata")
        fields = metadata if isinstance(metadata, dict) else {}
        changes = fields.get("delta.typeChanges") or []
        if not isinstance(changes, list) or not all(isinstance(change, dict) for change in changes):
            raise CorruptMetadata(subject, "delta.typeChanges as a list of objects", kind_of(changes))
        for change in changes:
            if not widens(change.get("fromType"), change.get("toType")):
                feature = f"a change of type from {change.get('fromType')} to {change.get('toType')} is not handled"
                raise RefusedTable(subject, feature, "rewrite the table with the engine that made the change")


def _nested(column: Raw) -> Iterator[Raw]:
    """The field, and all fields nested in its type, at any depth."""
    yield column
    pending = [column.get("type")]
    while pending:
        kind = pending.pop()
        if isinstance(kind, dict):
            pending += [kind.get("elementType"), kind.get("keyType"), kind.get("valueType")]
            fields = kind.get("fields")
            inner = [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
            yield from inner
            pending += [field.get("type") for field in inner]


def _partition_columns(raw_metadata: Raw, fields: Iterable[DeltaField]) -> Iterator[str]:
    """The partition columns by their names in the schema. Engines ignore case here."""
    fields_by_name = {field.name.lower(): field for field in fields}
    columns = raw_metadata.get("partitionColumns") or ()
    if not isinstance(columns, list | tuple):
        raise CorruptMetadata("metaData", "partitionColumns of type list", kind_of(columns))
    for column in columns:
        field = fields_by_name.get(str(column).lower())
        if field is None or pa.types.is_nested(field.type):
            found = "none" if field is None else str(field.type)
            raise CorruptMetadata(f"partition column {column}", "a column of a type without fields", found)
        yield field.name


def _row_tracking(configuration: Mapping[str, str]) -> RowTracking | None:
    if not is_true(configuration, "delta.enableRowTracking"):
        return None
    names = [configuration.get(_ROW_TRACKING.format(what)) for what in ("RowId", "RowCommitVersion")]
    if not (names[0] and names[1]):
        expected = f"{_ROW_TRACKING.format('RowId')} and {_ROW_TRACKING.format('RowCommitVersion')}"
        raise CorruptMetadata("row tracking", expected, f"{names[0]} and {names[1]}")
    return RowTracking(names[0], names[1])
