"""Bucket + View -> live positions -> rows, as the gate reads them.

Columns are found and vectors are read with the same code as in a rewrite. Merging is a separate algorithm: one
sort of the key columns, without code of the rewrite's lookup and merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.parquet_rows import GroupDecoder
from nightkeep.errors import naming
from nightkeep.formats.paimon.data.columns import (
    KEY_PREFIX,
    KIND,
    RETRACT_KINDS,
    SEQUENCE,
    PaimonFileReader,
    key_columns,
    value_columns,
)
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors
from nightkeep.formats.paimon.gate.key_pool import KeySide, PoolOrder, contested_rows
from nightkeep.formats.paimon.gate.key_rows import is_alone, is_newest, is_single, key_numbers
from nightkeep.formats.paimon.gate.merged import merged_rows
from nightkeep.formats.paimon.metadata.changelog import lowest_level_counts
from nightkeep.formats.paimon.metadata.merge_engine import (
    merge_rules,
    sequence_descends,
    sequence_fields,
    skips_retracts,
)
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, has_vectors, keeps_first_row
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.task_memory import row_bytes, spare_bytes
from nightkeep.kernels.bitmap import Width, from_positions
from nightkeep.kernels.bitmap import positions as ascending
from nightkeep.model import View
from nightkeep.protocol import Positions
from nightkeep.storage import Storage

PROMISE = "rows as their schema and level promise"
MERGED: Final = 8
"""What merging rows takes at its peak, in bytes for each byte of the rows."""
LEAST_ROWS: Final = 1 << 10


def survivors(storage: Storage, bucket: Bucket, view: View) -> Positions:
    """Live positions for a reader with `view`, by file name.

    MERGED: every level, vectors applied, the newest row of each key, retracts hidden; of a table that merges rows, only
    the keys of a single row, as `merged` has the others. RAW: levels above 0 with vectors applied, as readers of a
    table with deletion vectors do.
    """
    with naming(bucket.key, PROMISE):
        vectors = read_vectors(storage, bucket)
        if view is View.RAW:
            lifted = (file for file in bucket.files if file.level > 0)
            return {
                file.name: every_position(storage, bucket, file) - vectors.get(file.name, BitMap64()) for file in lifted
            }
        return _merged(storage, bucket, vectors)


def rows(
    storage: Storage, bucket: Bucket, positions: Positions, *, decoder: GroupDecoder | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows at `positions`, file by file: every column of the current schema, in its order. What `decoder` decodes
    has texts and bytes as Arrow's views."""
    with naming(bucket.key, PROMISE):
        columns = value_columns(bucket)
        for file in bucket.files:
            rows_of_file = positions.get(file.name)
            if rows_of_file:
                yield from _rows_of(PaimonFileReader(storage, bucket, file, decoder=decoder), columns, rows_of_file)


def _rows_of(reader: PaimonFileReader, columns: Sequence[str], positions: BitMap64) -> Iterator[pa.RecordBatch]:
    for start, stop in pairwise(reader.starts):
        for piece in reader.taken(columns, ascending(positions & BitMap64(range(start, stop)))):
            yield from piece.to_batches()


def merged(storage: Storage, bucket: Bucket, view: View) -> Iterator[pa.RecordBatch]:
    """The rows that the table's merge engine makes of several rows of a key, or of a single retract: every column of
    the current schema, in its order. None for RAW, and none of a table that keeps whole rows."""
    rules = merge_rules(bucket.schemas.current)
    if view is View.RAW or rules is None:
        return
    with naming(bucket.key, PROMISE):
        keys = key_columns(bucket)
        # A lookup merges the only row of a key as well, so that a retract may become a row. A plain merge does not.
        alone = is_alone(keys) if has_vectors(bucket.schemas.current) else is_single(keys)
        for found in contested_ranges(storage, bucket, read_vectors(storage, bucket)):
            for several in whole_keys(found.with_columns(key_numbers(keys)).filter(~alone), value_rows(bucket)):
                whole = picked_rows(storage, bucket, several, [KIND, *value_columns(bucket)])
                yield from merged_rows(whole, several["key"].to_numpy(), rules).to_batches()


def value_rows(bucket: Bucket) -> int:
    """How many rows with all columns a task holds while it merges them."""
    one = row_bytes(sum(file.bytes for file in bucket.files), sum(file.rows for file in bucket.files))
    return max(LEAST_ROWS, spare_bytes(bucket.task_bytes) // one // MERGED)


def whole_keys(rows: pl.DataFrame, limit: int) -> Iterator[pl.DataFrame]:
    """Rows sorted by `key`, in frames of about `limit` rows that end where a key ends. None without rows."""
    keys = rows["key"].to_numpy()
    starts = np.searchsorted(keys, np.unique(keys[::limit]))
    for start, stop in pairwise([*starts.tolist(), len(rows)]):
        yield rows.slice(start, stop - start)


def picked_rows(storage: Storage, bucket: Bucket, chosen: pl.DataFrame, columns: Sequence[str]) -> pa.Table:
    """Columns of the chosen rows, in their order. There is at least one row."""
    parts: list[pa.Table] = []
    places: list[npt.NDArray[np.uint32]] = []
    for number, file in enumerate(bucket.files):
        at = chosen.with_row_index("place").filter(pl.col("file") == number).sort("position")
        if len(at):
            parts += PaimonFileReader(storage, bucket, file).taken(columns, at["position"].to_numpy())
            places.append(at["place"].to_numpy())
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_tables(parts).combine_chunks().take(order)


def every_position(storage: Storage, bucket: Bucket, file: PaimonDataFile) -> BitMap64:
    """All positions of a file, once its reader has compared the manifest's row count with the footer's: a bitmap of a
    wrong count may fill the memory. Raises CorruptMetadata."""
    PaimonFileReader(storage, bucket, file)
    return BitMap64(range(file.rows))


def count_tied_keys(storage: Storage, bucket: Bucket) -> int:
    """The number of keys whose two newest rows have equal order columns, or any two where rows are merged. Readers may
    take either row for the newer one."""
    keys, order = key_columns(bucket), sequence_fields(bucket.schemas.current)
    tied = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in [*keys, *order, SEQUENCE])
    decides = is_newest(keys) if merge_rules(bucket.schemas.current) is None else pl.lit(value=True)
    return sum(
        rows.filter(decides & tied & (pl.int_range(pl.len()) > 0)).select(keys).n_unique()
        for rows in contested_ranges(storage, bucket, read_vectors(storage, bucket))
    )


def _merged(storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64]) -> Positions:
    keys = key_columns(bucket)
    whole = merge_rules(bucket.schemas.current) is None
    shown = is_newest(keys) & ~pl.col(KIND).is_in(RETRACT_KINDS) if whole else is_alone(keys)
    positions = {
        file.name: every_position(storage, bucket, file) - vectors.get(file.name, BitMap64()) for file in bucket.files
    }
    for found in _contested(storage, bucket, vectors):
        for name, hidden in by_file(found, bucket).items():
            positions[name] -= hidden
        for name, kept in by_file(_counted(found, bucket).filter(shown), bucket).items():
            positions[name] |= kept
    return {name: live for name, live in positions.items() if live}


def contested_ranges(storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64]) -> Iterator[pl.DataFrame]:
    """The live rows that share their key with others, and retracts, as far as they count in a merge.

    Sorted by key, last the row that the key keeps: the newest, or of a table that keeps first rows the oldest. Each
    frame has all these rows of its keys, and its keys come after those of the frame before."""
    for found in _contested(storage, bucket, vectors):
        yield _counted(found, bucket)


def _contested(storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64]) -> Iterator[pl.DataFrame]:
    side = KeySide(bucket, range(len(bucket.files)), vectors)
    return contested_rows(storage, side, row_order(bucket.schemas.current))


def _counted(rows: pl.DataFrame, bucket: Bucket) -> pl.DataFrame:
    schema = bucket.schemas.current
    counted = rows.filter(~pl.col(KIND).is_in(RETRACT_KINDS)) if skips_retracts(schema) else rows
    return lowest_level_only(counted, bucket, key_columns(bucket)) if lowest_level_counts(schema) else counted


def row_order(schema: PaimonSchema) -> PoolOrder:
    """By key, then by what decides which row of a key is newer."""
    keys, order = [KEY_PREFIX + name for name in schema.trimmed_keys], sequence_fields(schema)
    # Nulls sort first in both directions: a row without a sequence value is older than any row with one.
    return PoolOrder(
        columns=list(dict.fromkeys([*keys, *order, SEQUENCE, KIND])),
        by=[*keys, *order, SEQUENCE],
        descending=[False] * len(keys) + [sequence_descends(schema)] * len(order) + [keeps_first_row(schema)],
    )


def lowest_level_only(rows: pl.DataFrame, bucket: Bucket, keys: Sequence[str]) -> pl.DataFrame:
    """The rows on level 0, and of each key the one on the lowest other level, in their order."""
    levels = np.array([file.level for file in bucket.files])
    level = pl.col("level")
    lowest = pl.when(level > 0).then(level).min().over(keys)
    placed = rows.with_columns(pl.Series("level", levels[rows["file"].to_numpy()]))
    return placed.filter((level == 0) | (level == lowest)).drop("level")


def by_file(rows: pl.DataFrame, bucket: Bucket) -> Positions:
    positions: dict[str, BitMap64] = {}
    for number, file in enumerate(bucket.files):
        at = rows.filter(pl.col("file") == number)["position"].to_numpy()
        if len(at):
            positions[file.name] = BitMap64(from_positions(at, Width.BITS_64))
    return positions
