"""The footer of an open Parquet file -> bounds of a leaf column in each row group.

Parquet leaves NaN out of bounds, and Arrow gives no bounds that a writer is known to have ordered wrongly. A bound that
cannot be read as the column's type is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final, Protocol

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
    # Arrow returns None where a file has no count.
    nulls = [None if one is None else one.null_count for one in stats]
    rows = [chunk.num_values for chunk in chunks]
    lows, highs = (
        _typed([None if one is None else getattr(one, f"{end}_raw") for one in bounded], held, kind)
        for end in ("min", "max")
    )
    return ColumnSpans(lows, highs, pa.array(nulls, pa.int64()), pa.array(rows, pa.int64()))


class GroupReader(Protocol):
    """An open Parquet file whose columns have the names and types of the version that is read."""

    subject: str

    def leaf_of(self, name: str) -> tuple[int, pa.DataType, pa.DataType] | None:
        """The index of the Parquet column that stores a flat column, its type there, and its type here; else None."""

    def pieces(self, names: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """Rows of row groups in file order, each piece with the position of its first row."""


class GroupedRows:
    """The row groups of an open file: how many rows each has, their bounds, and the rows."""

    def __init__(self, reader: GroupReader, footer: pq.FileMetaData) -> None:
        self._reader, self._footer, self.subject, self.pieces = reader, footer, reader.subject, reader.pieces
        self.groups = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]

    def spans(self, paths: Collection[tuple[str, ...]]) -> Mapping[tuple[str, ...], ColumnSpans]:
        """Bounds of flat columns that the file stores. A partition has those of its columns."""
        leaves = {path: self._reader.leaf_of(path[0]) for path in paths if len(path) == 1}
        return {path: group_spans(self._footer, *leaf) for path, leaf in leaves.items() if leaf is not None}


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
