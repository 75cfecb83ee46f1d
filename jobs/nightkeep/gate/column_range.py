"""Columns of a new data file -> what every statistic about them can be judged by, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import Array, ChunkedArray, Scalar

BATCH_ROWS: Final = 65_536
"""Of a data file that is read again; one batch is in memory at a time."""
_FIELD_ID: Final = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """A column so far: nulls, NaNs, and the least and greatest value, which is NaN where no other is there."""

    nulls: int = 0
    nans: int = 0
    least: Scalar | None = None
    greatest: Scalar | None = None

    def with_chunk(self, values: ChunkedArray) -> ColumnRange:
        nans = (pc.sum(pc.is_nan(values).cast(pa.int8())).as_py() or 0) if pa.types.is_floating(values.type) else 0
        ends = pc.min_max(pa.chunked_array([*self._ends(values.type), *values.chunks], values.type))
        return ColumnRange(self.nulls + values.null_count, self.nans + nans, ends["min"], ends["max"])

    def with_nulls(self, values: ChunkedArray) -> ColumnRange:
        """Of a type without an order."""
        return replace(self, nulls=self.nulls + values.null_count)

    def _ends(self, kind: pa.DataType) -> list[Array]:
        return [pa.array([end], kind) for end in (self.least, self.greatest) if end is not None]


def leaf_values(batch: pa.Table, path: Sequence[str]) -> ChunkedArray:
    """A column, or a field within structs; below a null struct it is null."""
    values = batch.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    return values


def field_id(field: pa.Field[Any]) -> int | None:
    """What Parquet says is the id of a field; None where it has none."""
    told = (field.metadata or {}).get(_FIELD_ID)
    return None if told is None else int(told)
