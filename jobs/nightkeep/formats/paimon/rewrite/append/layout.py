"""A snapshot -> its layout: the bounds of every file from its statistics, and a sample of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.layout import layout_of
from nightkeep.clustering.sampling import live_sample, spread
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data.append_reader import AppendFileReader
from nightkeep.formats.paimon.data.columns import value_columns
from nightkeep.formats.paimon.deletes.append_vectors import vectors_of
from nightkeep.formats.paimon.metadata.schema import keeps_order
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.rewrite.append.append_files import append_files
from nightkeep.formats.paimon.rewrite.append.cluster_columns import indexed_fields
from nightkeep.formats.paimon.rewrite.append.file_bounds import file_bounds
from nightkeep.formats.paimon.rewrite.append.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import Bound, LayoutReading, TableLayout
from nightkeep.storage import Storage


def layout_reading(storage: Storage) -> LayoutReading[PaimonSnapshot]:
    return LayoutReading(layout, Bound(sample, storage), target_bytes)


def target_bytes(snapshot: PaimonSnapshot, request: Request) -> int:
    return sizes_of(snapshot.schema, request).target


def layout(snapshot: PaimonSnapshot) -> TableLayout:
    """The bounds of every live file, for each column with statistics. Raises RefusedTable for a table with keys."""
    if snapshot.schema.primary_keys:
        feature = "rows of a table with a primary key are sorted by it"
        raise RefusedTable(snapshot.table.name, feature, "only tables without keys can be clustered")
    if keeps_order(snapshot.schema):
        feature = "rows of fixed buckets are read in the order of writing"
        raise RefusedTable(snapshot.table.name, feature, "only tables that promise no order can be clustered")
    columns = indexed_fields(snapshot.schema)
    return layout_of([bucket.files for bucket in snapshot.units], lambda f: file_bounds(snapshot.schemas, f, columns))


def sample(
    storage: Storage, snapshot: PaimonSnapshot, columns: Sequence[str], rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """A sample of about `rows` live rows. Each unit's share is that of its bytes, from files all over it."""
    for place, files, share in spread([append_files(bucket) for bucket in snapshot.units], rows):
        bucket = snapshot.units[place]
        vectors = vectors_of(storage, bucket, {file.name for file in files})
        parts = [
            live_sample(
                AppendFileReader(storage, bucket, file.file), vectors.get(file.name, BitMap64()), columns,
                tops=value_columns(bucket), rows=share,
            )
            for file in files
        ]  # fmt: skip
        yield place, pa.concat_tables(parts)
