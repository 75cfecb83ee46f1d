"""Data files -> their rows that no vector hides, a batch at a time, and a sample of some columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.clustering.sizing import batch_rows, is_gone
from nightkeep.formats.delta.data.columns import FileReader
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaUnit
from nightkeep.kernels.bitmap import mask
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class LiveRows:
    """The rows of a partition, by mask, where the gate reads by position: a mistake of one is not the other's."""

    storage: Storage
    unit: DeltaUnit

    def batches(self, files: Sequence[DataFile], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of `files`, each in its order, in tables of one schema. Files without rows are not opened."""
        for file in files:
            if not is_gone(file):
                yield from self._live(file, columns)

    def count(self, files: Sequence[DataFile]) -> int:
        """How many rows `batches` yields; opens the files that do not say."""
        return sum(self._physical(file) - file.deleted_rows for file in files)

    def sampled(self, files: Sequence[DataFile], columns: Sequence[str], share: float) -> pa.Table:
        """About `share` of the physical rows of each file, at least one of each."""
        parts = []
        for number, file in enumerate(file for file in files if not is_gone(file)):
            reader = FileReader(self.storage, self.unit, file)
            parts.append(reader.sampled(columns, int(reader.rows * share) + 1, seed=number))
        return pa.concat_tables(parts)

    def _physical(self, file: DataFile) -> int:
        return FileReader(self.storage, self.unit, file).rows if file.rows is None else file.rows

    def _live(self, file: DataFile, columns: Sequence[str]) -> Iterator[pa.Table]:
        hidden, start = read_vector(self.storage, file), 0
        reader = FileReader(self.storage, self.unit, file)
        for batch in reader.batches(columns, batch_rows=batch_rows(file.bytes, reader.rows)):
            if hidden:
                keep = ~mask(hidden, batch.num_rows, start)
                start += batch.num_rows
                batch = batch if keep.all() else batch.filter(pa.array(keep))
            yield batch
