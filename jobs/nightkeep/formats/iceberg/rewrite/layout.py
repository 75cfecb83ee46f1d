"""Snapshot -> its layout: bounds of every file from manifests, and a sample of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.layout import layout_of
from nightkeep.clustering.sampling import live_sample, spread
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.file_bounds import file_bounds
from nightkeep.formats.iceberg.rewrite.hidden_rows import hidden
from nightkeep.formats.iceberg.rewrite.placed_files import placed_files
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import Bound, LayoutReading, TableLayout
from nightkeep.storage import Storage


def layout_reading(storage: Storage) -> LayoutReading[IcebergSnapshot]:
    return LayoutReading(layout, Bound(sample, storage), target_bytes)


def target_bytes(snapshot: IcebergSnapshot, request: Request) -> int:
    return sizes_of(snapshot, request).target


def layout(snapshot: IcebergSnapshot) -> TableLayout:
    """Every live file, and the bounds of each leaf column that can be clustered by, by its dotted path."""
    columns = indexed_leaves(snapshot.schema)
    return layout_of([_read(unit) for unit in snapshot.units], lambda files: file_bounds(files, columns))


def sample(
    storage: Storage, snapshot: IcebergSnapshot, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """Yield a sample of about `rows` live rows in all, from every partition in proportion to its bytes."""
    for place, files, share in spread([placed_files(unit) if _read(unit) else () for unit in snapshot.units], rows):
        unit, chosen = snapshot.units[place], [placed.file for placed in files]
        names = [field.name for field in unit.schema.current.fields]
        gone = hidden(storage, unit, chosen)
        parts = [
            live_sample(
                IcebergFileReader(storage, unit.schema, file),
                gone.get(file.path, _NONE),
                columns,
                tops=names,
                rows=share,
            )
            for file in chosen
        ]
        yield place, pa.concat_tables(parts)


def _read(unit: IcebergUnit) -> tuple[ContentFile, ...]:
    return () if unit.left_out else unit.files


_NONE: Final = BitMap64()
