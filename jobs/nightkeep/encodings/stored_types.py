"""Arrow values as a decoder returns them -> the types that a file declares: the same values under another meaning.

ORC has a time of day as a number and bytes of a fixed length as bytes; Polars has times as numbers, decimals and bytes
of a fixed length as bytes, and maps as lists of entries.
"""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.encodings.nested_values import rebuilt
from nightkeep.kernels.arrow_buffers import byte_spans
from nightkeep.model.arrow_types import Array, ArrowField, ArrowMapType, ListArray

_DECIMAL_BYTES: Final = 16


def declared(array: Array, kind: pa.DataType) -> Array:
    """The values as `kind`. Structs have the fields of `kind` in their order. Nulls stay nulls.

    Raises ArrowInvalid, a ValueError, for a value that does not fit, and ValueError for decimals of more than 16 bytes.
    """
    if isinstance(kind, pa.StructType):
        return _struct(cast(pa.StructArray, array), list(kind))
    if isinstance(array, pa.LargeListArray):
        array = array.cast(pa.list_(array.type.value_field))
    if isinstance(kind, pa.MapType):
        return _map(array, kind)
    if isinstance(kind, pa.ListType):
        return rebuilt(array, kind, declared(cast(ListArray, array).values, kind.value_type))
    if pa.types.is_decimal(kind) and not pa.types.is_decimal(array.type):
        return _decimals(array, kind)
    return array if array.type == kind else cast(Array, array.cast(kind))


def _struct(array: pa.StructArray, fields: list[ArrowField]) -> Array:
    children = [declared(array.field(place), field.type) for place, field in enumerate(fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _map(array: Array, kind: ArrowMapType) -> Array:
    """From a map, or from a list of entries of a key and a value."""
    if isinstance(array, pa.MapArray):
        keys, items = array.keys, array.items
    else:
        entries: Any = cast(ListArray, array).values
        keys, items = entries.field(0), entries.field(1)
    pair = pa.StructArray.from_arrays(
        [declared(keys, kind.key_type), declared(items, kind.item_type)], fields=[kind.key_field, kind.item_field]
    )
    return rebuilt(array, kind, pair)


def _decimals(array: Array, kind: pa.DataType) -> Array:
    """Decimals from their unscaled numbers, as big-endian bytes of two's complement."""
    data, starts, stops = byte_spans(array)
    sizes = stops - starts
    if len(array) and sizes.max() > _DECIMAL_BYTES:
        raise ValueError(f"decimals of up to {_DECIMAL_BYTES} bytes, found {sizes.max()}")
    # Little-endian, each number filled up with its sign.
    wide = np.zeros((len(array), _DECIMAL_BYTES), np.uint8)
    if len(array):
        some = sizes > 0
        wide[some & (data[np.minimum(starts, len(data) - 1)] > 0x7F)] = 0xFF
        for place in range(int(sizes.max())):
            held = np.flatnonzero(sizes > place)
            wide[held, place] = data[stops[held] - 1 - place]
    valid = _validity(array)
    numbers = pa.Array.from_buffers(kind, len(array), [valid, pa.py_buffer(wide.tobytes())], array.null_count)
    numbers.validate(full=True)
    return cast(Array, numbers)


def _validity(array: Array) -> pa.Buffer | None:
    if not array.null_count:
        return None
    flags: npt.NDArray[np.bool_] = np.asarray(array.is_valid())
    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())
