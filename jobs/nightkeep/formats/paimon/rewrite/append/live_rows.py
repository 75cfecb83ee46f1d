"""Data files of a table without keys -> their live rows in batches, and a sample. Deletion vectors are applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.clustering.live_rows import live_batches, sample_share
from nightkeep.clustering.sizing import is_gone
from nightkeep.formats.paimon.data.append_reader import AppendFileReader
from nightkeep.formats.paimon.deletes.append_vectors import vectors_of
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class AppendLiveRows:
    """The live rows of a bucket's files."""

    storage: Storage
    bucket: Bucket

    def batches(self, files: Sequence[AppendFile], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of `files`, file by file in order, in tables of one schema. Files without rows are not opened."""
        vectors = vectors_of(self.storage, self.bucket, {file.name for file in files})
        for file in files:
            if not is_gone(file):
                reader = AppendFileReader(self.storage, self.bucket, file.file)
                yield from live_batches(reader, file, columns, vectors.get(file.name))

    def count(self, files: Sequence[AppendFile]) -> int:
        """The number of rows that `batches` yields; too high where a vector's writer did not count what it deletes."""
        return sum(file.file.rows - file.deleted_rows for file in files)

    def sampled(self, files: Sequence[AppendFile], columns: Sequence[str], share: float) -> pa.Table:
        """A sample of about `share` of the physical rows of each file, at least one row of each."""
        readers = (AppendFileReader(self.storage, self.bucket, file.file) for file in files if not is_gone(file))
        return sample_share(readers, columns, share)
