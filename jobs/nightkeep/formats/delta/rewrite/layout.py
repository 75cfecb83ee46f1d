"""A snapshot -> where its rows lie: the bounds of every file by its statistics, and a sample of the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from nightkeep.clustering.layout import Layout
from nightkeep.clustering.sampling import live_sample, spread
from nightkeep.formats.delta.data.columns import FileReader
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.layout_metrics import file_bounds
from nightkeep.storage import Storage


def layout(snapshot: DeltaSnapshot) -> Layout:
    """Every live file, and the bounds of each leaf column that has statistics, by its dotted path."""
    placed = [(place, file) for place, unit in enumerate(snapshot.units) for file in unit.files]
    files = [file for _, file in placed]
    wanted = [leaf.path for leaf in indexed_leaves(snapshot.schema) if leaf.ordered]
    found = file_bounds(snapshot.schema, files, wanted)
    named = {".".join(path): each for path, each in found.items()}
    bounded = {name: each for name, each in named.items() if each.bounded.any()}
    return Layout(
        np.array([place for place, _ in placed], np.int64),
        np.array([file.bytes for file in files], np.int64),
        bounded or named,
    )


def sample(
    storage: Storage, snapshot: DeltaSnapshot, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """About `rows` live rows in all: of each partition as many as it has bytes, from files spread over it."""
    for place, files, share in spread([unit.files for unit in snapshot.units], rows):
        unit = snapshot.units[place]
        yield place, pa.concat_tables([_of_file(storage, unit, file, columns, share) for file in files])


def _of_file(storage: Storage, unit: DeltaUnit, file: DataFile, columns: Sequence[str], rows: int) -> pa.Table:
    names = [field.name for field in unit.schema.fields]
    gone = read_vector(storage, file)
    return live_sample(FileReader(storage, unit, file), gone, columns, tops=names, rows=rows)
