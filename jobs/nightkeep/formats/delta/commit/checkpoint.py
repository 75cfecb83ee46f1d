"""The state of a version -> its checkpoint: staged under a name that no reader looks for, then visible in one step.

PROTOCOL.md, "Checkpoints", "V2 Spec", "Last Checkpoint File". A checkpoint is only ever created, never replaced: where
another writer was first, that writer's stays. Before it is visible, the caller compares its staged bytes with the log.

What a crash leaves, and who mends it: a staged file or sidecars that no checkpoint names, which a sweep and a cleanup
of the log remove; or a checkpoint that `_last_checkpoint` does not name yet, which readers find in the listing.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.parquet_settings import CODECS, SETTINGS
from nightkeep.errors import MissingFile, RefusedTable, UnknownOutcome
from nightkeep.formats.delta.commit.checkpoint_columns import CheckpointSchema
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.formats.delta.metadata.checkpoint_state import CheckpointState
from nightkeep.formats.delta.metadata.log_segment import Checkpoint
from nightkeep.formats.delta.metadata.log_state import digest
from nightkeep.formats.delta.metadata.naming import (
    LAST_CHECKPOINT,
    checkpoint_name,
    sidecar_name,
    staged_checkpoint_name,
)
from nightkeep.model import Run
from nightkeep.model.arrow_types import Array
from nightkeep.storage import Storage, delete_each
from nightkeep.storage.exclusive import require_exclusive_create

SIDECAR_ACTIONS: Final = 50_000
"""Files in a sidecar, as delta-spark's DELTA_CHECKPOINT_PART_SIZE. A checkpoint of fewer files has no sidecar."""
_HEAD: Final = ("protocol", "metaData", "txn", "domainMetadata")
_FILES: Final = ("add", "remove")
Files = tuple[str, Array]
"""A kind of action, and some of that kind."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a checkpoint: its name, bytes and actions."""

    name: str
    bytes: int
    actions: int


@dataclass(frozen=True, slots=True)
class StagedCheckpoint:
    """A checkpoint that no reader sees yet: the file at `staged`, to be named `name`, and its sidecars."""

    version: int
    name: str
    staged: Part
    sidecars: tuple[Part, ...]
    adds: int
    commit_digest: str

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.staged, *self.sidecars

    @property
    def actions(self) -> int:
        return sum(part.actions for part in self.parts)

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def as_staged(self) -> Checkpoint:
        """The checkpoint as a reader would find it under its staged name."""
        return Checkpoint(self.version, (self.staged.name,), unique=self.is_v2)

    @property
    def is_v2(self) -> bool:
        return self.name != checkpoint_name(self.version)


def stage_checkpoint(
    storage: Storage,
    schema: CheckpointSchema,
    read: CheckpointState,
    run: Run,
    *,
    v2: bool,
    marks: Mapping[str, str],
    sidecar_actions: int = SIDECAR_ACTIONS,
) -> StagedCheckpoint:
    """Write all files of the checkpoint. `marks` are texts in the file's footer.

    Raises RefusedTable for a state that a checkpoint cannot hold, and for a store without exclusive creation.
    """
    require_exclusive_create(storage)
    unique = uuid.uuid4()
    written: list[str] = []
    try:
        writing = _Writing(storage, schema, run, written, marks)
        return writing.checkpoint(read, unique, v2=v2, sidecar_actions=sidecar_actions)
    except Exception:
        delete_each(storage, written)
        raise


def publish_checkpoint(storage: Storage, staged: StagedCheckpoint) -> bool:
    """Make the checkpoint visible. False if another writer's has the name, or if its version is another one now.

    Raises UnknownOutcome if a write failed and the checkpoint may or may not be there.
    """
    data = storage.read(staged.staged.name)
    try:
        won = storage.put_if_absent(
            staged.name,
            data,
            temporary=f"{staged.staged.name}.tmp",
            may_go=lambda: digest(storage, staged.version) == staged.commit_digest,
        )
    except OSError as failure:
        if not _is_there(storage, staged.name, data):
            raise UnknownOutcome(staged.name, "an answer", str(failure)) from failure
        won = True
    # After a lost answer the store may get the request again, which then finds our own file.
    won = won or _is_there(storage, staged.name, data)
    if won:
        storage.delete(staged.staged.name)
    else:
        discard_checkpoint(storage, staged)
    return won


def discard_checkpoint(storage: Storage, staged: StagedCheckpoint) -> None:
    """Remove the files of a checkpoint that was not published."""
    delete_each(storage, [part.name for part in staged.parts])


def move_hint(storage: Storage, hint: Mapping[str, int], run: Run) -> bool:
    """Let `_last_checkpoint` name a checkpoint. False, and nothing changes, if it names this one or a newer one.

    Another writer may move it between the look and the write. It may then name the older one of two checkpoints, which
    the protocol allows: readers go on from there.
    """
    named = hinted_version(storage)
    if named is not None and named >= hint["version"]:
        return False
    temporary = f"{staged_checkpoint_name(run, uuid.uuid4())}.tmp"
    storage.replace(LAST_CHECKPOINT, hint_text(hint).encode(), temporary=temporary)
    return True


def hinted_version(storage: Storage) -> int | None:
    """The version that `_last_checkpoint` names. None if it is missing or is no such file: it is a hint."""
    try:
        found = json.loads(storage.read(LAST_CHECKPOINT))
    except (MissingFile, ValueError, RecursionError):
        return None
    version = found.get("version") if isinstance(found, dict) else None
    return version if type(version) is int else None


def hint_of(staged: StagedCheckpoint) -> Mapping[str, int]:
    return {
        "version": staged.version,
        "size": staged.actions,
        "sizeInBytes": staged.bytes,
        "numOfAddFiles": staged.adds,
    }


def hint_text(hint: Mapping[str, int]) -> str:
    """The JSON with its checksum (PROTOCOL.md, "JSON checksum"). Names of letters and numbers need no encoding."""
    canonical = ",".join(f"{name}={hint[key]}" for name, key in sorted((f'"{key}"', key) for key in hint))
    checksum = hashlib.md5(canonical.encode(), usedforsecurity=False).hexdigest()
    return json.dumps({**hint, "checksum": checksum}, separators=(",", ":"))


def _is_there(storage: Storage, name: str, data: bytes) -> bool:
    try:
        return storage.read(name) == data
    except MissingFile:
        return False


@dataclass(frozen=True, slots=True)
class _Writing:
    """One attempt at a checkpoint. `written` gets the names of its files before they are created."""

    storage: Storage
    schema: CheckpointSchema
    run: Run
    written: list[str]
    marks: Mapping[str, str]

    def checkpoint(
        self, read: CheckpointState, unique: uuid.UUID, *, v2: bool, sidecar_actions: int
    ) -> StagedCheckpoint:
        files = self.schema.files(
            read.state.stored, read.state.adds, chain(read.removed, read.older_tombstones(self.storage))
        )
        held, rest = _few(files, sidecar_actions) if v2 else ([], files)
        sidecars: tuple[Part, ...] = ()
        if v2 and rest is not None:
            sidecars = tuple(self._sidecars(chain(held, rest), sidecar_actions))
        head = self._head(read, sidecars, v2=v2)
        body = () if sidecars else chain(held, rest or ())
        # delta-spark asks for a column of adds also where all of them are in sidecars.
        kinds = (*_HEAD, *_FILES, *(("checkpointMetadata", "sidecar") if v2 else ()))
        staged = self._write(staged_checkpoint_name(self.run, unique), kinds, chain(head, body))
        name = checkpoint_name(read.version, unique if v2 else None)
        return StagedCheckpoint(read.version, name, staged, sidecars, read.adds, read.commit_digest)

    def _head(self, read: CheckpointState, sidecars: Sequence[Part], *, v2: bool) -> Iterator[Files]:
        yield "protocol", self.schema.bodies("protocol", [read.state.protocol])
        yield "metaData", self.schema.bodies("metaData", [read.state.metadata])
        if v2:
            yield "checkpointMetadata", self.schema.bodies("checkpointMetadata", [{"version": read.version}])
        domains = [{"removed": False, **body} for body in read.domains]
        named = [("txn", read.transactions), ("domainMetadata", domains), ("sidecar", self._entries(sidecars))]
        yield from ((kind, self.schema.bodies(kind, bodies)) for kind, bodies in named if bodies)

    def _entries(self, sidecars: Sequence[Part]) -> list[Raw]:
        return [
            {"path": part.name.rpartition("/")[2], "sizeInBytes": part.bytes, "modificationTime": self.run.now_ms}
            for part in sidecars
        ]

    def _sidecars(self, files: Iterable[Files], actions: int) -> Iterator[Part]:
        for some in _sized(files, actions):
            yield self._write(sidecar_name(uuid.uuid4()), _FILES, some)

    def _write(self, name: str, kinds: Sequence[str], batches: Iterable[Files]) -> Part:
        schema, count = self.schema.arrow(kinds), 0
        self.written.append(name)
        with self.storage.create(name) as sink, pq.ParquetWriter(sink, schema, **self._options()) as writer:
            for kind, column in batches:
                nulls = [pa.nulls(len(column), field.type) for field in schema]
                columns: list[Any] = [
                    column if field.name == kind else absent for field, absent in zip(schema, nulls, strict=True)
                ]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=max(len(column), 1))
                count += len(column)
            writer.add_key_value_metadata(dict(self.marks))
        stored = self.storage.stat(name)
        if stored is None:
            raise MissingFile(name, "the file just written", "no such file")
        return Part(name, stored.bytes, count)

    def _options(self) -> dict[str, Any]:
        codec = self.schema.schema.configuration.get("delta.parquet.compression.codec", "snappy").lower()
        if codec not in CODECS:
            raise RefusedTable(self.schema.table, f"compression {codec} is not handled", "set snappy or zstd")
        return {"compression": CODECS[codec], **SETTINGS}


def _few(files: Iterator[Files], limit: int) -> tuple[list[Files], Iterator[Files] | None]:
    """The first files, and the rest; None if these are all, and no more than the limit."""
    held: list[Files] = []
    count = 0
    for kind, column in files:
        held.append((kind, column))
        count += len(column)
        if count > limit:
            return held, files
    return held, None


def _sized(files: Iterable[Files], limit: int) -> Iterator[list[Files]]:
    """The files in lists of up to `limit` actions."""
    held: list[Files] = []
    room = limit
    for kind, column in files:
        start = 0
        while start < len(column):
            some = column.slice(start, room)
            held.append((kind, some))
            start, room = start + len(some), room - len(some)
            if not room:
                yield held
                held, room = [], limit
    if held:
        yield held
