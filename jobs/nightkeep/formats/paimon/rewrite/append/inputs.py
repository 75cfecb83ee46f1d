"""Files of one bucket -> their rows -> new files. What one task of packing or clustering replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from nightkeep.clustering.even_files import CountingStorage
from nightkeep.clustering.layout_names import clustered_mark, packed_mark
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.sizing import is_gone
from nightkeep.formats.paimon.data.append_write import AppendFileWriter, WrittenAppendFile
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, keeps_order
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile
from nightkeep.formats.paimon.rewrite.append.live_rows import AppendLiveRows
from nightkeep.model import Clustering, Run, UnitKey
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class AppendInputs:
    """The `files` that one task replaces. Of `bucket` only what reads, writes and orders its files is used."""

    bucket: Bucket
    files: Sequence[AppendFile]

    @property
    def key(self) -> UnitKey:
        return self.bucket.key

    def rows(self, storage: Storage) -> AppendLiveRows:
        return AppendLiveRows(storage, self.bucket)

    def packer(self, storage: Storage, run: Run, target_bytes: int) -> AppendFileWriter:
        return self._writer(storage, run, packed_mark(target_bytes))

    def clusterer(self, storage: Storage, run: Run, clustering: Clustering) -> AppendFileWriter:
        return self._writer(storage, run, mark_of(self.bucket.schemas.current, clustering))

    def measure(self) -> AppendFileWriter:
        return self._writer(cast(Storage, CountingStorage("")), Run("", "", "", 0), None)

    def edit(self, written: Sequence[WrittenAppendFile], *, removed: Sequence[AppendFile]) -> BucketEdit:
        """The edit of data files alone: a task of its own prunes the vector files of the unit."""
        bucket = self.bucket
        return BucketEdit(
            bucket.partition_bytes,
            bucket.key.bucket or 0,
            bucket.total_buckets,
            tuple(file.file.record for file in removed),
            tuple(file.record for file in written),
            None,
        )

    def _writer(self, storage: Storage, run: Run, mark: str | None) -> AppendFileWriter:
        live = [file.file for file in self.files if not is_gone(file)]
        first = min((file.min_sequence for file in live), default=0)
        last = self._last_start(live) if live and keeps_order(self.bucket.schemas.current) else first
        naming = PaimonNaming(run, self.key, mark=mark)
        return AppendFileWriter(storage, self.bucket, naming, first_sequence=first, last_start=last, now_ms=run.now_ms)

    def _last_start(self, live: Sequence[PaimonDataFile]) -> int:
        """The highest number that a new file can begin with before the next file that stays, or that is appended."""
        last = max(file.min_sequence for file in live)
        later = [file.min_sequence for file in self.bucket.files if file.min_sequence > last]
        return min(later) - 1 if later else max(file.max_sequence for file in live)


def mark_of(schema: PaimonSchema, clustering: Clustering) -> str:
    """The mark in names of files with this clustering. `clustering` has the table's own names."""
    return clustered_mark([schema.field(name).id for name in clustering.columns], clustering.curve)


AppendPack = PackTask[AppendFile, WrittenAppendFile, BucketEdit]
AppendCluster = ClusterTask[AppendFile, WrittenAppendFile, BucketEdit]
