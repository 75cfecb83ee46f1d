"""A Paimon table behind the protocol: an address and a store -> snapshots, rewrites, candidates, commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightkeep.formats.paimon.commit.commits import commits_of
from nightkeep.formats.paimon.commit.writers import compacting_writers, conditional_writers
from nightkeep.formats.paimon.gate import history
from nightkeep.formats.paimon.gate.gate import gate_of
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import digest
from nightkeep.formats.paimon.metadata.versions import read_staged, read_version
from nightkeep.formats.paimon.retention import table_files
from nightkeep.formats.paimon.retention.retained_files import retained_files
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask, rewrite
from nightkeep.formats.paimon.rewrite.upgrade import (
    file_indexes_go,
    lift_level0,
    refuse_append_table,
    refuse_modified_vectors,
    refuse_without_vectors,
)
from nightkeep.model import Address, Candidate, Operation, Rewrite, Run, UnitKey
from nightkeep.protocol import Commits, Gate, OperationRules, Seen, Watch
from nightkeep.protocol.table_files import (
    OpenFiles,
    of_any_format,
)
from nightkeep.storage import Storage, open_storage


@dataclass(frozen=True, slots=True)
class PaimonTable:
    """One opened table; picklable, so that tasks can read and rewrite."""

    address: Address
    storage: Storage

    @property
    def operations(self) -> Mapping[Operation, OperationRules[PaimonSnapshot, Bucket, UpgradeTask]]:
        refusals = (
            refuse_append_table, refuse_without_vectors, refuse_modified_vectors,
            compacting_writers(self.storage), conditional_writers(self.storage),
        )  # fmt: skip
        return {Operation.UPGRADE: OperationRules(refusals, (lift_level0,), (file_indexes_go,))}

    def snapshot(self, version: int | None = None, *, read_as: PaimonSnapshot | None = None) -> PaimonSnapshot:
        return read_version(self.address, self.storage, version, read_as=read_as)

    def staged(self, candidate: Candidate) -> PaimonSnapshot:
        return read_staged(self.address, self.storage, candidate)

    def units(self, snapshot: PaimonSnapshot) -> Sequence[Bucket]:
        return snapshot.units

    def digest(self, version: int) -> str | None:
        return digest(self.storage, version)

    @property
    def gate(self) -> Gate[PaimonSnapshot, Bucket]:
        return gate_of(self.storage)

    def rewrite(self, task: UpgradeTask, run: Run) -> Rewrite[BucketEdit]:
        return rewrite(self.storage, task, run)

    @property
    def commits(self) -> Commits[PaimonSnapshot, BucketEdit]:
        return commits_of(self.address, self.storage)

    def figures(
        self, before: PaimonSnapshot, after: PaimonSnapshot, touched: Sequence[UnitKey]
    ) -> Mapping[str, object]:
        return {}

    def watch(self, head: PaimonSnapshot, since: Seen | None, *, now_ms: int) -> Watch | None:
        return history.watch(self.storage, head, since, now_ms=now_ms)

    def never_written(self) -> bool:
        return table_files.never_written(self.address, self.storage)

    @property
    def retention(self) -> OpenFiles:
        return of_any_format(retained_files(self.address, self.storage))


def open_table(address: Address) -> PaimonTable:
    """Open the table at `address.location`. Raises AddressError where there is no folder."""
    return PaimonTable(address, open_storage(address.location))
