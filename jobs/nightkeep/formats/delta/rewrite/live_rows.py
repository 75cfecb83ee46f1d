"""Data files -> their live rows in batches, and a sample of some columns. Deletion vectors are applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.clustering.live_rows import live_batches, sample_share
from nightkeep.clustering.sizing import is_gone
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class DeltaLiveRows:
    """The live rows of a partition's files."""

    storage: Storage
    unit: DeltaUnit

    def batches(self, files: Sequence[DeltaDataFile], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of `files`, file by file in order, in tables of one schema. Files without rows are not opened."""
        for file in files:
            if not is_gone(file):
                hidden = read_vector(self.storage, file)
                yield from live_batches(DeltaFileReader(self.storage, self.unit, file), file, columns, hidden)

    def count(self, files: Sequence[DeltaDataFile]) -> int:
        """The number of rows that `batches` yields. Opens the files whose statistics lack a row count."""
        return sum(self._physical(file) - file.deleted_rows for file in files)

    def sampled(self, files: Sequence[DeltaDataFile], columns: Sequence[str], share: float) -> pa.Table:
        """A sample of about `share` of the physical rows of each file, at least one row of each."""
        readers = (DeltaFileReader(self.storage, self.unit, file) for file in files if not is_gone(file))
        return sample_share(readers, columns, share)

    def _physical(self, file: DeltaDataFile) -> int:
        return DeltaFileReader(self.storage, self.unit, file).rows if file.rows is None else file.rows
