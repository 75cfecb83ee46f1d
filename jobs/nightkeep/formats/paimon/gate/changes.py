"""A bucket before and after a commit -> the changes that its changelog must have for streaming readers, and those
that it has.

The rows that both states show of a key decide: nothing is taken from the rewrite's lookup or merge. Keys are joined in
Polars, rows are read again at their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.errors import naming
from nightkeep.formats.paimon.data.columns import (
    KIND,
    RETRACT_KINDS,
    SEQUENCE,
    PaimonFileReader,
    key_columns,
    value_columns,
)
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors
from nightkeep.formats.paimon.gate.comparable import comparable
from nightkeep.formats.paimon.gate.key_pool import KeySide, PoolOrder, key_pools
from nightkeep.formats.paimon.gate.scan import PROMISE, lowest_level_only
from nightkeep.formats.paimon.metadata.changelog import ChangelogRules, changelog_rules, lowest_level_counts
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.kernels.bitmap import mask
from nightkeep.kernels.fingerprint import row_hashes
from nightkeep.storage import Storage

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = range(4)
"""Values of _VALUE_KIND on disk (RowKind.java)."""
_PLACE = ["file", "position"]
_AFTER = "_after"


def expected(storage: Storage, base: Bucket, candidate: Bucket) -> Iterator[pa.RecordBatch]:
    """The changes of keys whose new rows the candidate shows: kind, sequence number, every column of the schema.

    Rows are new below ChangelogRules.told_from: on level 0, or below the top level. A key that neither state shows has
    none. A key that both show has two, unless the table keeps equal rows silent.
    None for a table whose compactions write no changelog.
    """
    rules = changelog_rules(candidate.schemas.current)
    lifted = [] if rules is None else _lifted(base, candidate, rules.lowest_known)
    if rules is None or not lifted:
        return
    with naming(candidate.key, PROMISE):
        for before, after in _seen(storage, base, candidate, lifted, lowest_known=rules.lowest_known):
            yield from _changes(storage, base, candidate, before, after, rules)


def _changes(
    storage: Storage, base: Bucket, candidate: Bucket, before: pl.DataFrame, after: pl.DataFrame, rules: ChangelogRules
) -> Iterator[pa.RecordBatch]:
    keys = list(key_columns(base))
    if rules.of_first_rows:
        yield from _as(storage, candidate, after.join(before, on=keys, how="anti"), kind=None)
        return
    both = before.join(after, on=keys, how="inner", suffix=_AFTER)
    yield from _as(storage, base, before.join(after, on=keys, how="anti"), kind=_DELETE)
    yield from _as(storage, candidate, after.join(before, on=keys, how="anti"), kind=_INSERT)
    old, new = both.select(_PLACE), both.select(pl.col(f"{name}{_AFTER}").alias(name) for name in _PLACE)
    if rules.silent_if_equal and len(both):
        columns = rules.compared(candidate.schemas.current)
        differ = _hashes(storage, base, old, columns) != _hashes(storage, candidate, new, columns)
        old, new = (side.filter(pl.Series(differ.any(axis=1))) for side in (old, new))
    yield from _as(storage, base, old, kind=_UPDATE_BEFORE)
    yield from _as(storage, candidate, new, kind=_UPDATE_AFTER)


def reported(storage: Storage, candidate: Bucket) -> Iterator[pa.RecordBatch]:
    """The changes in the candidate's changelog files, in the form of `expected`."""
    with naming(candidate.key, PROMISE):
        for file in candidate.changelog:
            reader = PaimonFileReader(storage, candidate, file, decoder=polars_batches)
            groups = range(len(reader.starts) - 1)
            for piece in reader.batches([KIND, SEQUENCE, *value_columns(candidate)], groups):
                yield from piece.to_batches()


def _lifted(base: Bucket, candidate: Bucket, lowest_known: int) -> list[int]:
    """The numbers of the base's files with new rows that are new no more. None where readers see what they saw: rows
    below the top level were merged with each other."""
    waiting = {file.name for file in candidate.files if file.level < lowest_known}
    seen = [({file.name for file in b.files if file.level >= lowest_known}, b.index_files) for b in (base, candidate)]
    if seen[0] == seen[1]:
        return []
    return [n for n, file in enumerate(base.files) if file.level < lowest_known and file.name not in waiting]


def _seen(
    storage: Storage, base: Bucket, candidate: Bucket, lifted: Sequence[int], *, lowest_known: int
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """For each range of keys: the keys of upgraded files that streaming readers of each state know, with the file's
    number in the bucket and the position of each row. A file of both states is read once."""
    keys = list(key_columns(base))
    held = {file.name for file in base.files if file.level >= lowest_known}
    upper = [n for n, file in enumerate(base.files) if file.level >= lowest_known]
    fresh = [n for n, file in enumerate(candidate.files) if file.level >= lowest_known and file.name not in held]
    sides = (
        KeySide(base, lifted, read_vectors(storage, base)),
        KeySide(base, upper, {}),
        KeySide(candidate, fresh, {}),
    )
    vectors = [read_vectors(storage, bucket) for bucket in (base, candidate)]
    for touched, old, new in key_pools(storage, sides, PoolOrder([*keys, KIND], keys, [False] * len(keys))):
        wanted = touched.select(keys).unique()
        stored = {
            bucket.files[int(number)].name: rows
            for bucket, frame in ((base, old), (candidate, new))
            for (number,), rows in frame.join(wanted, on=keys, how="semi").partition_by("file", as_dict=True).items()
        }
        before, after = (
            _live(pl.concat([touched.clear(), *_shown(bucket, stored, marked, lowest_known)]), bucket)
            for bucket, marked in zip((base, candidate), vectors, strict=True)
        )
        yield before, after


def _live(rows: pl.DataFrame, bucket: Bucket) -> pl.DataFrame:
    """The row of each key that counts, unless it is a retract."""
    if lowest_level_counts(bucket.schemas.current):
        rows = lowest_level_only(rows, bucket, key_columns(bucket))
    return rows.filter(~pl.col(KIND).is_in(RETRACT_KINDS)).drop(KIND)


def _shown(
    bucket: Bucket, stored: Mapping[str, pl.DataFrame], vectors: Mapping[str, BitMap64], lowest_known: int
) -> Iterator[pl.DataFrame]:
    """Rows of `stored` that a streaming reader of the bucket knows, file by file."""
    for number, file in enumerate(bucket.files):
        if file.level >= lowest_known and file.name in stored:
            rows = stored[file.name].with_columns(file=pl.lit(number, pl.Int32))
            marked = vectors.get(file.name)
            yield rows.filter(pl.Series(~_are_in(marked, rows["position"].to_numpy()))) if marked else rows


def _are_in(marked: BitMap64, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return mask(marked, int(positions.max(initial=0)) + 1)[positions]


def _as(storage: Storage, bucket: Bucket, places: pl.DataFrame, *, kind: int | None) -> Iterator[pa.RecordBatch]:
    """The rows at `places` as changes of one kind, or of the kinds that they are stored with."""
    columns = [KIND, SEQUENCE, *value_columns(bucket)]
    for number, file in enumerate(bucket.files):
        at = places.filter(pl.col("file") == number)["position"].sort().to_numpy()
        for piece in PaimonFileReader(storage, bucket, file).taken(columns, at) if len(at) else ():
            for batch in piece.to_batches():
                kinds = batch.column(KIND) if kind is None else pa.array(np.full(batch.num_rows, kind, np.int8))
                yield batch.set_column(0, KIND, kinds)


def _hashes(storage: Storage, bucket: Bucket, places: pl.DataFrame, columns: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Two hashes of each row at `places`, in their order. Every NaN hashes alike."""
    hashes = np.zeros((len(places), 2), np.uint64)
    numbered = places.with_row_index("row")
    for number, file in enumerate(bucket.files):
        here = numbered.filter(pl.col("file") == number).sort("position")
        start, at = 0, here["position"].to_numpy()
        for piece in PaimonFileReader(storage, bucket, file).taken(columns, at) if len(at) else ():
            compared = pa.table({name: comparable(piece.column(name)) for name in columns}).combine_chunks()
            for batch in compared.to_batches():
                rows = here["row"].slice(start, batch.num_rows).to_numpy()
                hashes[rows] = np.column_stack(row_hashes(batch))
                start += batch.num_rows
    return hashes
