"""A schema -> the columns that its rows may be clustered by."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nightkeep.clustering.columns import ClusterColumns
from nightkeep.formats.paimon.data.append_write import LEVEL
from nightkeep.formats.paimon.data.file_statistics import level_stats_mode, stats_modes
from nightkeep.formats.paimon.metadata.file_formats import shifts_times
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, level_formats
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.kernels.stats import Detail
from nightkeep.model import Request

ADVICE = "set fields.NAME.stats-mode to truncate(16) or full"
_BOUNDED = (Detail.FULL, Detail.TRUNCATE)


@dataclass(frozen=True, slots=True)
class AppendLeaf:
    """A column. Its statistics have bounds where the table's options ask for them."""

    field: PaimonField
    ordered: bool = True

    @property
    def path(self) -> tuple[str, ...]:
        return (self.field.name,)

    @property
    def type(self) -> pa.DataType:
        return self.field.type.arrow


def indexed_fields(schema: PaimonSchema) -> tuple[PaimonField, ...]:
    """The columns whose statistics in new files have bounds, partition columns included."""
    file_format = level_formats(schema, 1)[LEVEL]
    modes = stats_modes(schema, level_stats_mode(schema, LEVEL), file_format=file_format)
    every = zip(schema.fields, modes, strict=True)
    return tuple(field for field, mode in every if mode.detail in _BOUNDED and _has_bounds(schema, field, file_format))


def _has_bounds(schema: PaimonSchema, field: PaimonField, file_format: str) -> bool:
    is_shifted = file_format == "orc" and field.type.root is TypeRoot.TIMESTAMP_LTZ and shifts_times(schema)
    return not field.type.is_nested and not is_shifted


def columns_of(schema: PaimonSchema) -> ClusterColumns:
    every = tuple(AppendLeaf(field) for field in schema.fields if field.name not in schema.partition_keys)
    indexed = {field.id for field in indexed_fields(schema)}
    return ClusterColumns(every, [leaf for leaf in every if leaf.field.id in indexed], schema.partition_keys, ADVICE)


def require_columns(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises UsageError for a column that the table cannot be clustered by, with the columns that would work."""
    if request.clustering is not None:
        columns_of(snapshot.schema).resolved(request.clustering)
