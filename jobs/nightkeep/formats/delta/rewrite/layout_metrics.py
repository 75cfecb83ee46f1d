"""Two versions -> what their layout is worth to readers, from the statistics of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nightkeep.clustering.layout_metrics import layout_figures
from nightkeep.formats.delta.data.bounds import Bounds, every_bounds
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.delta.metadata.schema import TableSchema
from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaSnapshot
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import UnitKey

Path = tuple[str, ...]


def figures(before: DeltaSnapshot, after: DeltaSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """The figures of the touched partitions, for every column with bounds, by its dotted path."""
    paths = [leaf.path for leaf in indexed_leaves(after.schema) if leaf.ordered]
    sides = [file_bounds(side.schema, _files(side, touched), paths) for side in (before, after)]
    named = [{".".join(path): side[path] for path in paths} for side in sides]
    return layout_figures(*named)


def file_bounds(schema: TableSchema, files: Sequence[DataFile], paths: Iterable[Path]) -> Mapping[Path, FileBounds]:
    """What the statistics of files say of columns, by path; a file without says nothing but that it may have rows."""
    wanted = list(paths)
    return {path: _file_bounds(found) for path, found in every_bounds(schema, files, wanted).items()}


def _file_bounds(found: Bounds) -> FileBounds:
    # One row, where nobody knows: the file has to be opened.
    rows, nulls = (np.asarray(counts.fill_null(some)) for counts, some in ((found.rows, 1), (found.nulls, 0)))
    return FileBounds(found.lows, found.highs, rows - nulls)


def _files(snapshot: DeltaSnapshot, touched: Sequence[UnitKey]) -> list[DataFile]:
    units = (snapshot.by_key.get(key) for key in touched)
    return [file for unit in units if unit is not None for file in unit.files]
