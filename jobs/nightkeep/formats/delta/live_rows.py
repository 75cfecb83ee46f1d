"""Data files -> their rows that no vector hides, a batch at a time, and a sample of some columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from nightkeep.formats.delta.columns import FileReader
from nightkeep.formats.delta.metadata import DataFile, DeltaUnit
from nightkeep.formats.delta.sizing import is_gone
from nightkeep.formats.delta.tuning import BATCH_BYTES
from nightkeep.formats.delta.vectors import read_vector
from nightkeep.kernels.bitmap import mask
from nightkeep.storage import Storage

_LEAST_ROWS, _MOST_ROWS = 1 << 10, 1 << 17
_DECODED = 4
"""Arrow takes about this many times a file's bytes; a guess, for the first batch's size only."""


def live_rows(
    storage: Storage, unit: DeltaUnit, files: Sequence[DataFile], columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows of `files`, each in its order, in tables of one schema. Files without rows are not opened.

    By mask, where the gate reads by position: a mistake of one is not the other's.
    """
    for file in files:
        if not is_gone(file):
            yield from _live(storage, unit, file, columns)


def live_count(storage: Storage, unit: DeltaUnit, files: Sequence[DataFile]) -> int:
    """How many rows `live_rows` yields; opens the files that do not say."""
    return sum(_physical(storage, unit, file) - file.deleted_rows for file in files)


def sampled(
    storage: Storage, unit: DeltaUnit, files: Sequence[DataFile], columns: Sequence[str], share: float
) -> pa.Table:
    """About `share` of the physical rows of each file, at least one of each."""
    parts = []
    for number, file in enumerate(file for file in files if not is_gone(file)):
        reader = FileReader(storage, unit, file)
        parts.append(reader.sampled(columns, int(reader.rows * share) + 1, seed=number))
    return pa.concat_tables(parts)


def _physical(storage: Storage, unit: DeltaUnit, file: DataFile) -> int:
    return FileReader(storage, unit, file).rows if file.rows is None else file.rows


def _live(storage: Storage, unit: DeltaUnit, file: DataFile, columns: Sequence[str]) -> Iterator[pa.Table]:
    hidden, start = read_vector(storage, file), 0
    reader = FileReader(storage, unit, file)
    row_bytes = _DECODED * file.bytes / max(1, reader.rows)
    batch_rows = int(min(_MOST_ROWS, max(_LEAST_ROWS, BATCH_BYTES / max(1, row_bytes))))
    for batch in reader.batches(columns, batch_rows=batch_rows):
        if hidden:
            keep = ~mask(hidden, batch.num_rows, start)
            start += batch.num_rows
            batch = batch if keep.all() else batch.filter(pa.array(keep))
        yield batch
