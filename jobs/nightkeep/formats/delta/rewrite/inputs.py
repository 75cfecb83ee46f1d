"""Files of one partition -> their rows -> new files. What one task of packing or clustering replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from nightkeep.clustering.even_files import CountingStorage
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.formats.delta.data.write import DeltaFileWriter, WrittenDeltaFile
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.naming import DeltaNaming
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.formats.delta.rewrite.layout_tags import cluster_tag, packed_tag
from nightkeep.formats.delta.rewrite.live_rows import DeltaLiveRows
from nightkeep.model import Clustering, Intent, Run, UnitKey
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class DeltaInputs:
    """The input of one task. `unit` has only the files that are replaced."""

    unit: DeltaUnit
    intent: Intent

    @property
    def key(self) -> UnitKey:
        return self.unit.key

    @property
    def files(self) -> Sequence[DeltaDataFile]:
        return self.unit.files

    def rows(self, storage: Storage) -> DeltaLiveRows:
        return DeltaLiveRows(storage, self.unit)

    def packer(self, storage: Storage, run: Run, target_bytes: int) -> DeltaFileWriter:
        return self._writer(storage, run, packed_tag(run.token, target_bytes))

    def clusterer(self, storage: Storage, run: Run, clustering: Clustering) -> DeltaFileWriter:
        return self._writer(storage, run, cluster_tag(clustering, run.token, self.key))

    def measure(self) -> DeltaFileWriter:
        return self._writer(cast(Storage, CountingStorage("")), Run("", "", "", 0), {})

    def edit(self, written: Sequence[WrittenDeltaFile], *, removed: Sequence[DeltaDataFile]) -> DeltaEdit:
        return DeltaEdit(tuple(removed), tuple(file.add for file in written), self.intent)

    def _writer(self, storage: Storage, run: Run, tags: Mapping[str, str]) -> DeltaFileWriter:
        unit, naming = self.unit, DeltaNaming(run, self.key)
        return DeltaFileWriter(storage, unit.schema, naming, unit.stored_partition, now_ms=run.now_ms, tags=tags)


DeltaPack = PackTask[DeltaDataFile, WrittenDeltaFile, DeltaEdit]
DeltaCluster = ClusterTask[DeltaDataFile, WrittenDeltaFile, DeltaEdit]
