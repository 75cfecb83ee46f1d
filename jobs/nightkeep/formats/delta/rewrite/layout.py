"""A snapshot -> its layout: the bounds of every file from its statistics, and a sample of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from nightkeep.clustering.layout import layout_of
from nightkeep.clustering.sampling import live_sample, spread
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.file_bounds import file_bounds
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import Bound, LayoutReading, TableLayout
from nightkeep.storage import Storage


def layout_reading(storage: Storage) -> LayoutReading[DeltaSnapshot]:
    return LayoutReading(layout, Bound(sample, storage), target_bytes)


def target_bytes(snapshot: DeltaSnapshot, request: Request) -> int:
    return sizes_of(snapshot, request).target


def layout(snapshot: DeltaSnapshot) -> TableLayout:
    """The bounds of every live file, for each leaf column with statistics, by its dotted path."""
    paths = [leaf.path for leaf in indexed_leaves(snapshot.schema) if leaf.ordered]
    units = [unit.files for unit in snapshot.units]
    return layout_of(units, lambda files: file_bounds(snapshot.schema, files, paths))


def sample(
    storage: Storage, snapshot: DeltaSnapshot, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """A sample of about `rows` live rows. Each partition's share is that of its bytes, from files all over it."""
    for place, files, share in spread([unit.files for unit in snapshot.units], rows):
        unit = snapshot.units[place]
        yield place, pa.concat_tables([_of_file(storage, unit, file, columns, share) for file in files])


def _of_file(storage: Storage, unit: DeltaUnit, file: DeltaDataFile, columns: Sequence[str], rows: int) -> pa.Table:
    names = [field.name for field in unit.schema.fields]
    gone = read_vector(storage, file)
    return live_sample(DeltaFileReader(storage, unit, file), gone, columns, tops=names, rows=rows)
