"""Files sorted by key -> columns of their live rows in key order, a range of keys at a time, as a task's memory allows.

The gate's own means: rows of all files are in one pool, which is sorted again after each reading. What goes out ends
with the first row that is the last one read of a sorted run with more rows. Statistics decide nothing: a run whose keys
do not ascend shows when a range starts before the end of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.data.columns import BATCH_ROWS, KIND, RETRACT_KINDS, PaimonFileReader, key_columns
from nightkeep.formats.paimon.gate.comparable import comparable
from nightkeep.formats.paimon.gate.key_rows import ascend, is_alone
from nightkeep.formats.paimon.metadata.binary_row import sort_key
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.task_memory import spare_bytes
from nightkeep.kernels.bitmap import mask
from nightkeep.storage import Storage

HELD: Final = 8
"""What sorting a pool takes at its peak, in bytes for each byte of its rows (`make bench-paimon`)."""
LEAST_BATCH_ROWS: Final = 1 << 10
_PLENTY_BYTES: Final = 1 << 10
"""More than most rows of a pool take: without more of them than fit, no file is asked."""
_RUN_BYTES: Final = 4
_RUN, _NOWHERE = "run", (-1, -1)


@dataclass(frozen=True, slots=True)
class KeySide:
    """Files of a bucket, by their numbers there. Rows that `hidden` has are left out."""

    bucket: Bucket
    files: Sequence[int]
    hidden: Mapping[str, BitMap64]


@dataclass(frozen=True, slots=True)
class PoolOrder:
    """The columns of a pool. Rows are sorted by `by`, which starts with the key columns; where flagged, from the last.

    Nulls sort first in both directions.
    """

    columns: Sequence[str]
    by: Sequence[str]
    descending: Sequence[bool]

    def sort(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Among equal rows, those of the newest file come last."""
        by, descending = [*self.by, _RUN], [*self.descending, False]
        return rows.sort(by, descending=descending, nulls_last=False, maintain_order=True)


def key_pools(storage: Storage, sides: Sequence[KeySide], order: PoolOrder) -> Iterator[list[pl.DataFrame]]:
    """For each range of keys, a frame of each side: its columns, comparable, the file's number and the position.

    Every frame is sorted and has all rows of its keys. Without files there are none. Raises ValueError if the keys of a
    sorted run do not ascend.
    """
    runs = _opened(storage, sides, order.columns)
    for rows in _ranges(runs, order, key_columns(sides[0].bucket), []):
        yield [_of_side(rows, runs, side) for side in range(len(sides))]


def contested_rows(storage: Storage, side: KeySide, order: PoolOrder) -> Iterator[pl.DataFrame]:
    """For each range of keys, the rows that share their key with others, and retracts, as `key_pools` has them.

    Where memory allows, only these are sorted: all other rows of the longest run have keys that no other run has.
    """
    runs, keys = _opened(storage, [side], order.columns), key_columns(side.bucket)
    held = [pl.concat([run.none, *run.more(0)]) for run in runs]
    if all(run.ended for run in runs):
        held = _without_alone(held, keys)
    for rows in _ranges(runs, order, keys, held):
        yield rows.drop(_RUN).filter(~is_alone(keys))


def _ranges(
    runs: Sequence[_PoolRun], order: PoolOrder, keys: Sequence[str], held: Sequence[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """Sorted rows with all rows of their keys, those of `held`, which were read before, among them."""
    pool, before = [*held, *(run.none for run in runs[:1])], pl.DataFrame()
    while pool:
        counts = np.bincount(np.concatenate([rows[_RUN].to_numpy() for rows in pool]), minlength=len(runs))
        rows = order.sort(pl.concat([*pool, *(more for run in runs for more in run.more(int(counts[run.number])))]))
        _require_later(before, rows, keys)
        count = _complete(rows, runs, keys)
        out, pool = rows.head(count), [] if all(run.ended for run in runs) else [rows.slice(count)]
        before = out.select(keys).tail(1) if count else before
        yield out


def _without_alone(runs: Sequence[pl.DataFrame], keys: Sequence[str]) -> list[pl.DataFrame]:
    """The rows of runs, without rows of the longest run whose key occurs only once. Retracts stay."""
    longest = max(range(len(runs)), key=lambda number: len(runs[number]), default=0)
    if not runs or not bool(runs[longest].select(ascend(keys)).item()):
        return list(runs)
    others = [rows for number, rows in enumerate(runs) if number != longest]
    rows = runs[longest]
    known = pl.concat([rows.select(keys).clear(), *(other.select(keys) for other in others)])
    retracts = rows.filter(pl.col(KIND).is_in(RETRACT_KINDS))
    met = rows.join(known, on=keys, how="semi")
    # A join hashes all that is known, and there is rarely a retract.
    return [*others, met, retracts.join(known, on=keys, how="anti") if len(retracts) else retracts]


def _of_side(rows: pl.DataFrame, runs: Sequence[_PoolRun], side: int) -> pl.DataFrame:
    own = [run.number for run in runs if run.side == side]
    return (rows if len(own) == len(runs) else rows.filter(pl.col(_RUN).is_in(own))).drop(_RUN)


def _complete(pool: pl.DataFrame, runs: Sequence[_PoolRun], keys: Sequence[str]) -> int:
    """How many rows of the sorted pool no row to come can be among."""
    ends = np.array([run.end for run in runs], np.int64).reshape(-1, 2)
    own = ends[pool[_RUN].to_numpy()]
    flagged = (own[:, 0] == pool["file"].to_numpy()) & (own[:, 1] == pool["position"].to_numpy())
    if not flagged.any():
        return len(pool)
    first = int(np.argmax(flagged))
    rest = pool.select(keys).slice(first)
    same = rest.select(pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).first()) for name in keys).alias("same"))
    differing = np.flatnonzero(~same["same"].to_numpy())
    return first + (int(differing[0]) if len(differing) else len(rest))


def _require_later(before: pl.DataFrame, pool: pl.DataFrame, keys: Sequence[str]) -> None:
    if before.is_empty() or pool.is_empty():
        return
    both = pl.concat([before, pool.select(keys).head(1)])
    if both.n_unique() == 1 or not both.sort(keys, maintain_order=True).equals(both):
        raise ValueError("expected keys of a sorted run to ascend, found one that does not")


Run = tuple[int, Sequence[int]]
"""The number of a side, and the numbers of files whose keys ascend from one to the next."""


def _runs(sides: Sequence[KeySide]) -> Iterator[Run]:
    """The sorted runs of each side, the oldest first: of equal rows that of the newest file comes last."""
    for number, side in enumerate(sides):
        schema = side.bucket.schemas.current
        types = [field.type for field in schema.select(schema.trimmed_keys)]
        files = side.bucket.files
        oldest = sorted(side.files, key=lambda n: _age(files[n]), reverse=True)
        for place in dict.fromkeys(files[n].level or -n - 1 for n in oldest):
            if place < 0:
                yield number, [-place - 1]
            else:
                own = [n for n in oldest if files[n].level == place]
                yield number, sorted(own, key=lambda n: sort_key(files[n].min_key, types))


def _age(file: PaimonDataFile) -> tuple[int, int, str]:
    return (file.level, -file.max_sequence, file.name)


def _opened(storage: Storage, sides: Sequence[KeySide], columns: Sequence[str]) -> list[_PoolRun]:
    """The runs, each with the rows that it may have in the pool."""
    runs = list(_runs(sides))
    counts = [sum(sides[side].bucket.files[n].rows for n in files) for side, files in runs]
    limit, total = spare_bytes(sides[0].bucket.task_bytes) // HELD, max(1, sum(counts))
    if runs and total * _PLENTY_BYTES > limit:
        side, files = runs[int(np.argmax(counts))]
        limit //= _row_bytes(storage, sides[side], files[0], columns)
    shares = [max(1, count * limit // total) for count in counts]
    return [_PoolRun(storage, sides, number, run, columns, shares[number]) for number, run in enumerate(runs)]


def _row_bytes(storage: Storage, side: KeySide, number: int, columns: Sequence[str]) -> int:
    """What a row of the pool takes, by the first ones of a file."""
    for rows in live_batches(storage, replace(side, hidden={}), number, columns, batch_rows=LEAST_BATCH_ROWS):
        if len(rows):
            return int(rows.estimated_size()) // len(rows) + _RUN_BYTES + 1
    return _PLENTY_BYTES


class _PoolRun:
    """The live rows of one sorted run, read forward. `end` is the place of the last row read while there are more."""

    def __init__(
        self, storage: Storage, sides: Sequence[KeySide], number: int, run: Run, columns: Sequence[str], share: int
    ) -> None:
        self.number, (self.side, files), self._share = number, run, share
        rows = max(LEAST_BATCH_ROWS, min(BATCH_ROWS, share // 2))
        self._batches = (
            batch.with_columns(pl.lit(number, pl.Int32).alias(_RUN))
            for n in files
            for batch in live_batches(storage, sides[self.side], n, columns, batch_rows=rows)
        )
        self.none = next(self._batches)
        self.ended = False
        self.end = _NOWHERE

    def more(self, held: int) -> Iterator[pl.DataFrame]:
        """Rows until the pool, which holds so many of the run, has its share of them."""
        while not self.ended and held < self._share:
            rows = next(self._batches, None)
            if rows is None:
                self.ended, self.end = True, _NOWHERE
            elif len(rows):
                held += len(rows)
                self.end = (int(rows["file"][-1]), int(rows["position"][-1]))
                yield rows


def live_batches(
    storage: Storage, side: KeySide, number: int, columns: Sequence[str], *, batch_rows: int
) -> Iterator[pl.DataFrame]:
    """Columns of the live rows of one file, comparable, with its number and their positions; the first without rows."""
    file = side.bucket.files[number]
    reader, hidden, start = PaimonFileReader(storage, side.bucket, file), side.hidden.get(file.name), 0
    yield _placed(reader.read(columns, []), number, start)
    for rows in reader.batches(columns, range(len(reader.starts) - 1), batch_rows=batch_rows):
        frame = _placed(rows, number, start)
        yield frame.filter(pl.Series(~mask(hidden, len(frame), start))) if hidden else frame
        start += len(frame)
    if start != file.rows:
        raise CorruptMetadata(side.bucket.path(file), f"{file.rows} rows as its manifest states", str(start))


def _placed(rows: pa.Table, number: int, start: int) -> pl.DataFrame:
    own = pa.table({name: comparable(rows.column(name)) for name in rows.column_names})
    return pl.DataFrame(pl.from_arrow(own)).with_columns(
        pl.lit(number, pl.Int32).alias("file"), pl.Series("position", np.arange(start, start + rows.num_rows))
    )
