"""Data file of a table without keys -> its rows in batches, at positions, or at random, for packing and clustering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.parquet_rows import sample
from nightkeep.formats.paimon.data.columns import BATCH_ROWS, PaimonFileReader, value_columns
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.kernels.bitmap import positions as ascending
from nightkeep.storage import Storage


class AppendFileReader:
    """One open data file. Columns have their current names, None means all columns of the table."""

    def __init__(self, storage: Storage, bucket: Bucket, file: PaimonDataFile) -> None:
        self._reader, self._every = PaimonFileReader(storage, bucket, file), value_columns(bucket)
        self.rows = file.rows

    def batches(self, names: Sequence[str] | None = None, *, batch_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """All rows in file order, in tables of one schema."""
        groups = range(len(self._reader.starts) - 1)
        return self._reader.batches(self._columns(names), groups, batch_rows=batch_rows)

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        """The rows at `positions`, in file order, in pieces. Row groups without such rows are not read."""
        return self._reader.taken(self._columns(names), ascending(positions))

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        """A uniform random sample of `rows` rows, or all rows if the file has no more."""
        pieces = list(self.taken(names, sample(self.rows, rows, seed)))
        return pa.concat_tables(pieces) if pieces else self._reader.read(self._columns(names), [])

    def _columns(self, names: Sequence[str] | None) -> Sequence[str]:
        return self._every if names is None else names
