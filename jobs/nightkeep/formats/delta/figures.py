"""Two versions -> what their layout is worth to readers: files skipped by narrow filters, files that overlap.

From statistics alone: what no file claims, no reader can skip by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from nightkeep.formats.delta.bounds import Bounds, every_bounds
from nightkeep.formats.delta.leaves import indexed_leaves
from nightkeep.formats.delta.metadata import DataFile, DeltaSnapshot
from nightkeep.formats.delta.schema import TableSchema
from nightkeep.kernels.skipping import FileBounds, overlap, queries_of, skipped_share
from nightkeep.model import UnitKey

Path = tuple[str, ...]
LOSING: Final = 0.01
"""A column whose skipping falls by more than this share of files loses; less is within what a sample misses by."""
_DIGITS: Final = 4


def figures(before: DeltaSnapshot, after: DeltaSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """JSON of the touched partitions: `skipping` and `overlap` by column with statistics, before and after.

    `skipping` is the mean share of files that a query for 1 % of the rows does not open, with the same queries on
    both sides; `overlap` the mean number of files that may hold a value. `losing` names columns that skip less.
    """
    paths = [leaf.path for leaf in indexed_leaves(after.schema) if leaf.ordered]
    sides = [file_bounds(side.schema, _files(side, touched), paths) for side in (before, after)]
    skipping, overlaps = {}, {}
    for path in paths:
        queries = queries_of(sides[1][path])
        shares = [skipped_share(side[path], queries) for side in sides]
        name = ".".join(path)
        skipping[name] = _pair(shares)
        overlaps[name] = _pair([overlap(side[path]) for side in sides])
    losing = [name for name, share in skipping.items() if share["before"] - share["after"] > LOSING]
    return {"skipping": skipping, "overlap": overlaps, "losing": losing}


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


def _pair(values: Sequence[float]) -> dict[str, float]:
    before, after = (round(value, _DIGITS) for value in values)
    return {"before": before, "after": after}
