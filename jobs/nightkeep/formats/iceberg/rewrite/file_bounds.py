"""Files -> the bounds of their columns as Arrow arrays, from manifests only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg.types import IcebergType, TimeType

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.conversions import Value, from_bytes
from nightkeep.formats.iceberg.metadata.leaf_columns import IcebergLeaf
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model.arrow_types import Array

_DAY_MICROS: Final = 86_400_000_000


def file_bounds(files: Sequence[ContentFile], leaves: Iterable[IcebergLeaf]) -> Mapping[tuple[str, ...], FileBounds]:
    """The bounds of every ordered leaf, by its path. A bound that is no value of its column is missing, as is a null
    count that cannot be one; a missing null count is taken as 0."""
    return {leaf.path: _bounds(files, leaf) for leaf in leaves if leaf.ordered}


def _bounds(files: Sequence[ContentFile], leaf: IcebergLeaf) -> FileBounds:
    counted = np.array([_nulls(file, leaf.field.field_id) for file in files], np.int64)
    rows = np.array([file.rows for file in files], np.int64)
    lows, highs = (_ends(files, leaf, name) for name in ("lower_bounds", "upper_bounds"))
    return FileBounds(lows, highs, rows - counted)


def _nulls(file: ContentFile, number: int) -> int:
    nulls = file.count("null_value_counts", number)
    return nulls if nulls is not None and 0 <= nulls <= file.rows else 0


def _ends(files: Sequence[ContentFile], leaf: IcebergLeaf, name: str) -> Array:
    """The bounds in the column's type; for fixed as binary, as bounds may be truncated."""
    number = leaf.field.field_id
    values = [_value(leaf.field.field_type, file.bound(name, number)) for file in files]
    try:
        return _array(values, leaf.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        # A value that the type cannot hold, such as a decimal of too many digits: find out which.
        return pa.concat_arrays([_alone(value, leaf.type) for value in values])


def _value(kind: IcebergType, data: bytes | None) -> Value | None:
    try:
        value = None if data is None else from_bytes(kind, data, subject="a bound")
    except CorruptMetadata:
        return None
    is_time = isinstance(kind, TimeType) and isinstance(value, int)
    return None if is_time and not 0 <= int(value or 0) < _DAY_MICROS else value


def _alone(value: Value | None, kind: pa.DataType) -> Array:
    try:
        return _array([value], kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return _array([None], kind)


def _array(values: Sequence[Value | None], kind: pa.DataType) -> Array:
    if pa.types.is_temporal(kind):
        # These bounds are numbers: days, microseconds, nanoseconds.
        return pa.array(values, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    return pa.array(values, pa.binary() if pa.types.is_fixed_size_binary(kind) else kind)
