"""A snapshot -> where its rows lie: the bounds of every file by its manifest, and a sample of the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.layout import Layout
from nightkeep.clustering.sampling import live_sample, spread
from nightkeep.formats.iceberg.data.bounds import file_bounds
from nightkeep.formats.iceberg.data.columns import FileReader
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.cluster_columns import indexed_leaves
from nightkeep.formats.iceberg.rewrite.hidden_rows import hidden
from nightkeep.formats.iceberg.rewrite.inputs import placed_files
from nightkeep.storage import Storage


def layout(snapshot: IcebergSnapshot) -> Layout:
    """Every live file, and the bounds of each leaf column that can be clustered by, by its dotted path."""
    placed = [(place, file) for place, unit in enumerate(snapshot.units) for file in _read(unit)]
    files = [file for _, file in placed]
    found = file_bounds(files, indexed_leaves(snapshot.schema))
    named = {".".join(path): each for path, each in found.items()}
    bounded = {name: each for name, each in named.items() if each.bounded.any()}
    return Layout(
        np.array([place for place, _ in placed], np.int64),
        np.array([file.bytes for file in files], np.int64),
        bounded or named,
    )


def sample(
    storage: Storage, snapshot: IcebergSnapshot, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """About `rows` live rows in all: of each partition as many as it has bytes, from files spread over it."""
    for place, files, share in spread([placed_files(unit) if _read(unit) else () for unit in snapshot.units], rows):
        unit, chosen = snapshot.units[place], [placed.file for placed in files]
        names = [field.name for field in unit.schema.current.fields]
        gone = hidden(storage, unit, chosen)
        parts = [
            live_sample(
                FileReader(storage, unit.schema, file), gone.get(file.path, _NONE), columns, tops=names, rows=share
            )
            for file in chosen
        ]
        yield place, pa.concat_tables(parts)


def _read(unit: IcebergUnit) -> tuple[ContentFile, ...]:
    return () if unit.left_out else unit.files


_NONE: Final = BitMap64()
