"""Pairs of rows -> whether they are equal, by Java's generated RecordEqualiser.

Null equals null, NaN equals NaN, and 0.0 differs from -0.0. A map does not depend on the order of its entries. Within
arrays and maps Java takes null for equal to null only where it holds both alike; here it always is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.rewrite.element_codes import dense
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import Array


def are_equal(rows: pa.Table, left: Rows, right: Rows, *, columns: Sequence[str]) -> Flags:
    """Whether two rows are equal in these columns, for each pair of row numbers. Without columns every pair is."""
    equal = np.ones(len(left), np.bool_)
    for name in columns:
        values: Any = rows.column(name).take(np.concatenate([left, right])).combine_chunks()
        equal &= _equal_values(values.slice(0, len(left)), values.slice(len(left)))
    return equal


def _equal_values(left: Array, right: Array) -> Flags:
    null = [np.asarray(side.is_null()) for side in (left, right)]
    equal = np.zeros(len(left), np.bool_)
    both = ~null[0] & ~null[1]
    equal[both] = _equal_held(left.filter(pa.array(both)), right.filter(pa.array(both)))
    found: Flags = equal | (null[0] & null[1])
    return found


def _equal_held(left: Any, right: Any) -> Flags:
    """Of values that are not null, in arrays that are no slices."""
    kind = left.type
    if pa.types.is_struct(kind):
        equal = np.ones(len(left), np.bool_)
        for number in range(kind.num_fields):
            equal &= _equal_values(left.field(number), right.field(number))
        return equal
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _equal_lists(left, right)
    flags: Flags = np.asarray(pc.equal(_by_bits(left), _by_bits(right)))
    return flags


def _equal_lists(left: Any, right: Any) -> Flags:
    sizes = [np.diff(np.asarray(side.offsets)) for side in (left, right)]
    equal: Flags = sizes[0] == sizes[1]
    sides, size = [side.filter(pa.array(equal)) for side in (left, right)], sizes[0][equal]
    of = np.repeat(np.arange(len(size)), size)
    if pa.types.is_map(left.type):
        keys, items = ([_flat(side, part) for side in sides] for part in ("keys", "items"))
        places = _by_keys(of, *keys)
        pairs = [[each.take(place) for each, place in zip(part, places, strict=True)] for part in (keys, items)]
    else:
        pairs = [[_flat(side, "values") for side in sides]]
    same = np.logical_and.reduce([_equal_values(*pair) for pair in pairs])
    equal[equal] = np.bincount(of[~same], minlength=len(size)) == 0
    return equal


def _flat(lists: Any, part: str) -> Array:
    """The elements of lists without nulls: their child array may begin before them and end after them."""
    offsets = np.asarray(lists.offsets)
    elements: Array = getattr(lists, part).slice(offsets[0], offsets[-1] - offsets[0])
    return elements


def _by_keys(of: Rows, left: Array, right: Array) -> tuple[Rows, Rows]:
    """The entries of each side's maps in one order of keys. `of`: the number of each entry's map. Nested keys stay as
    they are stored."""
    if pa.types.is_nested(left.type):
        return np.arange(len(of)), np.arange(len(of))
    codes = dense([pa.concat_arrays([left, right])])
    return np.lexsort((codes[: len(of)], of)), np.lexsort((codes[len(of) :], of))


def _by_bits(column: Array) -> Array:
    """Floats as the integers of Double.doubleToLongBits, which knows one NaN and two zeros."""
    if not pa.types.is_floating(column.type):
        return column
    values: Any = column.to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), values.dtype.type("nan"), values).view(f"i{values.dtype.itemsize}")
    numbers: Array = pa.array(bits)
    return numbers
