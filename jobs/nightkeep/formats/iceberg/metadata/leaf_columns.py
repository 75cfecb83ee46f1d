"""Schema -> leaf columns, and the statistics mode of each (MetricsConfig.java, ParquetMetrics.java)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, PrimitiveType, StructType, UnknownType

from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.types import arrow_type
from nightkeep.formats.iceberg.metadata.variants import VariantType
from nightkeep.kernels.stats import Detail, StatsMode, parse_mode

DEFAULT: Final = StatsMode(Detail.TRUNCATE, 16)
NONE: Final = StatsMode(Detail.NONE)
MAX_INFERRED: Final = 100
"""Default of write.metadata.metrics.max-inferred-column-defaults."""
_PREFIX: Final = "write.metadata.metrics."


@dataclass(frozen=True, slots=True)
class IcebergLeaf:
    """A column or field that is not a struct, with its `path` of names. Lists, maps and variants have no bounds."""

    path: tuple[str, ...]
    field: NestedField

    @property
    def type(self) -> pa.DataType:
        return arrow_type(self.field.field_type)

    @property
    def ordered(self) -> bool:
        """Whether its statistics have bounds."""
        return isinstance(self.field.field_type, PrimitiveType) and not isinstance(self.field.field_type, UnknownType)

    @property
    def counted(self) -> bool:
        """Whether its statistics have counts of values and of nulls."""
        return self.ordered or isinstance(self.field.field_type, VariantType)


def leaves(schema: IcebergSchema) -> tuple[IcebergLeaf, ...]:
    """Every leaf of the current columns, in schema order."""
    return tuple(leaf for field in schema.current.fields for leaf in leaves_of(field))


def leaves_of(field: NestedField, above: tuple[str, ...] = ()) -> Iterator[IcebergLeaf]:
    """The column itself as a leaf, or the leaves within a struct. `above` is the path of the enclosing structs."""
    path = (*above, field.name)
    if not isinstance(field.field_type, StructType):
        yield IcebergLeaf(path, field)
        return
    for child in field.field_type.fields:
        yield from leaves_of(child, path)


class StatsModes:
    """The statistics mode of each column, by the table's `write.metadata.metrics.*`. Invalid modes are ignored."""

    def __init__(self, schema: IcebergSchema) -> None:
        stated = schema.properties.get(f"{_PREFIX}default")
        self._default = DEFAULT if stated is None else _mode(stated, DEFAULT)
        self._of: dict[str, StatsMode] = {}
        most = _most(schema.properties)
        names = list(_names(schema.current))
        if stated is None and len(names) > most:
            self._default = NONE
            self._of = dict.fromkeys(names[:most], DEFAULT)
        columns = f"{_PREFIX}column."
        for key, text in schema.properties.items():
            if key.startswith(columns):
                self._of[key.removeprefix(columns)] = _mode(text, self._default)

    def of(self, name: str) -> StatsMode:
        """The mode of a column by its full name: `a.b`, `list.element`, `map.key`."""
        return self._of.get(name, self._default)


def _mode(text: str, fallback: StatsMode) -> StatsMode:
    try:
        return parse_mode(text)
    except ValueError:
        return fallback


def _most(properties: Mapping[str, str]) -> int:
    text = properties.get(f"{_PREFIX}max-inferred-column-defaults", "")
    return int(text) if text.isdecimal() else MAX_INFERRED


def _names(schema: Schema) -> Iterator[str]:
    """Names of the primitive columns: those of a struct before deeper ones (MetricsConfig.limitFieldIds)."""
    return (schema.find_column_name(number) or "" for number in _ids(schema.as_struct()))


def _ids(kind: IcebergType) -> Iterator[int]:
    fields = _fields(kind)
    yield from (field.field_id for field in fields if isinstance(field.field_type, PrimitiveType))
    for field in fields:
        yield from _ids(field.field_type)


def _fields(kind: IcebergType) -> tuple[NestedField, ...]:
    if isinstance(kind, StructType):
        return tuple(kind.fields)
    if isinstance(kind, ListType):
        return (kind.element_field,)
    return (kind.key_field, kind.value_field) if isinstance(kind, MapType) else ()


def indexed_leaves(schema: IcebergSchema) -> tuple[IcebergLeaf, ...]:
    """The leaves for which new files get bounds, in schema order."""
    modes, bounded = StatsModes(schema), (Detail.TRUNCATE, Detail.FULL)
    return tuple(leaf for leaf in leaves(schema) if leaf.ordered and modes.of(".".join(leaf.path)).detail in bounded)
