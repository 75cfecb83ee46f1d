"""Types of maps, and lists and maps with other values."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from nightkeep.model.arrow_types import Array, ArrowField


def rebuilt(array: Array, target: pa.DataType, values: Array) -> Array:
    """The same lists or maps with other values. A slice stays a slice."""
    validity, offsets = array.buffers()[:2]
    result = pa.Array.from_buffers(target, len(array), [validity, offsets], -1, array.offset, [values])
    return cast(Array, result)


def map_of(key: ArrowField, item: ArrowField) -> pa.DataType:
    """A map with these fields. The stubs of pyarrow know maps of types only."""
    fields: Any = (key, item)
    return cast(pa.DataType, pa.map_(*fields))
