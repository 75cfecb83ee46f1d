"""Catalog table and storage -> snapshots, rewrites, candidates, commits. Only commits change what the catalog holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.clustering import wide_task
from nightkeep.clustering.layout import TableLayout
from nightkeep.formats.iceberg.catalog.catalog import TableHandle, open_handle
from nightkeep.formats.iceberg.commit.commits import commits_of
from nightkeep.formats.iceberg.gate.gate import gate_of
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit, outline
from nightkeep.formats.iceberg.metadata.versions import digest, read_staged, read_version
from nightkeep.formats.iceberg.retention.retained_files import retained_files
from nightkeep.formats.iceberg.rewrite.cluster_columns import require_columns
from nightkeep.formats.iceberg.rewrite.cluster_plan import cluster_files
from nightkeep.formats.iceberg.rewrite.layout import layout, sample
from nightkeep.formats.iceberg.rewrite.layout_metrics import figures
from nightkeep.formats.iceberg.rewrite.manifest_work import merge_manifests
from nightkeep.formats.iceberg.rewrite.optimize import pack_files, refuse_unhandled, sort_order_note
from nightkeep.formats.iceberg.rewrite.persist_plan import (
    filter_note,
    left_out_note,
    persist_deletes,
    refuse_persisting,
    streaming_note,
)
from nightkeep.formats.iceberg.rewrite.rewrite import IcebergTask, rewrite
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import (
    Address,
    Candidate,
    Operation,
    Request,
    Rewrite,
    Run,
    UnitKey,
)
from nightkeep.protocol import Commits, Gate, OperationRules, Wide
from nightkeep.protocol.table_files import (
    OpenFiles,
    of_any_format,
)
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """One opened Iceberg table. Picklable: tasks on other machines read and rewrite with it."""

    address: Address
    handle: TableHandle

    @property
    def storage(self) -> Storage:
        return self.handle.storage

    @property
    def operations(self) -> Mapping[Operation, OperationRules[IcebergSnapshot, IcebergUnit, IcebergTask]]:
        return {
            Operation.OPTIMIZE: OperationRules(
                (refuse_unhandled, require_columns),
                (cluster_files, pack_files, merge_manifests),
                (sort_order_note,),
                left_out_note,
            ),
            Operation.PERSIST_DELETES: OperationRules(
                (refuse_persisting,), (persist_deletes,), (streaming_note, filter_note), left_out_note
            ),
        }

    def snapshot(self, version: int | None = None, *, read_as: IcebergSnapshot | None = None) -> IcebergSnapshot:
        return read_version(self.address, self.handle, version, read_as=read_as)

    def staged(self, candidate: Candidate) -> IcebergSnapshot:
        return read_staged(self.address, self.handle, candidate)

    def outline(self) -> IcebergSnapshot:
        return outline(self.address, self.handle)

    def units(self, snapshot: IcebergSnapshot) -> Sequence[IcebergUnit]:
        return snapshot.units

    def digest(self, version: int) -> str | None:
        return digest(self.handle, version)

    @property
    def gate(self) -> Gate[IcebergSnapshot, IcebergUnit]:
        return gate_of(self.storage)

    def rewrite(self, task: IcebergTask, run: Run) -> Rewrite[IcebergEdit]:
        return rewrite(self.storage, task, run)

    def survey(self, task: Wide, source: object) -> object:
        return wide_task.survey(self.storage, task, source)

    def ranged(self, task: Wide, surveys: Sequence[object]) -> object:
        return wide_task.ranged(task, surveys)

    def scatter(self, ranged: object, source: object) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        return wide_task.scatter(self.storage, ranged, source)

    def gather(
        self, ranged: object, part: int, rows: Iterator[tuple[int, pa.RecordBatch]], *, run: Run
    ) -> Rewrite[IcebergEdit]:
        return wide_task.gather(self.storage, ranged, part, rows, run=run)

    @property
    def commits(self) -> Commits[IcebergSnapshot, IcebergEdit]:
        return commits_of(self.address, self.handle)

    def figures(
        self, before: IcebergSnapshot, after: IcebergSnapshot, touched: Sequence[UnitKey]
    ) -> Mapping[str, object]:
        return figures(before, after, touched)

    def layout(self, snapshot: IcebergSnapshot) -> TableLayout:
        return layout(snapshot)

    def sample(self, snapshot: IcebergSnapshot, columns: Sequence[str], rows: int) -> Iterator[tuple[int, pa.Table]]:
        return sample(self.storage, snapshot, columns, rows)

    def target_bytes(self, snapshot: IcebergSnapshot, request: Request) -> int:
        return sizes_of(snapshot, request).target

    @property
    def retention(self) -> OpenFiles:
        return of_any_format(retained_files(self.address, self.handle))


def open_table(address: Address) -> IcebergTable:
    """Open `CATALOG/NAMESPACE.TABLE`. Raises AddressError for a catalog or a table that is not there."""
    handle = open_handle(address.location)
    return IcebergTable(address, handle)
