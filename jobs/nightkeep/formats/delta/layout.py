"""A snapshot -> where its rows lie: the bounds of every file by its statistics, and a sample of the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.delta.columns import FileReader
from nightkeep.formats.delta.figures import file_bounds
from nightkeep.formats.delta.leaves import indexed_leaves
from nightkeep.formats.delta.metadata import DataFile, DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.vectors import read_vector
from nightkeep.kernels.arrow_buffers import ChunkedArray
from nightkeep.kernels.bitmap import Width, from_positions, positions
from nightkeep.layout import Layout
from nightkeep.storage import Storage

SAMPLED_FILES = 16
"""Files of a partition that a sample reads: every one costs an open file and some of its row groups."""


def layout(snapshot: DeltaSnapshot) -> Layout:
    """Every live file, and the bounds of each leaf column that has statistics, by its dotted path."""
    placed = [(place, file) for place, unit in enumerate(snapshot.units) for file in unit.files]
    files = [file for _, file in placed]
    wanted = [leaf.path for leaf in indexed_leaves(snapshot.schema) if leaf.ordered]
    found = file_bounds(snapshot.schema, files, wanted)
    return Layout(
        np.array([place for place, _ in placed], np.int64),
        np.array([file.bytes for file in files], np.int64),
        {".".join(path): each for path, each in found.items() if each.bounded.any()},
    )


def sample(
    storage: Storage, snapshot: DeltaSnapshot, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """About `rows` live rows in all: of each partition as many as it has bytes, from files spread over it."""
    size = max(1, sum(snapshot.sizes.bytes))
    for place, unit in enumerate(snapshot.units):
        wanted = rows * sum(file.bytes for file in unit.files) // size
        if wanted:
            yield place, _sampled(storage, unit, columns, wanted)


def _sampled(storage: Storage, unit: DeltaUnit, columns: Sequence[str], rows: int) -> pa.Table:
    chosen = unit.files[:: max(1, -(-len(unit.files) // SAMPLED_FILES))]
    share = -(-rows // len(chosen))
    return pa.concat_tables([_of_file(storage, unit, file, columns, share) for file in chosen])


def _of_file(storage: Storage, unit: DeltaUnit, file: DataFile, columns: Sequence[str], rows: int) -> pa.Table:
    """Columns at their dotted paths, of live rows chosen at random; the seed is fixed, so that advice repeats."""
    reader = FileReader(storage, unit, file)
    live = np.arange(reader.rows)
    if file.vector is not None:
        live = np.setdiff1d(live, positions(read_vector(storage, file)), assume_unique=True)
    at = np.random.default_rng(reader.rows).choice(live, min(rows, len(live)), replace=False, shuffle=False)
    tops = tuple(dict.fromkeys(_top(unit, column) for column in columns))
    pieces = list(reader.taken(tops, from_positions(at.astype(np.int64), Width.BITS_64)))  # type: ignore[arg-type]
    found = pa.concat_tables(pieces) if pieces else reader.sampled(tops, 0, 0)
    return pa.table({column: _leaf(found, _top(unit, column), column) for column in columns})


def _top(unit: DeltaUnit, path: str) -> str:
    """The top-level column of a dotted path; a column's own name may have dots."""
    names = [field.name for field in unit.schema.fields if path == field.name or path.startswith(f"{field.name}.")]
    return max(names, key=len)


def _leaf(found: pa.Table, top: str, path: str) -> ChunkedArray:
    column = found.column(top)
    for name in path.removeprefix(top).split(".")[1:]:
        column = pc.struct_field(column, name)
    return column
