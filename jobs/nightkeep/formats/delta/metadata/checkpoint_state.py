"""A segment of the log -> the state that a checkpoint of its version holds: also tombstones, and raw transactions.

PROTOCOL.md, "Checkpoints" and "Action Reconciliation"; InMemoryLogReplay.scala of delta-spark for what has expired. The
actions pass by on their way to the replay, so that the log is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nightkeep.formats.delta.metadata.actions import Action, Raw, parse_lines, vector_id
from nightkeep.formats.delta.metadata.add_columns import AddColumns
from nightkeep.formats.delta.metadata.checkpoints import checkpoint_actions, checkpoint_tombstones
from nightkeep.formats.delta.metadata.log_segment import Checkpoint, Segment
from nightkeep.formats.delta.metadata.replay import FileKey, LogState, replay
from nightkeep.model import digest_of
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class Expiration:
    """Times in epoch milliseconds: tombstones of files that were removed up to `removed_ms` have expired, and so have
    transactions that were last updated up to `updated_ms`, or at no stated time. None: no transaction expires."""

    removed_ms: int
    updated_ms: int | None = None

    def keeps_tombstone(self, body: Raw) -> bool:
        removed = body.get("deletionTimestamp")
        return isinstance(removed, int) and removed > self.removed_ms

    def keeps_transaction(self, body: Raw) -> bool:
        updated = body.get("lastUpdated")
        return self.updated_ms is None or (isinstance(updated, int) and updated > self.updated_ms)


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """What a checkpoint of one version holds. `removed` are tombstones of the commits after the base checkpoint; those
    of the base itself are read by `older_tombstones`. `commit_digest`: of the version's own commit."""

    version: int
    state: LogState
    transactions: tuple[Raw, ...]
    removed: tuple[Raw, ...]
    base: Checkpoint | None
    decided: frozenset[FileKey]
    expiration: Expiration
    commit_digest: str

    @property
    def adds(self) -> int:
        return len(self.state.adds) + len(self.state.stored)

    @property
    def domains(self) -> tuple[Raw, ...]:
        return tuple(self.state.domains.values())

    def older_tombstones(self, storage: Storage) -> Iterator[Raw]:
        """Tombstones of the base checkpoint that no later commit replaced, without those that have expired."""
        if self.base is None:
            return
        for _, body in checkpoint_tombstones(storage, self.base):
            if _key(body) not in self.decided and self.expiration.keeps_tombstone(body):
                yield body


def read_checkpoint_state(storage: Storage, log_files: Segment, expiration: Expiration) -> CheckpointState:
    """Raises CorruptMetadata, MissingFile, and RefusedTable for a foreign sidecar."""
    seen, digests = _Seen(expiration), dict[str, str]()

    def actions(name: str) -> Iterator[Action]:
        data = storage.read(name)
        digests[name] = digest_of(data)
        return parse_lines(data, subject=name)

    base = log_files.checkpoint
    checkpoint = seen.of_checkpoint(checkpoint_actions(storage, base)) if base else ()
    own = actions(log_files.own) if log_files.own and not log_files.commits else ()
    state = replay(checkpoint, ((name, seen.of_commit(actions(name))) for _, name in log_files.commits), own)
    return CheckpointState(
        version=log_files.version,
        state=state,
        transactions=tuple(body for body in seen.transactions.values() if expiration.keeps_transaction(body)),
        removed=tuple(seen.removed.values()),
        base=base,
        decided=frozenset(seen.decided) if base else frozenset(),
        expiration=expiration,
        commit_digest=digests.get(log_files.own or "", ""),
    )


@dataclass
class _Seen:
    """What passed by. The replay takes the commits first, oldest first, and then the checkpoint beneath them."""

    expiration: Expiration
    removed: dict[FileKey, Raw] = field(default_factory=dict)
    decided: set[FileKey] = field(default_factory=set)
    transactions: dict[str, Raw] = field(default_factory=dict)

    def of_commit(self, actions: Iterable[Action]) -> Iterator[Action]:
        adds = list[FileKey]()
        for kind, body in actions:
            if kind == "remove":
                self._remove(body)
            elif kind == "add":
                adds.append(_key(body))
            elif kind == "txn":
                self.transactions[str(body["appId"])] = body
            yield kind, body
        # The order within a commit has no meaning; no key is both added and removed there.
        self.decided.update(adds)
        for key in adds:
            self.removed.pop(key, None)

    def _remove(self, body: Raw) -> None:
        key = _key(body)
        self.decided.add(key)
        if self.expiration.keeps_tombstone(body):
            self.removed[key] = body
        else:
            self.removed.pop(key, None)

    def of_checkpoint(self, items: Iterable[Action | AddColumns]) -> Iterator[Action | AddColumns]:
        for item in items:
            if not isinstance(item, AddColumns) and item[0] == "txn":
                self.transactions.setdefault(str(item[1]["appId"]), item[1])
            yield item


def _key(body: Raw) -> FileKey:
    return str(body["path"]), vector_id(body)
