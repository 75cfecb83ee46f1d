"""A data file's bounds -> whether its rows have the values of its identity partition. Pure.

Iceberg stores such a value twice: in the manifest and in the file. Java's readers show the manifest's
(PartitionUtil.constantsMap), DuckDB and pyiceberg the file's. Writers that raced, and Spark for texts that are no
UTF-8, made files where both differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from pyiceberg.types import BinaryType, DoubleType, FixedType, FloatType, IcebergType, NestedField, StringType

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.conversions import Value, from_bytes, to_bytes
from nightkeep.formats.iceberg.metadata.features import refusal
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema

_LOOSE = StringType | BinaryType | FixedType | FloatType | DoubleType
"""Bounds of these types may be wider than the values: they are cut, or have a zero of either sign."""


class Agreement(Enum):
    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class IdentityValue:
    """A column by whose own values a partition is made, and its value there. `packed` is the value as a bound, None if
    it has no such form."""

    field: NestedField
    value: object
    packed: bytes | None


def identity_values(schema: IcebergSchema, spec_id: int, values: tuple[object, ...]) -> tuple[IdentityValue, ...]:
    """Of one partition. Columns that no schema has any more are left out."""
    pairs = zip(schema.spec(spec_id).fields, values, strict=False)
    known = ((each.source_id, value) for each, value in pairs if str(each.transform) == "identity")
    return tuple(_identity(schema.field(number), value) for number, value in known if _is_known(schema, number))


def unproven(schema: IcebergSchema, file: ContentFile) -> Iterator[IdentityValue]:
    """The identity values of a data file that its manifest's statistics do not prove to be those of all its rows."""
    if file.content is not FileContent.DATA or not file.rows:
        return
    for each in identity_values(schema, file.spec_id, file.partition):
        if agreement(file, each) is not Agreement.EQUAL:
            yield each


def two_values(table: str, known: Iterable[IdentityValue], files: Iterable[ContentFile]) -> RefusedTable | None:
    """The refusal of the first data file whose bounds contradict its partition; None if none do."""
    values = tuple(known)
    if not values:
        return None
    for file in files:
        for each in values:
            if file.rows and agreement(file, each) is Agreement.DIFFERENT:
                return differing(table, file.path, each.field.name)
    return None


def differing(table: str, path: str, column: str) -> RefusedTable:
    return refusal(table, "identity partition values unlike the rows'", f"column {column} of {path}")


def agreement(file: ContentFile, known: IdentityValue) -> Agreement:
    """Whether all rows of the file have the partition's value, as far as its manifest's statistics go."""
    number = known.field.field_id
    low, high = (file.bound(f"{side}_bounds", number) for side in ("lower", "upper"))
    nulls = file.count("null_value_counts", number)
    if known.value is None:
        if low is not None or high is not None:
            return Agreement.DIFFERENT
        return Agreement.EQUAL if nulls == file.rows else Agreement.UNKNOWN
    kind = known.field.field_type
    if low is not None and low == high == known.packed and _is_exact(kind, known.value):
        return Agreement.EQUAL if nulls == 0 else Agreement.UNKNOWN
    return _compared(kind, known.value, _read(kind, low), _read(kind, high))


def _is_exact(kind: IcebergType, value: object) -> bool:
    """Whether equal bounds prove that all rows are equal. Bounds of floats leave NaN out. Java writes bytes that are no
    UTF-8 as replacement characters, in the bounds as in the partition's value."""
    return not isinstance(kind, FloatType | DoubleType) and not (isinstance(value, str) and "\ufffd" in value)


def _compared(kind: IcebergType, value: object, low: Value | None, high: Value | None) -> Agreement:
    if isinstance(value, float) and math.isnan(value):
        return Agreement.UNKNOWN
    known = [bound for bound in (low, high) if bound is not None]
    if not isinstance(kind, _LOOSE):
        return Agreement.DIFFERENT if any(bound != value for bound in known) else Agreement.UNKNOWN
    try:
        outside = (low is not None and value < low) or (high is not None and value > high)  # type: ignore[operator]
    except TypeError:
        return Agreement.UNKNOWN
    return Agreement.DIFFERENT if outside else Agreement.UNKNOWN


def _read(kind: IcebergType, data: bytes | None) -> Value | None:
    """A bound; None if it is missing or cannot be read, which is then no evidence."""
    try:
        return None if data is None else from_bytes(kind, data, subject="a bound")
    except CorruptMetadata:
        return None


def _identity(field: NestedField, value: object) -> IdentityValue:
    try:
        return IdentityValue(field, value, None if value is None else to_bytes(field.field_type, value))
    except ValueError:
        return IdentityValue(field, value, None)


def _is_known(schema: IcebergSchema, number: int) -> bool:
    return any(each.find_column_name(number) is not None for each in schema.schemas.values())
