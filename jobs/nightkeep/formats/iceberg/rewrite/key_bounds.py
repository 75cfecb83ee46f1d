"""Bounds of key columns in manifests -> which equality delete files can match rows of which data files. Pure.

As DeleteFileIndex.canContainEqDeletesForFile of Java, with two differences: a column has no nulls only if they were
counted, and bounds of uuids are ignored, as Java orders uuids differently. Unknown bounds may match.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt
from pyiceberg.types import IcebergType, NestedField, UUIDType

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.conversions import Value, from_bytes

Flags = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Span:
    """A column of one file: its values are between `low` and `high`, which are both None if unknown.

    The bounds may be truncated, but no value is outside them.
    """

    low: Value | None
    high: Value | None
    may_be_null: bool
    all_null: bool


@dataclass(frozen=True, slots=True)
class Spans:
    """A column of several files, one element per file. Bounds are ranks among all compared bounds.

    An unknown bound has the lowest or highest rank.
    """

    low: Ranks
    high: Ranks
    may_be_null: Flags
    all_null: Flags

    def __getitem__(self, files: slice | Flags) -> Spans:
        return Spans(self.low[files], self.high[files], self.may_be_null[files], self.all_null[files])


def spans(files: Iterable[ContentFile], fields: Sequence[NestedField]) -> list[tuple[Span, ...]]:
    """For each file one Span per field. Bounds are read in the field's current type, even if it was promoted since."""
    return [tuple(_span(file, field.field_id, field.field_type) for field in fields) for file in files]


def ranked(deleted: Sequence[Span], held: Sequence[Span]) -> tuple[Spans, Spans]:
    """One column's Spans of delete files and of data files, with common ranks to compare them."""
    every = (*deleted, *held)
    values = {value for span in every for value in (span.low, span.high) if value is not None}
    ranks: dict[Value | None, int] = {value: rank for rank, value in enumerate(sorted(values))}
    low = np.array([ranks.get(span.low, _LEAST) for span in every], np.int32)
    high = np.array([ranks.get(span.high, _MOST) for span in every], np.int32)
    may_be_null = np.array([span.may_be_null for span in every], np.bool_)
    all_null = np.array([span.all_null for span in every], np.bool_)
    both = Spans(low, high, may_be_null, all_null)
    return both[: len(deleted)], both[len(deleted) :]


def may_match(deleted: Sequence[Spans], held: Sequence[Spans]) -> Flags:
    """Whether a key of each delete file (second axis) may equal the key of a row of each data file (first axis).

    Both arguments have the key's columns, at least one, in the same order.
    """
    return reduce(np.logical_and, (_may_equal(left, right) for left, right in zip(deleted, held, strict=True)))


_LEAST: Final = -1
_MOST: Final = np.iinfo(np.int32).max


def _may_equal(deleted: Spans, held: Spans) -> Flags:
    overlap = (held.low[:, None] <= deleted.high) & (held.high[:, None] >= deleted.low)
    overlap &= ~held.all_null[:, None] & ~deleted.all_null
    # Null equals null.
    return overlap | (held.may_be_null[:, None] & deleted.may_be_null)


def _span(file: ContentFile, number: int, kind: IcebergType) -> Span:
    nulls, values = file.count("null_value_counts", number), file.count("value_counts", number)
    low, high = (_bound(file, side, number, kind) for side in ("lower_bounds", "upper_bounds"))
    known = low is not None and high is not None
    return Span(
        low=low if known else None,
        high=high if known else None,
        may_be_null=nulls != 0,
        all_null=nulls is not None and nulls == values and nulls != 0,
    )


def _bound(file: ContentFile, side: str, number: int, kind: IcebergType) -> Value | None:
    stored = file.bound(side, number)
    if stored is None or not kind.is_primitive or isinstance(kind, UUIDType):
        return None
    try:
        value = from_bytes(kind, stored, subject=f"{file.path} {side} {number}")
    except CorruptMetadata:
        # Written with an earlier type of the column. An unreadable bound excludes nothing.
        return None
    # Bounds must not be NaN; it has no order.
    return None if isinstance(value, float) and math.isnan(value) else value
