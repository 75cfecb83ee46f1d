"""The footer of an open Parquet file -> bounds of a leaf column in each row group.

Parquet leaves NaN out of bounds, and Arrow gives no bounds that a writer is known to have ordered wrongly. A bound that
cannot be read as the column's type is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.kernels.spans import ColumnSpans
from nightkeep.model.arrow_types import Array


def group_spans(footer: pq.FileMetaData, leaf: int, held: pa.DataType, kind: pa.DataType) -> ColumnSpans:
    """Bounds of the Parquet column with index `leaf` in every row group, in their order.

    `held` is the Arrow type as which the file's values are read, and `kind` the type of the result, which holds them.
    """
    chunks = [footer.row_group(group).column(leaf) for group in range(footer.num_row_groups)]
    stats = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    bounded = [one if one is not None and one.has_min_max else None for one in stats]
    # Arrow says None where a file has no count.
    nulls = [None if one is None else one.null_count for one in stats]
    rows = [chunk.num_values for chunk in chunks]
    lows, highs = (
        _typed([None if one is None else getattr(one, f"{end}_raw") for one in bounded], held, kind)
        for end in ("min", "max")
    )
    return ColumnSpans(lows, highs, pa.array(nulls, pa.int64()), pa.array(rows, pa.int64()))


def _typed(values: Sequence[Any], held: pa.DataType, kind: pa.DataType) -> Array:
    """Raw values of statistics as `kind`. Null for a type whose statistics are not read, such as unsigned numbers."""
    stored = _stored_type(held)
    try:
        if pa.types.is_decimal(held):
            decimals: Array = pa.array([_decimal(value, held.scale) for value in values], held)
            return decimals.cast(kind)
        if stored is not None:
            plain: Array = pa.array(values, stored)
            return plain.cast(held).cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    unknown: Array = pa.array([None] * len(values), kind)
    return unknown


def _decimal(value: int | bytes | None, scale: int) -> Decimal | None:
    """From the unscaled number, or its big-endian bytes."""
    if value is None:
        return None
    number = int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else value
    return Decimal(number).scaleb(-scale, _EXACT)


def _stored_type(held: pa.DataType) -> pa.DataType | None:
    if pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_binary(held):
        return pa.binary()
    if pa.types.is_boolean(held) or pa.types.is_signed_integer(held) or pa.types.is_floating(held):
        return held
    if pa.types.is_date32(held) or pa.types.is_time32(held):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(held) or pa.types.is_time64(held) else None


_EXACT: Final = Context(prec=80)
