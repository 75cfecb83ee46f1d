"""A Paimon table behind the protocol: an address and a store -> snapshots, rewrites, candidates, commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.paimon.commit import commit
from nightkeep.formats.paimon.commit.writers import compacting_writers, conditional_writers
from nightkeep.formats.paimon.gate import history
from nightkeep.formats.paimon.gate.gate import gate_of
from nightkeep.formats.paimon.metadata.features import refuse_schema
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot, Schemas, load, read_schemas
from nightkeep.formats.paimon.metadata.snapshot_files import digest, latest_id, parse_snapshot
from nightkeep.formats.paimon.retention import expire, referenced_files, roots, table_files
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask, rewrite
from nightkeep.formats.paimon.rewrite.upgrade import (
    file_indexes_go,
    lift_level0,
    refuse_append_table,
    refuse_modified_vectors,
    refuse_without_vectors,
)
from nightkeep.model import Address, Candidate, Committed, Operation, Rewrite, Run, UnitKey
from nightkeep.model.run_names import commit_user
from nightkeep.protocol import Gate, OperationRules, Seen, Watch
from nightkeep.protocol.table_files import ExpireRequest, Expiry, Reach, Retention, Root, TableFiles
from nightkeep.storage import Storage, open_storage

_MOVED_ON = 20
"""How many newest snapshots in a row may expire while they are read."""


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
        if version is None:
            return self._newest(read_as)
        loaded = self._load(f"snapshot/snapshot-{version}", None if read_as is None else read_as.schema.id)
        if loaded.version != version:
            raise CorruptMetadata(f"{self.address.name}/snapshot/snapshot-{version}", "its own id", str(loaded.version))
        return loaded

    def _newest(self, read_as: PaimonSnapshot | None) -> PaimonSnapshot:
        """The newest snapshot. If it expires while it is read, there is a newer one: read that."""
        for _ in range(_MOVED_ON):
            version = latest_id(self.storage)
            try:
                return self.snapshot(version, read_as=read_as)
            except MissingFile:
                if self.digest(version) is not None:
                    raise
        raise MissingFile(
            self.address.name, "a newest snapshot", f"{_MOVED_ON} in a row that were gone before they were read"
        )

    def units(self, snapshot: PaimonSnapshot) -> Sequence[Bucket]:
        return snapshot.units

    def digest(self, version: int) -> str | None:
        return digest(self.storage, version)

    def staged(self, candidate: Candidate) -> PaimonSnapshot:
        raw = parse_snapshot(self.storage.read(candidate.metadata), subject=candidate.metadata)
        return self._load(candidate.metadata, int(str(raw["schemaId"])))

    def _load(self, name: str, schema_id: int | None) -> PaimonSnapshot:
        """The snapshot stored as `name`. Rows are read with schema `schema_id`, by default the newest.

        Schemas change without a commit.
        """
        schemas = read_schemas(self.storage)
        current = schemas.get(max(schemas) if schema_id is None else schema_id)
        if current is None:
            raise CorruptMetadata(name, f"a schema among {sorted(schemas)}", f"schema {schema_id}")
        refuse_schema(self.address.name, current)
        return load(self.address, self.storage, name, schemas=Schemas(current, schemas))

    @property
    def gate(self) -> Gate[PaimonSnapshot, Bucket]:
        return gate_of(self.storage)

    def rewrite(self, task: UpgradeTask, run: Run) -> Rewrite[BucketEdit]:
        return rewrite(self.storage, task, run)

    def stage(self, parent: PaimonSnapshot, rewrites: Sequence[Rewrite[BucketEdit]], run: Run) -> Candidate:
        return commit.stage(self.storage, parent, rewrites, run)

    def conflicts(
        self, planned: PaimonSnapshot, head: PaimonSnapshot, rewrites: Sequence[Rewrite[BucketEdit]]
    ) -> tuple[tuple[UnitKey, str], ...]:
        return commit.conflicts(planned, head, rewrites)

    def commit(self, candidate: Candidate) -> bool:
        return commit.commit(self.storage, candidate)

    def visible(self, candidate: Candidate) -> bool:
        return commit.visible(self.storage, candidate)

    def undermined(self, candidate: Candidate) -> str | None:
        return commit.undermined(self.storage, candidate)

    def committed(self, run: Run) -> tuple[Committed, ...]:
        return tuple(map(self._committed, commit.committed(self.storage, run)))

    def _committed(self, version: int) -> Committed:
        ours = self.snapshot(version)
        places = {(entry["_PARTITION"], entry["_BUCKET"]) for entry in ours.delta_entries}
        mine = (u.key for u in ours.units if (u.partition_bytes, u.key.bucket) in places)
        parent, why = commit.parent_of(self.storage, ours)
        return Committed(ours.identity, version - 1, tuple(mine), parent=parent, undermined=why)

    def figures(
        self, before: PaimonSnapshot, after: PaimonSnapshot, touched: Sequence[UnitKey]
    ) -> Mapping[str, object]:
        return {}

    def commit_user(self, token: str) -> str:
        return commit_user(token)

    def go_back(self, version: int) -> str:
        # Paimon's Spark procedure. Other engines have a `rollback_to` action with the same arguments.
        return f"CALL sys.rollback(table => '{self.address.name}', version => '{version}')"

    def watch(self, head: PaimonSnapshot, since: Seen | None, *, now_ms: int) -> Watch | None:
        return history.watch(self.storage, head, since, now_ms=now_ms)

    def discard(self, names: Sequence[str]) -> None:
        for name in names:
            self.storage.delete(name)

    def never_written(self) -> bool:
        return table_files.never_written(self.address, self.storage)

    def territory(self) -> TableFiles:
        return table_files.territory(self.address, self.storage)

    def roots(self, retention: Retention) -> tuple[Root, ...]:
        """All versions that exist, whatever `retention` says: only expiry removes a version."""
        return roots.roots(self.storage)

    def reach(self, root: Root) -> Reach:
        return referenced_files.reach(self.storage, root)

    def live(self, source: object) -> Iterator[pa.RecordBatch]:
        return referenced_files.live(self.storage, source)

    def expiry(self, request: ExpireRequest) -> Expiry:
        return expire.expiry(self.address, self.storage, request)

    def forget(self, expiry: Expiry, run: Run) -> bool:
        return expire.forget(self.address, self.storage, expiry, run)


def open_table(address: Address) -> PaimonTable:
    """Open the table at `address.location`. Raises AddressError where there is no folder."""
    return PaimonTable(address, open_storage(address.location))
