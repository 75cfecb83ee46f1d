"""Bucket + View -> live positions -> rows, as the gate reads them.

Data files and vectors are read with the same code as in a rewrite. Merging is a separate algorithm: one sort of the key
columns, without code of the rewrite's lookup and merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from pyroaring import BitMap64

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
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.kernels.bitmap import mask
from nightkeep.kernels.bitmap import positions as ascending
from nightkeep.model import View
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.protocol import Positions
from nightkeep.storage import Storage

PROMISE = "rows as their schema and level promise"


def survivors(storage: Storage, bucket: Bucket, view: View) -> Positions:
    """Live positions for a reader with `view`, by file name.

    MERGED: every level, vectors applied, the newest row of each key, retracts hidden. RAW: levels above 0 with vectors
    applied, as readers of a table with deletion vectors do.
    """
    with naming(bucket.key, PROMISE):
        vectors = read_vectors(storage, bucket)
        if view is View.RAW:
            lifted = (file for file in bucket.files if file.level > 0)
            return {file.name: _every(file) - vectors.get(file.name, BitMap64()) for file in lifted}
        return _merged(storage, bucket, vectors)


def rows(storage: Storage, bucket: Bucket, positions: Positions) -> Iterator[pa.RecordBatch]:
    """The rows at `positions`, file by file: every column of the current schema, in its order."""
    with naming(bucket.key, PROMISE):
        columns = value_columns(bucket)
        for file in bucket.files:
            rows_of_file = positions.get(file.name)
            if rows_of_file:
                for piece in PaimonFileReader(storage, bucket, file).taken(columns, ascending(rows_of_file)):
                    yield from piece.to_batches()


def _every(file: PaimonDataFile) -> BitMap64:
    return BitMap64(range(file.rows))


def tied_keys(storage: Storage, bucket: Bucket) -> tuple[str, ...]:
    """Keys, as text, whose two newest rows have equal order columns. Readers may show either row."""
    rows = _sorted(storage, bucket, read_vectors(storage, bucket))
    keys, (order, _) = key_columns(bucket), _order(bucket.schemas.current)
    if rows is None:
        return ()
    tied = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in [*keys, *order, SEQUENCE])
    tied_rows = rows.filter(_is_newest(keys) & tied & (pl.int_range(pl.len()) > 0)).select(keys)
    return tuple(
        ", ".join(f"{key.removeprefix(KEY_PREFIX)}={row[key]}" for key in keys) for row in tied_rows.to_dicts()
    )


def _merged(storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64]) -> Positions:
    rows = _sorted(storage, bucket, vectors)
    if rows is None:
        return {}
    newest = rows.filter(_is_newest(key_columns(bucket)) & ~pl.col(KIND).is_in(RETRACT_KINDS))
    return _by_file(newest, bucket)


def _sorted(storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64]) -> pl.DataFrame | None:
    """Live rows of every file, sorted by key, the newest of each key last. None if there are no files."""
    keys, (order, descending) = key_columns(bucket), _order(bucket.schemas.current)
    columns = list(dict.fromkeys([*keys, *order, SEQUENCE, KIND]))
    # Oldest file first, so that of rows with equal sequence numbers the newest file's comes last.
    numbers = sorted(range(len(bucket.files)), key=lambda n: _age(bucket.files[n]), reverse=True)
    frames = [_frame(storage, bucket, n, columns=columns, marked=vectors) for n in numbers]
    if not frames:
        return None
    # Nulls sort first in both directions: a row without a sequence value is older than any row with one.
    return pl.concat(frames).sort(
        [*keys, *order, SEQUENCE],
        descending=[False] * len(keys) + [descending] * len(order) + [False],
        nulls_last=False,
        maintain_order=True,
    )


def _is_newest(keys: Sequence[str]) -> pl.Expr:
    """Whether a row is the last of its key."""
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(-1)) for name in keys)
    return changes | (pl.int_range(pl.len()) == pl.len() - 1)


def _age(file: PaimonDataFile) -> tuple[int, int, str]:
    return (file.level, -file.max_sequence, file.name)


def _order(schema: PaimonSchema) -> tuple[list[str], bool]:
    listed = schema.options.get("sequence.field", "")
    fields = [name.strip() for name in listed.split(",") if name.strip()]
    return fields, schema.options.get("sequence.field.sort-order", "ascending").lower() == "descending"


def _frame(
    storage: Storage, bucket: Bucket, number: int, *, columns: Sequence[str], marked: Mapping[str, BitMap64]
) -> pl.DataFrame:
    """Key, order and kind columns of one file's live rows, with the file's number and the row's position."""
    file = bucket.files[number]
    table = PaimonFileReader(storage, bucket, file).read(columns)
    table = pa.table({name: _comparable(table.column(name)) for name in columns})
    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(
        pl.lit(number, pl.Int32).alias("file"), pl.Series("position", np.arange(file.rows))
    )
    hidden = marked.get(file.name)
    return frame.filter(pl.Series(~mask(hidden, file.rows))) if hidden else frame


def _comparable(column: ChunkedArray) -> ChunkedArray:
    """Floats as integers that order like Java's Double.compare: -0.0 below 0.0, NaN last."""
    if not pa.types.is_floating(column.type):
        return column
    width = column.type.bit_width
    values = column.combine_chunks().fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), values.dtype.type("nan"), values).view(f"i{width // 8}")
    ordered = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    return pa.chunked_array([pa.array(ordered, mask=column.is_null().combine_chunks().to_numpy(zero_copy_only=False))])


def _by_file(newest: pl.DataFrame, bucket: Bucket) -> Positions:
    positions: dict[str, BitMap64] = {}
    for number, file in enumerate(bucket.files):
        at = newest.filter(pl.col("file") == number)["position"].to_numpy()
        if len(at):
            positions[file.name] = BitMap64(np.sort(at).astype(np.uint64))
    return positions
