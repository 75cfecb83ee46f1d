"""Units of files -> which files to sample, and columns of the sample by dotted path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.clustered_files import F
from nightkeep.clustering.live_rows import OpenFile
from nightkeep.kernels.arrow_buffers import leaf_values
from nightkeep.kernels.bitmap import Width, from_positions, positions
from nightkeep.model.arrow_types import ChunkedArray

SAMPLED_FILES: Final = 16
"""Files of a unit that a sample reads: every one costs an open file and some of its row groups."""


def spread(units: Sequence[Sequence[F]], rows: int) -> Iterator[tuple[int, Sequence[F], int]]:
    """Yield (index of a unit, files spread over it, rows to take from each file): about `rows` rows in all.

    Each unit gets rows in proportion to its bytes; units that get none are left out.
    """
    sizes = [sum(file.bytes for file in files) for files in units]
    for place, files in enumerate(units):
        wanted = rows * sizes[place] // max(1, sum(sizes))
        if wanted:
            chosen = files[:: max(1, -(-len(files) // SAMPLED_FILES))]
            yield place, chosen, -(-wanted // len(chosen))


def live_sample(
    reader: OpenFile, gone: BitMap64 | None, columns: Sequence[str], *, tops: Sequence[str], rows: int
) -> pa.Table:
    """The columns at dotted paths of `rows` random rows of a file, none of them at a `gone` position.

    `tops` are the table's top-level columns. The seed is fixed, so that advice is repeatable.
    """
    live = np.arange(reader.rows)
    if gone:
        live = np.setdiff1d(live, positions(gone), assume_unique=True)
    at = np.random.default_rng(reader.rows).choice(live, min(rows, len(live)), replace=False, shuffle=False)
    wanted = tuple(dict.fromkeys(top_of(tops, column) for column in columns))
    pieces = list(reader.taken(wanted, BitMap64(from_positions(at.astype(np.int64), Width.BITS_64))))
    sample = pa.concat_tables(pieces) if pieces else reader.sampled(wanted, 0, 0)
    return pa.table({column: leaf_at(sample, column) for column in columns})


def top_of(tops: Sequence[str], path: str) -> str:
    """The top-level column of a dotted path; a column's own name may have dots."""
    return max((name for name in tops if path == name or path.startswith(f"{name}.")), key=len)


def leaf_at(table: pa.Table, path: str) -> ChunkedArray:
    """The column at a dotted path; null where a struct above it is null."""
    top = top_of(table.column_names, path)
    return leaf_values(table, (top, *path.removeprefix(top).split(".")[1:]))
