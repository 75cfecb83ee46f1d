"""What manifests say of key columns -> whether an equality delete file can match a row of a data file. Pure.

As Java decides which deletes a scan reads (DeleteFileIndex.canContainEqDeletesForFile), but for two things: a column
is without nulls only if it was counted, and uuids are not compared, whose order Java's writers and others see unlike.
What is not known may match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.types import IcebergType, UUIDType

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.content_files import ContentFile
from nightkeep.formats.iceberg.conversions import Value, from_bytes
from nightkeep.formats.iceberg.schema import TableSchema


@dataclass(frozen=True, slots=True)
class Span:
    """A column of one file: its values lie within `low` and `high`, both None where that is not known.

    The bounds may be cut, but never so that a value lies outside.
    """

    low: Value | None
    high: Value | None
    may_be_null: bool
    all_null: bool


def spans(schema: TableSchema, file: ContentFile, field_ids: Sequence[int]) -> tuple[Span, ...]:
    """One for each field, as what it is now: bounds of a column that was promoted are read as the wider type."""
    return tuple(_span(file, number, schema.field(number).field_type) for number in field_ids)


def may_match(deleted: Sequence[Span], held: Sequence[Span]) -> bool:
    """Whether a deleted key may equal the key of a row; the columns in one order on both sides."""
    return all(_may_equal(left, right) for left, right in zip(deleted, held, strict=True))


def _may_equal(left: Span, right: Span) -> bool:
    if left.may_be_null and right.may_be_null:
        return True
    if left.all_null or right.all_null:
        return False
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return True
    return bool(left.low <= right.high and right.low <= left.high)  # type: ignore[operator]  # of one type


def _span(file: ContentFile, number: int, kind: IcebergType) -> Span:
    nulls, values = _told(file, "null_value_counts", number), _told(file, "value_counts", number)
    low, high = (_bound(file, side, number, kind) for side in ("lower_bounds", "upper_bounds"))
    known = low is not None and high is not None
    return Span(
        low=low if known else None,
        high=high if known else None,
        may_be_null=nulls != 0,
        all_null=nulls is not None and nulls == values and nulls != 0,
    )


def _bound(file: ContentFile, side: str, number: int, kind: IcebergType) -> Value | None:
    stored = _told(file, side, number)
    if not isinstance(stored, bytes) or not kind.is_primitive or isinstance(kind, UUIDType):
        return None
    try:
        return from_bytes(kind, stored, subject=f"{file.path} {side} {number}")
    except CorruptMetadata:
        # Of the type that the column once had: what cannot be read rules nothing out.
        return None


def _told(file: ContentFile, what: str, number: int) -> object:
    told = file.raw.get(what)
    return told.get(number) if isinstance(told, Mapping) else None
