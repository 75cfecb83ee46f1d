"""Chunks of one new file -> the metrics of its data_file, computed from the data itself.

As in ParquetMetrics.java: leaves within lists and maps have only a size. The differences never make a reader skip rows:
a zero bound is -0.0 as lower and 0.0 as upper bound, as engines differ in whether the two are equal. A column with NaN
has no upper bound, and one of only NaN no NaN count: Spark orders NaN above all values, and with Java's metrics its
filters would skip those rows. Floats in a null struct count as nulls; Java does not count them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.types import BinaryType, IcebergType, NestedField, StringType, UUIDType

from nightkeep.formats.iceberg.metadata.conversions import to_bytes
from nightkeep.formats.iceberg.metadata.leaf_columns import IcebergLeaf, StatsModes, leaves_of
from nightkeep.kernels.arrow_buffers import is_bytes, leaf_values
from nightkeep.kernels.stats import Bound, Detail, StatsMode, column_stats, cut, raised
from nightkeep.model.arrow_types import Array, ArrowField, ChunkedArray, Datum, Scalar, field_id

_FULL = StatsMode(Detail.FULL)


class IcebergFileStats:
    """Collects the metrics of one file's rows. Add every chunk once; columns are found by name."""

    def __init__(self, fields: tuple[NestedField, ...], modes: StatsModes) -> None:
        self._modes = modes
        self._seen = [
            _Seen(leaf)
            for field in fields
            for leaf in leaves_of(field)
            if leaf.counted and modes.of(".".join(leaf.path)).detail is not Detail.NONE
        ]
        self.rows = 0

    def add(self, chunk: pa.Table) -> None:
        """Add a chunk of rows. Raises KeyError if it lacks a column with statistics."""
        for seen in self._seen:
            seen.add(leaf_values(chunk, seen.leaf.path))
        self.rows += chunk.num_rows

    def metrics(self) -> dict[str, object]:
        """The maps of counts and bounds by field id, keyed by the maps' names in the spec."""
        metrics: dict[str, dict[int, int | bytes | None]] = {
            "value_counts": {seen.number: self.rows for seen in self._seen},
            "null_value_counts": {seen.number: seen.nulls for seen in self._seen},
            "nan_value_counts": {seen.number: seen.nans for seen in self._seen if seen.nans not in (None, self.rows)},
            "lower_bounds": {},
            "upper_bounds": {},
        }
        for seen in self._seen:
            low, high = seen.bounds(self._modes.of(".".join(seen.leaf.path)))
            if low is not None:
                metrics["lower_bounds"][seen.number] = low
            if high is not None:
                metrics["upper_bounds"][seen.number] = high
        return dict(metrics)


def footer_facts(footer: pq.FileMetaData, stored: pa.Schema, modes: StatsModes) -> dict[str, object]:
    """Facts that only the footer has: column sizes in bytes by field id, and the offsets of row groups."""
    columns = list(_columns(stored))
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    sizes = {
        number: sum(group.column(place).total_compressed_size for group in groups)
        for place, (number, name) in enumerate(columns)
        if number is not None and modes.of(name).detail is not Detail.NONE
    }
    starts = sorted(_start(group.column(0)) for group in groups)
    return {"column_sizes": sizes, "split_offsets": starts}


def _start(column: pq.ColumnChunkMetaData) -> int:
    """Offset of a row group, by its first column (ColumnChunkMetaData.getStartingPos)."""
    dictionary, data = column.dictionary_page_offset, column.data_page_offset
    return data if dictionary is None or not 0 < dictionary < data else dictionary


@dataclass(slots=True)
class _Seen:
    """The statistics of a column so far: count of nulls, count of NaN, bounds of all other values."""

    leaf: IcebergLeaf
    nulls: int = 0
    nans: int | None = None
    low: Bound = None
    high: Bound = None
    unreadable: bool = False
    """Whether a chunk had texts without bounds, as one of its extremes is no UTF-8."""

    @property
    def number(self) -> int:
        return self.leaf.field.field_id

    def add(self, column: ChunkedArray) -> None:
        self.nulls += column.null_count
        if pa.types.is_floating(column.type):
            column = self._without_nan(column)
        stats = column_stats(column, _FULL)
        texts = is_bytes(column.type) and column.null_count < len(column)
        self.unreadable = self.unreadable or (texts and stats.min is None)
        self.low = _farther(self.low, stats.min, pc.min)
        self.high = _farther(self.high, stats.max, pc.max)

    def _without_nan(self, column: ChunkedArray) -> ChunkedArray:
        flags: Datum = pc.is_nan(column)
        count = pc.sum(flags).as_py() or 0
        self.nans = (self.nans or 0) + count
        if not count:
            return column
        numbers: Datum = pc.invert(flags)
        return column.filter(numbers)

    def bounds(self, mode: StatsMode) -> tuple[bytes | None, bytes | None]:
        """Lower and upper bound as the spec serialises single values (Appendix D)."""
        kind = self.leaf.field.field_type
        # No bounds for uuids: Java compares them as signed numbers, Parquet and the spec do not. With bounds, Java
        # would skip rows and deletes.
        if mode.detail is Detail.COUNTS or self.unreadable or isinstance(kind, UUIDType):
            return None, None
        top = None if self.nans else self.high
        # Only strings and binary values are truncated: a fixed value has the length of its type.
        length = mode.length if isinstance(kind, StringType | BinaryType) else None
        low = self.low if self.low is None or length is None else cut(self.low, length)
        high = top if top is None or length is None else raised(top, length)
        return _serialised(kind, low, zero=-0.0), _serialised(kind, high, zero=0.0)


def _farther(so_far: Bound, bound: Bound, choose: Callable[[Array], Scalar]) -> Bound:
    """The lesser or the greater of two bounds, as `choose` is pc.min or pc.max."""
    if so_far is None or bound is None:
        return bound if so_far is None else so_far
    return choose(pa.array([so_far, bound], so_far.type))


def _serialised(kind: IcebergType, bound: Scalar | None, *, zero: float) -> bytes | None:
    if bound is None or not bound.is_valid:
        return None
    # As the stored number of days, microseconds or nanoseconds: Python has no type for nanoseconds.
    value = bound.value if pa.types.is_temporal(bound.type) else bound.as_py()  # type: ignore[attr-defined]
    if value == 0 and isinstance(value, float):
        # Java orders -0.0 before 0.0, and leaves out files of other ends for a delete by one of them.
        value = zero
    return to_bytes(kind, value)


def _columns(stored: pa.Schema) -> Iterator[tuple[int | None, str]]:
    """Field id and full name of each Parquet column, in order. The parts of a variant have no ids."""
    for field in stored:
        yield from _leaves(field, field.name)


def _leaves(field: ArrowField, name: str) -> Iterator[tuple[int | None, str]]:
    kind = field.type
    below: list[tuple[ArrowField, str]] = []
    if isinstance(kind, pa.StructType):
        below = [(child, child.name) for child in kind]
    elif isinstance(kind, pa.ListType):
        below = [(kind.value_field, "element")]
    elif isinstance(kind, pa.MapType):
        below = [(kind.key_field, "key"), (kind.item_field, "value")]
    else:
        yield field_id(field), name
    for child, called in below:
        yield from _leaves(child, f"{name}.{called}")
