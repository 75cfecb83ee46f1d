"""Bucket + View -> live positions -> rows, as the gate reads them.

Data files and vectors are read with the same code as in a rewrite. Merging is a separate algorithm: one sort of the key
columns, without code of the rewrite's lookup and merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
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
from nightkeep.formats.paimon.gate.comparable import comparable
from nightkeep.formats.paimon.gate.merged import merged_rows
from nightkeep.formats.paimon.metadata.merge_engine import merge_rules, skips_retracts
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, has_vectors, keeps_first_row
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.kernels.bitmap import mask
from nightkeep.kernels.bitmap import positions as ascending
from nightkeep.model import View
from nightkeep.protocol import Positions
from nightkeep.storage import Storage

PROMISE = "rows as their schema and level promise"


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


def merged(storage: Storage, bucket: Bucket, view: View) -> Iterator[pa.RecordBatch]:
    """The rows that the table's merge engine makes of several rows of a key, or of a single retract: every column of
    the current schema, in its order. None for RAW, and none of a table that keeps whole rows."""
    rules = merge_rules(bucket.schemas.current)
    if view is View.RAW or rules is None:
        return
    with naming(bucket.key, PROMISE):
        found = sorted_rows(storage, bucket, read_vectors(storage, bucket))
        if found is None:
            return
        keys = key_columns(bucket)
        # A lookup merges the only row of a key as well, so that a retract may become a row. A plain merge does not.
        alone = _is_alone(keys) if has_vectors(bucket.schemas.current) else is_single(keys)
        several = found.with_columns(key_numbers(keys)).filter(~alone)
        if len(several):
            whole = picked_rows(storage, bucket, several, [KIND, *value_columns(bucket)])
            yield from merged_rows(whole, several["key"].to_numpy(), rules).to_batches()


def key_numbers(keys: Sequence[str]) -> pl.Expr:
    """An ascending number per key of sorted rows."""
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in keys)
    return changes.cum_sum().cast(pl.Int64).alias("key")


def _is_alone(keys: Sequence[str]) -> pl.Expr:
    """Whether a row is the only one of its key, and no retract."""
    return is_single(keys) & ~pl.col(KIND).is_in(RETRACT_KINDS)


def is_single(keys: Sequence[str]) -> pl.Expr:
    """Whether a row of sorted rows is the only one of its key."""
    return is_newest(keys) & is_newest(keys).shift(1, fill_value=True)


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


def _every(file: PaimonDataFile) -> BitMap64:
    return BitMap64(range(file.rows))


def tied_keys(storage: Storage, bucket: Bucket) -> tuple[str, ...]:
    """Keys, as text, whose two newest rows have equal order columns, or any two where rows are merged. Readers may take
    either row for the newer one."""
    rows = sorted_rows(storage, bucket, read_vectors(storage, bucket))
    keys, (order, _) = key_columns(bucket), _order(bucket.schemas.current)
    if rows is None:
        return ()
    tied = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in [*keys, *order, SEQUENCE])
    decides = is_newest(keys) if merge_rules(bucket.schemas.current) is None else pl.lit(value=True)
    tied_rows = rows.filter(decides & tied & (pl.int_range(pl.len()) > 0)).select(keys).unique(maintain_order=True)
    return tuple(
        ", ".join(f"{key.removeprefix(KEY_PREFIX)}={row[key]}" for key in keys) for row in tied_rows.to_dicts()
    )


def _merged(storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64]) -> Positions:
    rows = sorted_rows(storage, bucket, vectors)
    if rows is None:
        return {}
    keys = key_columns(bucket)
    whole = merge_rules(bucket.schemas.current) is None
    shown = is_newest(keys) & ~pl.col(KIND).is_in(RETRACT_KINDS) if whole else _is_alone(keys)
    return by_file(rows.filter(shown), bucket)


def sorted_rows(storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64]) -> pl.DataFrame | None:
    """Live rows of every file, sorted by key, last the row that the key keeps: the newest, or of a table that keeps
    first rows the oldest. None if there are no files."""
    keys, (order, descending) = key_columns(bucket), _order(bucket.schemas.current)
    columns = list(dict.fromkeys([*keys, *order, SEQUENCE, KIND]))
    # Oldest file first, so that of rows with equal sequence numbers the newest file's comes last.
    numbers = sorted(range(len(bucket.files)), key=lambda n: _age(bucket.files[n]), reverse=True)
    frames = [live_keys(storage, bucket, n, columns, marked=vectors) for n in numbers]
    if not frames:
        return None
    if skips_retracts(bucket.schemas.current):
        frames = [frame.filter(~pl.col(KIND).is_in(RETRACT_KINDS)) for frame in frames]
    # Nulls sort first in both directions: a row without a sequence value is older than any row with one.
    return pl.concat(frames).sort(
        [*keys, *order, SEQUENCE],
        descending=[False] * len(keys) + [descending] * len(order) + [keeps_first_row(bucket.schemas.current)],
        nulls_last=False,
        maintain_order=True,
    )


def is_newest(keys: Sequence[str]) -> pl.Expr:
    """Whether a row is the last of its key."""
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(-1)) for name in keys)
    return changes | (pl.int_range(pl.len()) == pl.len() - 1)


def _age(file: PaimonDataFile) -> tuple[int, int, str]:
    return (file.level, -file.max_sequence, file.name)


def _order(schema: PaimonSchema) -> tuple[list[str], bool]:
    listed = schema.options.get("sequence.field", "")
    fields = [name.strip() for name in listed.split(",") if name.strip()]
    return fields, schema.options.get("sequence.field.sort-order", "ascending").lower() == "descending"


def live_keys(
    storage: Storage, bucket: Bucket, number: int, columns: Sequence[str], *, marked: Mapping[str, BitMap64]
) -> pl.DataFrame:
    """Columns of the live rows of file `number` of the bucket, comparable, with the file's number and the positions."""
    file = bucket.files[number]
    table = PaimonFileReader(storage, bucket, file).read(columns)
    table = pa.table({name: comparable(table.column(name)) for name in columns})
    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(
        pl.lit(number, pl.Int32).alias("file"), pl.Series("position", np.arange(file.rows))
    )
    hidden = marked.get(file.name)
    return frame.filter(pl.Series(~mask(hidden, file.rows))) if hidden else frame


def by_file(newest: pl.DataFrame, bucket: Bucket) -> Positions:
    positions: dict[str, BitMap64] = {}
    for number, file in enumerate(bucket.files):
        at = newest.filter(pl.col("file") == number)["position"].to_numpy()
        if len(at):
            positions[file.name] = BitMap64(np.sort(at).astype(np.uint64))
    return positions
