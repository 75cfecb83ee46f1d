"""Files -> the bounds of their columns as Arrow arrays, from manifests only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.conversions import from_bytes
from nightkeep.formats.iceberg.metadata.leaf_columns import IcebergLeaf
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model.arrow_types import Array


def file_bounds(files: Sequence[ContentFile], leaves: Iterable[IcebergLeaf]) -> Mapping[tuple[str, ...], FileBounds]:
    """The bounds of every ordered leaf, by its path. A missing null count is taken as 0."""
    return {leaf.path: _bounds(files, leaf) for leaf in leaves if leaf.ordered}


def _bounds(files: Sequence[ContentFile], leaf: IcebergLeaf) -> FileBounds:
    counted = np.array([file.count("null_value_counts", leaf.field.field_id) or 0 for file in files], np.int64)
    rows = np.array([file.rows for file in files], np.int64)
    lows, highs = (_ends(files, leaf, name) for name in ("lower_bounds", "upper_bounds"))
    return FileBounds(lows, highs, rows - counted)


def _ends(files: Sequence[ContentFile], leaf: IcebergLeaf, name: str) -> Array:
    """The bounds in the column's type; for fixed as binary, as bounds may be truncated."""
    number, kind = leaf.field.field_id, leaf.field.field_type
    values = [
        None if data is None else from_bytes(kind, data, subject=f"{file.path}: {name} of field {number}")
        for file, data in ((file, file.bound(name, number)) for file in files)
    ]
    kind_of_column = leaf.type
    if pa.types.is_temporal(kind_of_column):
        # These bounds are numbers: days, microseconds, nanoseconds.
        return pa.array(values, pa.int32() if pa.types.is_date32(kind_of_column) else pa.int64()).cast(kind_of_column)
    return pa.array(values, pa.binary() if pa.types.is_fixed_size_binary(kind_of_column) else kind_of_column)
