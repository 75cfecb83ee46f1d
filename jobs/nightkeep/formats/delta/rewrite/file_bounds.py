"""Files -> the bounds of their columns as Arrow arrays. Reads only their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nightkeep.formats.delta.data.bounds import ColumnBounds, every_bounds
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.kernels.skipping import FileBounds


def file_bounds(
    schema: DeltaSchema, files: Sequence[DeltaDataFile], paths: Iterable[tuple[str, ...]]
) -> Mapping[tuple[str, ...], FileBounds]:
    """Bounds by column path. A file without statistics has unknown bounds, and counts as having a row."""
    chosen = list(paths)
    return {path: _file_bounds(column) for path, column in every_bounds(schema, files, chosen).items()}


def _file_bounds(column: ColumnBounds) -> FileBounds:
    # An unknown row count counts as one row, so that the file is opened.
    rows, nulls = (np.asarray(counts.fill_null(some)) for counts, some in ((column.rows, 1), (column.nulls, 0)))
    return FileBounds(column.lows, column.highs, rows - nulls)
