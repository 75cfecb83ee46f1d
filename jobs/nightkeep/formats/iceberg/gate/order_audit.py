"""New files that name a sort order -> faults: rows out of that order, and files of one partition that overlap.

Spec, "Sort Orders". Each row is compared with the one before it, field by field; nothing is sorted. Transformed values
are computed by the gate's own code, and compared by Arrow. As in Java, every NaN is equal to others and greatest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.gate.transform_values import transform_values
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.order_columns import described, order_fault, source_columns
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.sort_orders import UNSORTED, SortField, SortOrder
from nightkeep.gate.column_range import leaf_values
from nightkeep.kernels.arrow_buffers import OF_VIEWS
from nightkeep.model.arrow_types import Array
from nightkeep.storage import Storage

Flags = npt.NDArray[np.bool_]
LAYOUT_KEY = "nightkeep.clustering"
"""The key of a snapshot's summary that has the layout which its files were written in."""


@dataclass(frozen=True, slots=True)
class _OrderedField:
    path: tuple[str, ...]
    field: SortField


@dataclass
class OrderCheck:
    """Compares the rows of one file as they come. `faults` may be asked once all came."""

    subject: str
    order: str
    fields: tuple[_OrderedField, ...]
    _last: list[Array] | None = None
    _wrong: int | None = None
    _ends: list[list[Array]] = field(default_factory=list)

    def watched(self, pieces: Iterable[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
        for start, piece in pieces:
            self.add(start, piece)
            yield start, piece

    def add(self, start: int, piece: pa.Table) -> None:
        """Add the rows from position `start` on."""
        if not piece.num_rows:
            return
        values = [_values(piece, each) for each in self.fields]
        self._ends += [] if self._ends else [[each[:1] for each in values]]
        if self._last is not None:
            values = [pa.concat_arrays([last, each]) for last, each in zip(self._last, values, strict=True)]
            start -= 1
        after = _descents(values, self.fields)
        if self._wrong is None and after.any():
            self._wrong = start + int(np.argmax(after)) + 1
        self._last = [each[-1:] for each in values]

    def faults(self) -> Iterator[str]:
        if self._wrong is not None:
            yield f"{self.subject}: row {self._wrong} sorts before the one above it by {self.order}, which it names"

    @property
    def ends(self) -> tuple[list[Array], list[Array]] | None:
        """The values of the first and of the last row, each as arrays of one value; None without rows."""
        return None if self._last is None else (self._ends[0], self._last)


def order_check(schema: IcebergSchema, file: ContentFile) -> OrderCheck | str | None:
    """The check of a file that names an order; None if it names none, and the fault if it names one that no file can
    have."""
    number = file.sort_order_id
    if number in (None, UNSORTED):
        return None
    order = schema.sort_orders.orders.get(number or UNSORTED)
    if order is None:
        return f"{file.path}: sort order {number}, expected one of the table's, {sorted(schema.sort_orders.orders)}"
    fault = order_fault(schema, order)
    if fault is not None:
        return f"{file.path}: sort order {number}, by which no rows can be sorted: {fault}"
    return OrderCheck(file.path, described(schema, order), _fields(schema, order))


def stated_order_faults(candidate: IcebergSnapshot, new: Sequence[ContentFile]) -> Iterator[str]:
    """Faults unless new data files name the order that the snapshot states as their layout; none where it states no
    order."""
    stated, orders = candidate.summary.get(LAYOUT_KEY, ""), candidate.schema.sort_orders.orders.values()
    named = {described(candidate.schema, order): order.order_id for order in orders}
    expected = named.get(stated, UNSORTED)
    for file in new:
        if (file.sort_order_id or UNSORTED) != expected:
            yield f"{file.path}: sort order {file.sort_order_id}, expected {expected}, as its snapshot states"


def overlap_faults(storage: Storage, unit: IcebergUnit, new: Sequence[ContentFile]) -> Iterator[str]:
    """Faults unless the new files of one partition follow each other in the order that they name. Only the first and
    the last rows of files are read."""
    by_order: dict[int, list[tuple[ContentFile, OrderCheck]]] = {}
    for file in new:
        check = order_check(unit.schema, file)
        if isinstance(check, OrderCheck) and file.rows:
            by_order.setdefault(file.sort_order_id or UNSORTED, []).append((file, check))
    for checks in by_order.values():
        if len(checks) > 1:
            yield from _overlaps([_read(storage, unit.schema, file, check) for file, check in checks])


def _read(storage: Storage, schema: IcebergSchema, file: ContentFile, check: OrderCheck) -> OrderCheck:
    reader = IcebergFileReader(storage, schema, file, decoder=polars_batches)
    names = list(dict.fromkeys(each.path[0] for each in check.fields))
    groups = sorted({0, len(reader.parts) - 1})
    for start, piece in reader.pieces(names, groups):
        check.add(start, piece)
    return check


def _overlaps(checks: Sequence[OrderCheck]) -> Iterator[str]:
    known = [(check, check.ends) for check in checks]
    ranges = [(check, ends[0], ends[1]) for check, ends in known if ends is not None]

    def compare(left: tuple[OrderCheck, Any, Any], right: tuple[OrderCheck, Any, Any]) -> int:
        fields = left[0].fields
        return _compared(left[1], right[1], fields) or _compared(left[2], right[2], fields)

    ranges.sort(key=cmp_to_key(compare))
    for before, after in pairwise(ranges):
        if _compared(before[2], after[1], before[0].fields) > 0:
            yield f"{after[0].subject}: begins before {before[0].subject} ends by {after[0].order}"


def _compared(left: Sequence[Array], right: Sequence[Array], fields: Sequence[_OrderedField]) -> int:
    """Below 0 if the row `left` sorts before `right`, above 0 if after it."""
    pair = [pa.concat_arrays([a, b]) for a, b in zip(left, right, strict=True)]
    back = [pa.concat_arrays([b, a]) for a, b in zip(left, right, strict=True)]
    return int(_descents(pair, fields)[0]) - int(_descents(back, fields)[0])


def _descents(values: Sequence[Array], fields: Sequence[_OrderedField]) -> Flags:
    """For each row but the first, whether it sorts before the one above it."""
    count = max(0, len(values[0]) - 1)
    after, tied = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for column, each in zip(values, fields, strict=True):
        less, greater = _steps(column, each.field)
        after |= tied & less
        tied &= ~less & ~greater
    return after


def _steps(values: Array, by: SortField) -> tuple[Flags, Flags]:
    """For each row but the first, whether it sorts before the one above it by this field, and whether after it."""
    above, below = values[:-1], values[1:]
    nulls = [_flags(each.is_null()) for each in (above, below)]
    valid = ~nulls[0] & ~nulls[1]
    if pa.types.is_floating(values.type):
        down, up = _float_steps(above, below)
    else:
        steps = [compare(below, above) for compare in (pc.less, pc.greater)]
        down, up = (_flags(pc.and_kleene(each, each.is_valid())) for each in steps)
    less, greater = (up, down) if by.descending else (down, up)
    to_null, from_null = nulls[1] & ~nulls[0], nulls[0] & ~nulls[1]
    first, last = (to_null, from_null) if by.nulls_first else (from_null, to_null)
    return (valid & less) | first, (valid & greater) | last


def _float_steps(above: Array, below: Array) -> tuple[Flags, Flags]:
    a, b = (each.fill_null(0.0).to_numpy() for each in (above, below))
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    zeros = (a == 0) & (b == 0)
    with np.errstate(invalid="ignore"):
        down = (b < a) | (nan_a & ~nan_b) | (zeros & np.signbit(b) & ~np.signbit(a))
        up = (b > a) | (nan_b & ~nan_a) | (zeros & np.signbit(a) & ~np.signbit(b))
    return down, up


def _flags(array: Any) -> Flags:
    flags: Flags = array.to_numpy(zero_copy_only=False)
    return flags


def _values(piece: pa.Table, each: _OrderedField) -> Array:
    column = leaf_values(piece, each.path)
    kind: Any = OF_VIEWS.get(column.type, column.type)
    chunks: list[Array] = [chunk.cast(kind) for chunk in column.chunks]
    return transform_values(pa.concat_arrays(chunks), each.field.transform)


def _fields(schema: IcebergSchema, order: SortOrder) -> tuple[_OrderedField, ...]:
    return tuple(_OrderedField(column.path, each) for each, column in source_columns(schema, order))
