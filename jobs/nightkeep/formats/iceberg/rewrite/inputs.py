"""Files of a partition -> rows for one task of packing or clustering, and the edit that replaces the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from nightkeep.clustering.even_files import CountingStorage
from nightkeep.clustering.layout_names import clustered_mark, packed_mark
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.formats.iceberg.data.write import IcebergFileWriter, WrittenIcebergFile
from nightkeep.formats.iceberg.metadata.leaf_columns import leaves
from nightkeep.formats.iceberg.metadata.locations import root_of
from nightkeep.formats.iceberg.metadata.manifest_merge import worth_merging
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.delete_matching import probes
from nightkeep.formats.iceberg.rewrite.hidden_rows import INDEX_BYTES
from nightkeep.formats.iceberg.rewrite.live_rows import IcebergLiveRows
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile
from nightkeep.model import Clustering, Intent, Request, Run, UnitKey
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class IcebergInputs:
    """The `files` that a task replaces. `unit` has only what is needed to read them.

    New files get the data sequence number `planned_sequence`: deletes newer than the plan then apply to them, as they
    do to the old files. The index of deleted keys is built in parts of `index_bytes`.
    """

    unit: IcebergUnit
    files: tuple[PlacedFile, ...]
    planned_sequence: int
    index_bytes: int
    intent: Intent
    rewrites_manifests: bool

    @classmethod
    def of(
        cls, snapshot: IcebergSnapshot, unit: IcebergUnit, files: Sequence[PlacedFile], request: Request
    ) -> IcebergInputs:
        return cls(
            unit=_reading(unit, files),
            files=tuple(files),
            planned_sequence=snapshot.sequence_number,
            index_bytes=min(INDEX_BYTES, max(1, request.task_bytes // 8)),
            intent=Intent.of(request),
            rewrites_manifests=worth_merging(snapshot) is not None,
        )

    @property
    def key(self) -> UnitKey:
        return self.unit.key

    def rows(self, storage: Storage) -> IcebergLiveRows:
        return IcebergLiveRows(storage, self.unit, self.index_bytes)

    def packer(self, storage: Storage, run: Run, target_bytes: int) -> IcebergFileWriter:
        return self._writer(storage, run, packed_mark(target_bytes))

    def clusterer(self, storage: Storage, run: Run, clustering: Clustering) -> IcebergFileWriter:
        return self._writer(storage, run, mark_of(self.unit.schema, clustering))

    def measure(self) -> IcebergFileWriter:
        return measuring(self.unit.schema, self.unit.spec_id, self.unit.values)

    def edit(self, written: Sequence[WrittenIcebergFile], *, removed: Sequence[PlacedFile]) -> IcebergEdit:
        """The edit: removes files with the deletes of these files only. The commit decides on other deletes."""
        return IcebergEdit(
            planned_sequence=self.planned_sequence,
            intent=self.intent,
            removed=tuple(each for placed in removed for each in (placed.file, *placed.own)),
            added=tuple(each.file for each in written),
            rewrites_manifests=self.rewrites_manifests,
        )

    def _writer(self, storage: Storage, run: Run, mark: str) -> IcebergFileWriter:
        """A writer of files of the partition, in its spec and with the rows' lineage."""
        unit, sequence = self.unit, self.planned_sequence
        naming = IcebergNaming(run, unit.key, mark=mark)
        return IcebergFileWriter(
            storage, unit.schema, naming, spec_id=unit.spec_id, values=unit.values, sequence_number=sequence
        )


def measuring(schema: IcebergSchema, spec_id: int, values: Sequence[object]) -> IcebergFileWriter:
    """A writer to measure file sizes; its files are discarded. Raises RefusedTable for settings that we cannot use."""
    naming, nowhere = IcebergNaming(Run("", "", "", 0)), CountingStorage(root_of(schema.location))
    return IcebergFileWriter(cast(Storage, nowhere), schema, naming, spec_id=spec_id, values=values)


def mark_of(schema: IcebergSchema, clustering: Clustering) -> str:
    """The mark in names of files with this clustering. `clustering` has the table's own names."""
    numbers = {".".join(leaf.path): leaf.field.field_id for leaf in reversed(leaves(schema))}
    return clustered_mark([numbers[name] for name in clustering.columns], clustering.curve)


def _reading(unit: IcebergUnit, files: Sequence[PlacedFile]) -> IcebergUnit:
    data = tuple(placed.file for placed in files)
    positional = {delete.identity: delete for placed in files for delete in placed.held}
    by_keys = [placed.file for placed in files if placed.by_keys]
    equality = {delete.identity: delete for probe in probes(unit, by_keys) for delete in probe.deletes}
    return replace(unit, files=data, positional=tuple(positional.values()), equality=tuple(equality.values()))


IcebergPack = PackTask[PlacedFile, WrittenIcebergFile, IcebergEdit]
IcebergCluster = ClusterTask[PlacedFile, WrittenIcebergFile, IcebergEdit]
