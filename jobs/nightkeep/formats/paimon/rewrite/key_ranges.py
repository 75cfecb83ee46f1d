"""Files of a bucket -> the rows that compete for their keys, a range of keys at a time, as much as a task may hold.

A range ends with the least of the last keys read from sorted runs that have more rows. No statistics are trusted: runs
are read forward, and the keys of each must ascend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.data.columns import BATCH_ROWS, KIND, RETRACT_KINDS, PaimonFileReader, key_columns
from nightkeep.formats.paimon.data.sequence import sequence_order
from nightkeep.formats.paimon.metadata.binary_row import SortKey, sort_key
from nightkeep.formats.paimon.metadata.merge_engine import skips_retracts
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.task_memory import spare_bytes
from nightkeep.formats.paimon.rewrite.candidates import placed
from nightkeep.formats.paimon.rewrite.stored_keys import StoredKeys
from nightkeep.kernels.bitmap import mask
from nightkeep.kernels.key_order import encode, require_ascending
from nightkeep.storage import Storage

HELD: Final = 8
"""What a merge by key takes at its peak, in bytes for each byte of the rows that are merged (`make bench-paimon`)."""
LEAST_BATCH_ROWS: Final = 1 << 10
_ROW_BYTES: Final = 64
"""A guess, for the size of batches only."""
_NAMED: Final = 2


def key_ranges(
    storage: Storage, bucket: Bucket, files: Sequence[PaimonDataFile], vectors: Mapping[str, BitMap64]
) -> Iterator[pa.Table]:
    """Key and order columns of the live rows of `files`, each with its source number, position and level.

    Every table has all rows of its keys, by file, and its keys sort after those of the table before. There is at least
    one table, which may be empty. Raises ValueError if the keys of a sorted run do not ascend.
    """
    limit = spare_bytes(bucket.task_bytes) // HELD
    total = max(1, sum(file.rows for file in files))
    runs = [
        _RunRows(storage, bucket, run, vectors, share=limit * sum(file.rows for _, file in run) // total)
        for run in _runs(bucket, files)
    ]
    bound: SortKey | None = None
    while True:
        for run in runs:
            run.fill()
        bound = min((run.last_key for run in runs if not run.ended), default=None)
        yield pa.concat_tables([run.taken(bound) for run in runs])
        if bound is None:
            return


def read_columns(bucket: Bucket) -> tuple[str, ...]:
    """The columns of a merge's candidates, beside their places."""
    order = [by.column for by in sequence_order(bucket.schemas.current)]
    return (*key_columns(bucket), *order, KIND)


Run = Sequence[tuple[int, PaimonDataFile]]
"""Files whose keys ascend from one to the next, each with its source number."""


def _runs(bucket: Bucket, files: Sequence[PaimonDataFile]) -> Iterator[Run]:
    """In the order of `files`: each on level 0, and those of a level above 0 by key."""
    schema = bucket.schemas.current
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    numbered = list(enumerate(files))
    for level in dict.fromkeys(file.level if file.level else -number for number, file in numbered):
        if level <= 0:
            yield [numbered[-level]]
        else:
            own = [(number, file) for number, file in numbered if file.level == level]
            yield sorted(own, key=lambda one: sort_key(one[1].min_key, types))


class _RunRows:
    """The live rows of a sorted run, read forward, `share` bytes ahead."""

    def __init__(
        self, storage: Storage, bucket: Bucket, run: Run, vectors: Mapping[str, BitMap64], *, share: int
    ) -> None:
        self._bucket, self._share = bucket, share
        self._subject = f"keys of {', '.join(file.name for _, file in run[:_NAMED])}"
        rows = max(LEAST_BATCH_ROWS, min(BATCH_ROWS, share // _ROW_BYTES // 2))
        self._pending = (batch for one in run for batch in _live(storage, bucket, one, vectors, batch_rows=rows))
        self._held = next(self._pending)
        self._before = self._held
        self.ended = False

    def fill(self) -> None:
        """Read on until there are `share` bytes, and one row at least, or no more rows."""
        pieces, size, rows = [self._held], self._held.nbytes, self._held.num_rows
        while not self.ended and (size < self._share or not rows):
            piece = next(self._pending, None)
            self.ended = piece is None
            if piece is not None:
                pieces.append(piece)
                size, rows = size + piece.nbytes, rows + piece.num_rows
        self._held = pa.concat_tables(pieces)

    @property
    def last_key(self) -> SortKey:
        return StoredKeys(self._held, self._bucket).key(-1)

    def taken(self, bound: SortKey | None) -> pa.Table:
        """The next rows, up to those of key `bound`; without it all."""
        rows = self._held
        if bound is not None or self._before.num_rows:
            own = pa.concat_tables([self._before, rows]).select(key_columns(self._bucket))
            require_ascending(encode(own)[0], self._subject)
        if bound is None:
            return rows
        count = StoredKeys(rows, self._bucket).until(bound)
        self._held = rows.slice(count)
        self._before = rows.slice(count - 1, 1) if count else self._before
        return rows.slice(0, count)


def _live(
    storage: Storage,
    bucket: Bucket,
    file: tuple[int, PaimonDataFile],
    vectors: Mapping[str, BitMap64],
    *,
    batch_rows: int,
) -> Iterator[pa.Table]:
    """The live rows of one file in batches. The first batch may be empty. A reader checks the number of rows."""
    number, one = file
    names = read_columns(bucket)
    reader, marked, start = PaimonFileReader(storage, bucket, one), vectors.get(one.name), 0
    yield placed(reader.read(names, []), np.arange(0), source=number, level=one.level)
    for rows in reader.batches(names, range(len(reader.starts) - 1), batch_rows=batch_rows):
        count = rows.num_rows
        live = ~mask(marked, count, start) if marked else np.ones(count, np.bool_)
        if skips_retracts(bucket.schemas.current):
            live &= ~np.isin(rows.column(KIND).to_numpy(), RETRACT_KINDS)
        rows = placed(rows, np.arange(start, start + count), source=number, level=one.level)
        yield rows if live.all() else rows.filter(pa.array(live))
        start += count
    if start != one.rows:
        raise CorruptMetadata(bucket.path(one), f"{one.rows} rows as its manifest states", str(start))
