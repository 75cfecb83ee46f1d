"""A column of variants -> blocks of rows whose encoded values are decoded at once, and the parts of a variant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import byte_spans
from nightkeep.model.arrow_types import Array

BLOCK_BYTES: Final = 1 << 20
"""Of a block, or one row: decoded nodes take up to fifty times their bytes."""


def row_blocks(column: pa.StructArray) -> Iterator[pa.StructArray]:
    """Rows of about BLOCK_BYTES, by the bytes of values that are not typed, and the mean of the others."""
    rows = len(column)
    weights = np.full(rows, column.nbytes // max(rows, 1), np.int64)
    if column.type.get_field_index("value") >= 0:
        _, starts, stops = byte_spans(column.field("value"))
        weights += stops - starts
    ends = np.cumsum(weights)
    start = 0
    while start < rows:
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + BLOCK_BYTES, side="right")))
        yield column.slice(start, stop - start)
        start = stop


def value_parts(column: pa.StructArray) -> tuple[Array | None, Array | None]:
    """The encoded and the typed values of a variant, or of a part of a shredded one; null where the struct is."""
    held = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
    return held.get("value"), held.get("typed_value")


def field_parts(name: str, field: Array) -> tuple[Array | None, Array | None]:
    """The parts of a field of a shredded object, or of the values of an array. Raises ValueError for other types."""
    if not isinstance(field, pa.StructArray) or not {"value", "typed_value"} >= {each.name for each in field.type}:
        raise ValueError(f"a variant shredded into {field.type} for field {name}, expected value and typed_value")
    return value_parts(field)
