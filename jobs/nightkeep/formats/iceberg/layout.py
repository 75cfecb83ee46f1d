"""A snapshot -> where its rows lie: the bounds of every file by its manifest, and a sample of the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.sampling import leaf_at, spread, top_of
from nightkeep.formats.iceberg.bounds import file_bounds
from nightkeep.formats.iceberg.cluster_columns import indexed_leaves
from nightkeep.formats.iceberg.columns import FileReader
from nightkeep.formats.iceberg.content_files import ContentFile
from nightkeep.formats.iceberg.hidden_rows import hidden
from nightkeep.formats.iceberg.inputs import placed_files
from nightkeep.formats.iceberg.metadata import IcebergSnapshot
from nightkeep.formats.iceberg.schema import TableSchema
from nightkeep.kernels.bitmap import Width, from_positions, positions
from nightkeep.layout import Layout
from nightkeep.storage import Storage


def layout(snapshot: IcebergSnapshot) -> Layout:
    """Every live file, and the bounds of each leaf column that can be clustered by, by its dotted path."""
    placed = [(place, file) for place, unit in enumerate(snapshot.units) for file in unit.files]
    files = [file for _, file in placed]
    found = file_bounds(files, indexed_leaves(snapshot.schema))
    return Layout(
        np.array([place for place, _ in placed], np.int64),
        np.array([file.bytes for file in files], np.int64),
        {".".join(path): each for path, each in found.items() if each.bounded.any()},
    )


def sample(
    storage: Storage, snapshot: IcebergSnapshot, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """About `rows` live rows in all: of each partition as many as it has bytes, from files spread over it."""
    for place, files, share in spread([placed_files(unit) for unit in snapshot.units], rows):
        unit, chosen = snapshot.units[place], [placed.file for placed in files]
        gone = hidden(storage, unit, chosen)
        parts = [_of_file(storage, unit.schema, file, columns, gone.get(file.path), rows=share) for file in chosen]
        yield place, pa.concat_tables(parts)


def _of_file(
    storage: Storage,
    schema: TableSchema,
    file: ContentFile,
    columns: Sequence[str],
    gone: BitMap64 | None,
    *,
    rows: int,
) -> pa.Table:
    """Columns at their dotted paths, of live rows chosen at random; the seed is fixed, so that advice repeats."""
    reader = FileReader(storage, schema, file)
    live = np.arange(reader.rows)
    if gone is not None:
        live = np.setdiff1d(live, positions(gone), assume_unique=True)
    at = np.random.default_rng(reader.rows).choice(live, min(rows, len(live)), replace=False, shuffle=False)
    names = [field.name for field in schema.current.fields]
    tops = tuple(dict.fromkeys(top_of(names, column) for column in columns))
    pieces = list(reader.taken(tops, from_positions(at.astype(np.int64), Width.BITS_64)))  # type: ignore[arg-type]
    found = pa.concat_tables(pieces) if pieces else reader.sampled(tops, 0, 0)
    return pa.table({column: leaf_at(found, column) for column in columns})
