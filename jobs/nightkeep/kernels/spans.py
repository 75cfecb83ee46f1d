"""The bounds of one column in several parts of a table: partitions, files or row groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.model.arrow_types import Array


@dataclass(frozen=True, slots=True)
class ColumnSpans:
    """One column of several parts: arrays of equal length. Null means unknown.

    Every value of a part that is neither null nor NaN is from `lows` to `highs`, both of the column's type; a bound may
    be wider than the values. `nulls` are exact counts of nulls, `rows` of all rows, both int64.
    """

    lows: Array
    highs: Array
    nulls: Array
    rows: Array

    def __post_init__(self) -> None:
        lengths = {len(each) for each in (self.lows, self.highs, self.nulls, self.rows)}
        if len(lengths) != 1:
            raise ValueError(f"bounds of {sorted(lengths)} parts, expected one number of parts")


def spans_of(
    lows: Sequence[object],
    highs: Sequence[object],
    nulls: Sequence[int | None],
    rows: Sequence[int | None],
    kind: pa.DataType,
) -> ColumnSpans:
    """Bounds of Python values, one per part. Raises ArrowInvalid (a ValueError) for a value that is not of `kind`."""
    counts = (pa.array(each, pa.int64()) for each in (nulls, rows))
    return ColumnSpans(pa.array(lows, kind), pa.array(highs, kind), *counts)


def constant_spans(value: object, kind: pa.DataType, parts: int) -> ColumnSpans:
    """The spans of a column with one value in all rows, such as a partition's. NaN has no bounds."""
    bound = None if isinstance(value, float) and value != value else value
    return spans_of([bound] * parts, [bound] * parts, [int(value is None)] * parts, [1] * parts, kind)


def null_spans(kind: pa.DataType, rows: Sequence[int]) -> ColumnSpans:
    """The spans of a column that is null in all rows, such as one that files do not have."""
    nothing = [None] * len(rows)
    return spans_of(nothing, nothing, rows, rows, kind)
