"""Files -> the bounds of their columns as Arrow arrays, by their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nightkeep.formats.delta.data.bounds import ColumnBounds, every_bounds
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaDataFile
from nightkeep.kernels.skipping import FileBounds


def file_bounds(
    schema: DeltaSchema, files: Sequence[DeltaDataFile], paths: Iterable[tuple[str, ...]]
) -> Mapping[tuple[str, ...], FileBounds]:
    """What the statistics of files say of columns, by path; a file without says nothing but that it may have rows."""
    wanted = list(paths)
    return {path: _file_bounds(found) for path, found in every_bounds(schema, files, wanted).items()}


def _file_bounds(found: ColumnBounds) -> FileBounds:
    # One row, where nobody knows: the file has to be opened.
    rows, nulls = (np.asarray(counts.fill_null(some)) for counts, some in ((found.rows, 1), (found.nulls, 0)))
    return FileBounds(found.lows, found.highs, rows - nulls)
