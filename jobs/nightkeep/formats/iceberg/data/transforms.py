"""Values of a column -> transformed values, by pyiceberg-core. The gate computes them by code of its own."""

from __future__ import annotations

from typing import Any, Final, cast

import pyarrow as pa
from pyiceberg.transforms import IdentityTransform, TimeTransform, Transform
from pyiceberg.types import IcebergType, TimestampNanoType, TimestampType, TimestamptzNanoType

from nightkeep.model.arrow_types import Array

_NANOS: Final = 1000
"""Nanoseconds per microsecond."""


def transformed(source: Array, kind: IcebergType, transform: Transform[Any, Any]) -> Array:
    """The transformed values of a column of type `kind`; nulls stay nulls."""
    if isinstance(transform, IdentityTransform):
        return source
    if isinstance(transform, TimeTransform) and isinstance(kind, TimestampNanoType | TimestamptzNanoType):
        source, kind = _to_micros(source), TimestampType()
    values = transform.pyarrow_transform(kind)(source)
    if isinstance(values, pa.Array):
        return values
    return cast(Array, pa.concat_arrays([*values.chunks, pa.array([], values.type)]))


def _to_micros(nanos: Array) -> Array:
    """Timestamps rounded down to microseconds: pyiceberg-core has no hour transform of nanoseconds."""
    numbers = nanos.cast(pa.int64()).fill_null(0).to_numpy() // _NANOS
    return pa.array(numbers, pa.timestamp("us"), mask=nanos.is_null().to_numpy(zero_copy_only=False))
