"""Types of maps, and lists and maps with other values."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from nightkeep.model.arrow_types import Array, ArrowField, ChunkedArray


def rebuilt(array: Array, target: pa.DataType, values: Array) -> Array:
    """The same lists or maps with other values. A slice stays a slice."""
    validity, offsets = array.buffers()[:2]
    result = pa.Array.from_buffers(target, len(array), [validity, offsets], -1, array.offset, [values])
    return cast(Array, result)


def typed_as(field: ArrowField, values: Array | ChunkedArray) -> ArrowField:
    """The field with the type that its values have: a shredded variant within has that of its file."""
    return field if values.type == field.type else field.with_type(values.type)


def without_nulls(array: Array) -> Array:
    """The same array with any values in place of nulls, at its own level: for required fields of a struct whose nulls
    are null structs. Arrow writes no null of a required field, even where the struct is null."""
    if not array.null_count:
        return array
    if isinstance(array, pa.ExtensionArray):
        return cast(Array, pa.ExtensionArray.from_storage(array.type, without_nulls(array.storage)))
    if isinstance(array, pa.StructArray):
        children = [array.field(place) for place in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type))
    # The buffers of a list are followed by those of its values.
    is_list = isinstance(array, pa.ListArray)
    buffers = [None, *array.buffers()[1 : 2 if is_list else None]]
    below = [cast(Any, array).values] if is_list else None
    return cast(Array, pa.Array.from_buffers(array.type, len(array), buffers, 0, array.offset, below))


def map_of(key: ArrowField, item: ArrowField) -> pa.DataType:
    """A map with these fields. The stubs of pyarrow know maps of types only."""
    fields: Any = (key, item)
    return cast(pa.DataType, pa.map_(*fields))
