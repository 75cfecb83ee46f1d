"""A Delta table behind the protocol: an address and a store -> snapshots, rewrites, candidates, commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.clustering import wide_task
from nightkeep.clustering.layout import TableLayout
from nightkeep.errors import AddressError
from nightkeep.formats.delta.commit.commits import commits_of
from nightkeep.formats.delta.commit.writers import exclusive_writers
from nightkeep.formats.delta.gate.gate import gate_of
from nightkeep.formats.delta.metadata.log_state import digest
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.metadata.versions import read_staged, read_version
from nightkeep.formats.delta.retention.retained_files import retained_files
from nightkeep.formats.delta.rewrite.cluster_columns import require_columns
from nightkeep.formats.delta.rewrite.cluster_plan import cluster_files
from nightkeep.formats.delta.rewrite.delete import DeleteTask, arrow_schema, count_matching, delete_rows, refuse_deletes
from nightkeep.formats.delta.rewrite.layout import layout, sample
from nightkeep.formats.delta.rewrite.layout_metrics import figures
from nightkeep.formats.delta.rewrite.optimize import pack_files, refuse_unhandled
from nightkeep.formats.delta.rewrite.persist import prune_vectors, refuse_new_vectors
from nightkeep.formats.delta.rewrite.rewrite import DeltaTask, rewrite
from nightkeep.formats.delta.rewrite.sizing import sizes_of
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
from nightkeep.storage import Storage, open_storage


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """One opened table; picklable, so that tasks can read and rewrite."""

    address: Address
    storage: Storage

    @property
    def operations(self) -> Mapping[Operation, OperationRules[DeltaSnapshot, DeltaUnit, DeltaTask]]:
        writers = exclusive_writers(self.storage)
        return {
            Operation.OPTIMIZE: OperationRules(
                (refuse_unhandled, require_columns, writers), (cluster_files, pack_files)
            ),
            Operation.PERSIST_DELETES: OperationRules(
                (refuse_unhandled, refuse_new_vectors, writers), (prune_vectors,)
            ),
        }

    @property
    def row_operations(self) -> Mapping[Operation, OperationRules[DeltaSnapshot, DeltaUnit, DeltaTask]]:
        refusals = (refuse_unhandled, refuse_deletes, exclusive_writers(self.storage))
        return {Operation.DELETE: OperationRules(refusals, (delete_rows,))}

    def columns(self, snapshot: DeltaSnapshot) -> pa.Schema:
        return arrow_schema(snapshot.schema)

    def count_matching(self, task: DeltaTask) -> int:
        if not isinstance(task, DeleteTask):
            raise TypeError(f"{self.address.name}: expected a task of {Operation.DELETE}, found {task!r:.80}")
        return count_matching(self.storage, task)

    def snapshot(self, version: int | None = None, *, read_as: DeltaSnapshot | None = None) -> DeltaSnapshot:
        return read_version(self.address, self.storage, version, read_as=read_as)

    def staged(self, candidate: Candidate) -> DeltaSnapshot:
        return read_staged(self.address, self.storage, candidate)

    def units(self, snapshot: DeltaSnapshot) -> Sequence[DeltaUnit]:
        return snapshot.units

    def digest(self, version: int) -> str | None:
        return digest(self.storage, version)

    @property
    def gate(self) -> Gate[DeltaSnapshot, DeltaUnit]:
        return gate_of(self.storage)

    def rewrite(self, task: DeltaTask, run: Run) -> Rewrite[DeltaEdit]:
        return rewrite(self.storage, task, run)

    def survey(self, task: Wide, source: object) -> object:
        return wide_task.survey(self.storage, task, source)

    def ranged(self, task: Wide, surveys: Sequence[object]) -> object:
        return wide_task.ranged(task, surveys)

    def scatter(self, ranged: object, source: object) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        return wide_task.scatter(self.storage, ranged, source)

    def gather(
        self, ranged: object, part: int, rows: Iterator[tuple[int, pa.RecordBatch]], *, run: Run
    ) -> Rewrite[DeltaEdit]:
        return wide_task.gather(self.storage, ranged, part, rows, run=run)

    @property
    def commits(self) -> Commits[DeltaSnapshot, DeltaEdit]:
        return commits_of(self.address, self.storage)

    def figures(self, before: DeltaSnapshot, after: DeltaSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
        return figures(before, after, touched)

    def layout(self, snapshot: DeltaSnapshot) -> TableLayout:
        return layout(snapshot)

    def sample(self, snapshot: DeltaSnapshot, columns: Sequence[str], rows: int) -> Iterator[tuple[int, pa.Table]]:
        return sample(self.storage, snapshot, columns, rows)

    def target_bytes(self, snapshot: DeltaSnapshot, request: Request) -> int:
        return sizes_of(snapshot, request).target

    @property
    def retention(self) -> OpenFiles:
        return of_any_format(retained_files(self.address, self.storage))


def open_table(address: Address) -> DeltaTable:
    """Open the table at `address.location`. Raises AddressError where there is no table."""
    storage = open_storage(address.location)
    if not storage.list(LOG):
        raise AddressError(f"{address}: expected a Delta table, found nothing in its folder {LOG}")
    return DeltaTable(address, storage)
