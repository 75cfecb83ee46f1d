"""What one task of packing or clustering replaces in a Delta table: files of a partition, their rows, new files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from nightkeep.clustering.even_files import Forgotten
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.formats.delta.data.write import FileWriter, WrittenFile
from nightkeep.formats.delta.metadata.naming import Naming
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaUnit
from nightkeep.formats.delta.rewrite.layout_tags import cluster_tag, packed_tag
from nightkeep.formats.delta.rewrite.live_rows import LiveRows
from nightkeep.model import Clustering, Intent, Run, UnitKey
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class Inputs:
    """`unit` has the files that are replaced, and no other."""

    unit: DeltaUnit
    intent: Intent

    @property
    def key(self) -> UnitKey:
        return self.unit.key

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self.unit.files

    def rows(self, storage: Storage) -> LiveRows:
        return LiveRows(storage, self.unit)

    def packer(self, storage: Storage, run: Run, target_bytes: int) -> FileWriter:
        return self._writer(storage, run, packed_tag(run.token, target_bytes))

    def clusterer(self, storage: Storage, run: Run, clustering: Clustering) -> FileWriter:
        return self._writer(storage, run, cluster_tag(clustering, run.token, self.key))

    def measure(self) -> FileWriter:
        return self._writer(cast(Storage, Forgotten("")), Run("", "", "", 0), {})

    def edit(self, written: Sequence[WrittenFile], *, removed: Sequence[DataFile]) -> DeltaEdit:
        return DeltaEdit(tuple(removed), tuple(file.add for file in written), self.intent)

    def _writer(self, storage: Storage, run: Run, tags: Mapping[str, str]) -> FileWriter:
        unit, naming = self.unit, Naming(run, self.key)
        return FileWriter(storage, unit.schema, naming, unit.stored_partition, now_ms=run.now_ms, tags=tags)


DeltaPack = PackTask[DataFile, WrittenFile, DeltaEdit]
DeltaCluster = ClusterTask[DataFile, WrittenFile, DeltaEdit]
