"""A sort order and the columns of a schema -> its columns, its text, and why rows cannot be sorted by it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.transforms import parse_transform
from pyiceberg.types import NestedField, PrimitiveType, StructType, TimestampNanoType, TimestamptzNanoType, UnknownType

from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.sort_orders import SortField, SortOrder


def order_fault(schema: IcebergSchema, order: SortOrder) -> str | None:
    """Why rows cannot be sorted by an order; None if they can."""
    return next(_faults(schema, order), None)


def described(schema: IcebergSchema, order: SortOrder) -> str:
    """The order as text: `sort order 1: day(ts) desc nulls last, id asc nulls first`."""
    return f"sort order {order.order_id}: {', '.join(_described(schema, each) for each in order.fields)}"


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column that rows are sorted by, at the top or within structs, with its path of names."""

    path: tuple[str, ...]
    field: NestedField

    @property
    def name(self) -> str:
        return ".".join(self.path)


def source_column(schema: IcebergSchema, field: SortField) -> SourceColumn | None:
    """The column of the current schema that a field sorts by; None if there is none, or it has no order."""
    return column_of(schema, field.source_ids[0]) if len(field.source_ids) == 1 else None


def column_of(schema: IcebergSchema, field_id: int) -> SourceColumn | None:
    """A column of the current schema by its id, at the top or within structs; None if there is none with an order."""
    columns = (column for top in schema.current.fields for column in _columns(top, ()))
    return next((column for column in columns if column.field.field_id == field_id), None)


def source_columns(schema: IcebergSchema, order: SortOrder) -> tuple[tuple[SortField, SourceColumn], ...]:
    """The fields of an order that has no fault, each with its column."""
    pairs = ((field, source_column(schema, field)) for field in order.fields)
    return tuple((field, column) for field, column in pairs if column is not None)


def _columns(field: NestedField, above: tuple[str, ...]) -> Iterator[SourceColumn]:
    kind, path = field.field_type, (*above, field.name)
    if isinstance(kind, StructType):
        for child in kind.fields:
            yield from _columns(child, path)
    elif isinstance(kind, PrimitiveType) and not isinstance(kind, UnknownType):
        yield SourceColumn(path, field)


def _faults(schema: IcebergSchema, order: SortOrder) -> Iterator[str]:
    for field in order.fields:
        column = source_column(schema, field)
        if len(field.source_ids) > 1:
            yield f"its transform {field.transform} is of several columns"
        elif column is None:
            yield f"field {field.source_ids[0]} is no column of the table that has an order"
        elif not _is_known(field.transform, column):
            yield f"its transform {field.transform} of column {column.name} is not handled"


def _is_known(transform: str, column: SourceColumn) -> bool:
    kind = column.field.field_type
    if transform.startswith("bucket") and isinstance(kind, TimestampNanoType | TimestamptzNanoType):
        # Engines differ on whether nanoseconds or microseconds are hashed.
        return False
    try:
        return bool(parse_transform(transform).can_transform(kind))
    except (ValueError, TypeError, NotImplementedError):
        return False


def _described(schema: IcebergSchema, field: SortField) -> str:
    names = ", ".join(schema.current.find_column_name(number) or f"field {number}" for number in field.source_ids)
    term = names if field.transform == "identity" else f"{field.transform}({names})"
    return f"{term} {'desc' if field.descending else 'asc'} nulls {'first' if field.nulls_first else 'last'}"
