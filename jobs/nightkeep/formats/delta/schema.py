"""A table's schema string and configuration -> TableSchema: what a column is called, where, and of which type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import pyarrow as pa

from nightkeep.errors import CorruptMetadata


class ColumnMapping(StrEnum):
    """How a column is found in a data file (PROTOCOL.md, "Column Mapping")."""

    NONE = "none"
    NAME = "name"
    ID = "id"


@dataclass(frozen=True, slots=True)
class Field:
    """A top-level column. `type` has the logical names of nested fields, `stored` the physical ones.

    `physical` is its name in data files, statistics and partition values; `id` its Parquet field id, None without
    column mapping. `stored` carries the ids of nested fields as Arrow metadata (PARQUET:field_id).
    """

    name: str
    physical: str
    id: int | None
    type: pa.DataType
    stored: pa.DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class RowTracking:
    """Row tracking is enabled: names of the columns that materialise row ids and row commit versions in data files."""

    row_id: str
    commit_version: str


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version's columns, partition columns included, in the table's order, and what governs files.

    `assigns_row_ids`: every add needs a base row id (the feature is supported); `row_tracking`: ids are also kept
    when rows move (it is enabled). `has_vectors`: the feature deletionVectors is supported, so statistics say
    whether their bounds are tight; `writes_vectors`: new vectors may be written.
    """

    fields: tuple[Field, ...]
    partition_columns: tuple[str, ...]
    mapping: ColumnMapping
    configuration: Mapping[str, str]
    assigns_row_ids: bool = False
    row_tracking: RowTracking | None = None
    has_vectors: bool = False
    writes_vectors: bool = False

    @property
    def data_fields(self) -> tuple[Field, ...]:
        """The columns that data files hold."""
        return tuple(field for field in self.fields if field.name not in self.partition_columns)

    def field(self, name: str) -> Field:
        """The column of this exact name. Raises CorruptMetadata."""
        for field in self.fields:
            if field.name == name:
                return field
        raise CorruptMetadata("schema", f"a column named {name}", f"columns {', '.join(f.name for f in self.fields)}")

    def __reduce__(self) -> tuple[Callable[..., TableSchema], tuple[object, ...]]:
        # MappingProxyType does not pickle; tasks carry schemas to executors.
        rest = (self.assigns_row_ids, self.row_tracking, self.has_vectors, self.writes_vectors)
        return (_restore, (self.fields, self.partition_columns, self.mapping, dict(self.configuration), *rest))


def _restore(
    fields: object, partition_columns: object, mapping: object, configuration: object, *rest: object
) -> TableSchema:
    return TableSchema(fields, partition_columns, mapping, MappingProxyType(configuration), *rest)  # type: ignore[arg-type]
