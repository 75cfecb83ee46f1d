"""Column of a new data file, a batch at a time -> its counts and extremes, to check statistics against."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import OF_VIEWS
from nightkeep.kernels.text_ends import end_values
from nightkeep.model.arrow_types import Array, ChunkedArray, Scalar


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """A column so far: counts of nulls and NaN, least and greatest value. These are NaN if there is no other value."""

    nulls: int = 0
    nans: int = 0
    least: Scalar | None = None
    greatest: Scalar | None = None

    def with_chunk(self, values: ChunkedArray) -> ColumnRange:
        plain: Any = OF_VIEWS.get(values.type)
        if plain is not None:
            few: list[Array] = [end_values(chunk).cast(plain) for chunk in values.chunks]
            return replace(self.with_chunk(pa.chunked_array(few, plain)), nulls=self.nulls + values.null_count)
        nans = _nans(values) if pa.types.is_floating(values.type) else 0
        chunks = [_float_ends(chunk) for chunk in values.chunks] if pa.types.is_floating(values.type) else values.chunks
        ends = pc.min_max(pa.chunked_array([*self._ends(values.type), *chunks], values.type))
        return ColumnRange(self.nulls + values.null_count, self.nans + nans, ends["min"], ends["max"])

    def with_nulls(self, values: ChunkedArray) -> ColumnRange:
        """Add a chunk whose type has no order: only its nulls count."""
        return replace(self, nulls=self.nulls + values.null_count)

    def _ends(self, kind: pa.DataType) -> list[Array]:
        return [pa.array([end], kind) for end in (self.least, self.greatest) if end is not None]


def _nans(values: ChunkedArray) -> int:
    # A sum is NaN where a value is, and is rarely NaN otherwise: a fifth of the time.
    if not math.isnan(pc.sum(values).as_py() or 0):
        return 0
    return pc.sum(pc.is_nan(values).cast(pa.int8())).as_py() or 0


def _float_ends(chunk: Array) -> Array:
    """The least and the greatest value, found by NumPy in a tenth of the time; the chunk itself if it has nulls or NaN,
    or if an end is one of the two zeros."""
    if chunk.null_count or not len(chunk):
        return chunk
    values = chunk.to_numpy()
    ends = np.array([values.min(), values.max()])
    return chunk if np.isnan(ends).any() or not ends.all() else pa.array(ends)


Path = tuple[str, ...]
"""A column, or a field within structs."""
Add = Callable[[ColumnRange, ChunkedArray], ColumnRange]


def watched(
    pieces: Iterable[tuple[int, pa.Table]], seen: dict[Path, ColumnRange], add: Add = ColumnRange.with_chunk
) -> Iterator[tuple[int, pa.Table]]:
    """The pieces of a file as they come; each is added to the ranges of the columns in `seen`."""
    for start, piece in pieces:
        for path, held in seen.items():
            seen[path] = add(held, leaf_values(piece, path))
        yield start, piece


def is_exact(kind: pa.DataType) -> bool:
    """Whether no writer cuts bounds of such values, so that readers answer MIN and MAX from them without the rows.

    delta-spark writes a float's short text, which is another number.
    """
    whole = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_date(kind)
    return whole or pa.types.is_float64(kind)


def leaf_values(batch: pa.Table, path: Sequence[str]) -> ChunkedArray:
    """A column, or a field within structs; null where a struct above it is null."""
    values = batch.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    return values
