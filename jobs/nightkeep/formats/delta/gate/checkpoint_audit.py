"""Staged bytes of a checkpoint, and the log -> whether both hold the same actions. What readers will trust is proven.

The log is reconciled here from the newest commit back, action by action; the writer's replay goes forward and in
columns. The staged files are read by Arrow alone. Both sides are multisets of actions: a count and a sum of hashes for
each kind. PROTOCOL.md, "Action Reconciliation" and "Checkpoints".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from nightkeep.errors import EvidenceError, reason_of
from nightkeep.formats.delta.gate.parsed_audit import partition_fault, stats_of_columns, stats_of_text
from nightkeep.formats.delta.metadata.actions import Action, Raw, parse_lines, vector_id
from nightkeep.formats.delta.metadata.add_columns import AddColumns
from nightkeep.formats.delta.metadata.checkpoint_state import Expiration
from nightkeep.formats.delta.metadata.checkpoints import NOT_A_CHECKPOINT, checkpoint_actions, checkpoint_tombstones
from nightkeep.formats.delta.metadata.log_segment import Checkpoint, Segment
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.storage import Storage

_MASK: Final = (1 << 128) - 1
_BATCH: Final = 1 << 14
_OF_CHECKPOINTS: Final = frozenset({"checkpointMetadata", "sidecar"})
_MAPS: Final = frozenset({"partitionValues", "tags", "configuration", "options"})
"""Fields whose null values are values."""


@dataclass
class ActionSums:
    """A multiset of actions: for each kind the number, and the sum of hashes."""

    sums: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, kind: str, body: Mapping[str, Any]) -> None:
        count, total = self.sums.get(kind, (0, 0))
        text = json.dumps(body, sort_keys=True, ensure_ascii=True)
        number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest())
        self.sums[kind] = (count + 1, (total + number) & _MASK)

    def require(self, other: ActionSums, *, subject: str) -> None:
        """Raises EvidenceError unless `other`, what was found, is this multiset."""
        for kind in sorted(self.sums.keys() | other.sums.keys()):
            wanted, found = self.sums.get(kind, (0, 0)), other.sums.get(kind, (0, 0))
            if wanted != found:
                said = f"{found[0]:,}" if wanted[0] != found[0] else "as many, of other content"
                raise EvidenceError(subject, f"the {wanted[0]:,} {kind} actions of the log", said)


@dataclass(frozen=True, slots=True)
class StatsKept:
    """What a checkpoint has of statistics. `schema`: the table's, for statistics and partition values in columns."""

    schema: DeltaSchema
    as_json: bool
    as_struct: bool


def log_sums(storage: Storage, log_files: Segment, expiration: Expiration, kept: StatsKept | None = None) -> ActionSums:
    """The actions that a checkpoint of the segment's version has to hold. Raises CorruptMetadata, MissingFile."""
    newest = _Newest(expiration, kept)
    for _, name in reversed(log_files.commits):
        newest.commit(parse_lines(storage.read(name), subject=name))
    if log_files.checkpoint is not None:
        newest.beneath(storage, log_files.checkpoint)
    return newest.sums


def require_same_files(storage: Storage, checkpoint: Checkpoint, log_files: Segment | None) -> None:
    """Decode a checkpoint of any writer, and compare its live files, domains and schema with those of the log.

    Writers differ in what they keep of statistics, tombstones and empty fields. Without a log it is only decoded.
    Raises EvidenceError.
    """
    forever = Expiration(removed_ms=1 << 62)
    found = _Newest(forever, reduced=True)
    found.beneath(storage, checkpoint)
    missing = [kind for kind in ("protocol", "metaData") if kind not in found.sums.sums]
    if missing:
        raise EvidenceError(checkpoint.names[0], f"a {missing[0]} action", "none")
    if log_files is None:
        return
    wanted = _Newest(forever, reduced=True)
    for _, name in reversed(log_files.commits):
        wanted.commit(parse_lines(storage.read(name), subject=name))
    if log_files.checkpoint is not None:
        wanted.beneath(storage, log_files.checkpoint)
    wanted.sums.require(found.sums, subject=f"{checkpoint.names[0]}, read again")


def staged_sums(storage: Storage, names: Sequence[str], kept: StatsKept) -> ActionSums:
    """The actions in the bytes of staged files: the checkpoint's own, then its sidecars. Raises EvidenceError."""
    sums, sidecars = ActionSums(), list[tuple[str, int]]()
    for name in names:
        for kind, body in _stored(storage, name):
            if kind == "sidecar":
                sidecars.append((str(body["path"]), body["sizeInBytes"]))
            elif kind == "add":
                sums.add(kind, _checked_add(body, kept, subject=name))
            elif kind not in _OF_CHECKPOINTS:
                sums.add(kind, _plain(body))
    sizes = [(name.removeprefix(f"{LOG}/_sidecars/"), _size(storage, name)) for name in names[1:]]
    if sorted(sidecars) != sorted(sizes):
        raise EvidenceError(names[0], f"the sidecars {sizes}", f"{sidecars}")
    return sums


def _size(storage: Storage, name: str) -> int:
    stored = storage.stat(name)
    return -1 if stored is None else stored.bytes


def _stored(storage: Storage, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every action of a Parquet file. A row has one."""
    try:
        with storage.open(name) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(_BATCH):
                for row in batch.to_pylist(maps_as_pydicts="strict"):
                    ((kind, body),) = ((kind, body) for kind, body in row.items() if body is not None)
                    yield kind, body
    except NOT_A_CHECKPOINT as failure:
        raise EvidenceError(name, "a checkpoint in Parquet, an action in each row", reason_of(failure)) from failure


def _checked_add(body: dict[str, Any], kept: StatsKept, *, subject: str) -> dict[str, Any]:
    """The add as the log has it. Statistics in columns have to say what the text says, if there is one."""
    columns, values = body.pop("stats_parsed", None), body.pop("partitionValues_parsed", None)
    if kept.as_struct and kept.schema.partition_columns:
        fault = partition_fault(kept.schema, body["partitionValues"], values)
        if fault is not None:
            raise EvidenceError(f"{subject}: {body['path']}", *fault)
    plain = _plain(body)
    if not kept.as_struct:
        return plain
    found = stats_of_columns(kept.schema, columns)
    if not kept.as_json:
        return plain | {"stats": found}
    wanted = stats_of_text(kept.schema, plain.get("stats"))
    if wanted != found:
        raise EvidenceError(f"{subject}: {body['path']}", f"statistics {wanted}", f"{found} in columns")
    return plain


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body without absent fields, and without what a checkpoint states of no file."""
    return {
        name: _without_nulls(name, value) for name, value in body.items() if value is not None and name != "dataChange"
    }


def _without_nulls(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping) or name in _MAPS:
        return value
    return {key: _without_nulls(key, each) for key, each in value.items() if each is not None}


@dataclass
class _Newest:
    """Actions from the newest commit back: the first one of a key that comes by is the one in force."""

    expiration: Expiration
    kept: StatsKept | None = None
    reduced: bool = False
    sums: ActionSums = field(default_factory=ActionSums)
    known: set[tuple[str, ...]] = field(default_factory=set)

    def commit(self, actions: Iterable[Action]) -> None:
        # No key occurs twice in one commit, but for a file that is removed with one vector and added with another.
        for kind, body in actions:
            self.see(kind, body)

    def beneath(self, storage: Storage, checkpoint: Checkpoint) -> None:
        for item in checkpoint_actions(storage, checkpoint):
            if isinstance(item, AddColumns):
                for body in item.bodies(np.arange(len(item))):
                    self.see("add", body)
            else:
                self.see(*item)
        for kind, body in checkpoint_tombstones(storage, checkpoint):
            self.see(kind, body)

    def see(self, kind: str, body: Raw) -> None:
        key = _key(kind, body)
        if key is None or key in self.known:
            return
        self.known.add(key)
        if self._is_held(kind, body):
            self.sums.add(kind, self._as_held(kind, body))

    def _is_held(self, kind: str, body: Raw) -> bool:
        """Whether a checkpoint holds the action in force: not one that has expired or ends a domain."""
        if self.reduced and kind in ("remove", "txn"):
            return False
        match kind:
            case "remove":
                return self.expiration.keeps_tombstone(body)
            case "txn":
                return self.expiration.keeps_transaction(body)
            case "domainMetadata":
                return body.get("removed") is not True
            case _:
                return True

    def _as_held(self, kind: str, body: Raw) -> dict[str, Any]:
        if self.reduced:
            return {name: body.get(name) for name in _REDUCED[kind]} | {"vector": vector_id(body)}
        match kind:
            case "add":
                return self._add(body)
            case "remove":
                return _plain({name: value for name, value in body.items() if name not in ("stats", "tags")})
            case "domainMetadata":
                return _plain({"removed": False, **body})
            case _:
                return _plain(body)

    def _add(self, body: Raw) -> dict[str, Any]:
        plain = _plain(body)
        if self.kept is None or self.kept.as_json:
            return plain
        text = plain.pop("stats", None)
        return plain | {"stats": stats_of_text(self.kept.schema, text)} if self.kept.as_struct else plain


_REDUCED: Final[Mapping[str, tuple[str, ...]]] = {
    "add": ("path", "size", "baseRowId", "defaultRowCommitVersion"),
    "remove": (),
    "txn": ("appId", "version"),
    "domainMetadata": ("domain", "configuration"),
    "protocol": ("minReaderVersion", "minWriterVersion"),
    "metaData": ("id", "schemaString", "partitionColumns"),
}
"""What every writer's checkpoint has to keep of an action."""


def _key(kind: str, body: Raw) -> tuple[str, ...] | None:
    match kind:
        case "add" | "remove":
            return "file", str(body["path"]), str(vector_id(body))
        case "txn":
            return kind, str(body["appId"])
        case "domainMetadata":
            return kind, str(body["domain"])
        case "protocol" | "metaData":
            return (kind,)
        case _:
            return None
