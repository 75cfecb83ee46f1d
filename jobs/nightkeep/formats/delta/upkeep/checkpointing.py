"""A version -> its checkpoint, if one is due: written, compared with the log, made visible, and then named by the hint.

Invariant before and after each step: readers find the newest version from the listing of the log. Steps:

1. `stage_checkpoint` writes all files under names that no reader looks for.
2. `require_same_actions` decodes their bytes and reconciles the log by another algorithm; both have the same actions.
3. `publish_checkpoint` creates the visible name, if no other writer has it and the version's commit is still the same.
4. `move_hint` lets `_last_checkpoint` name it, unless that names a newer one.

A crash leaves after 1 staged files, which a sweep removes, and after 3 a checkpoint that readers find all the same.

A log may lack what no other metadata would contradict: a commit that was cut at the end of a line is still valid. A
checkpoint of such a log would look complete, so its footer keeps the doubt (`evidence.DOUBT`), and a sweep reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.formats.delta.commit.checkpoint import (
    SIDECAR_ACTIONS,
    StagedCheckpoint,
    discard_checkpoint,
    hint_of,
    move_hint,
    publish_checkpoint,
    stage_checkpoint,
)
from nightkeep.formats.delta.commit.checkpoint_columns import CheckpointSchema
from nightkeep.formats.delta.gate.checkpoint_audit import StatsKept, log_sums, staged_sums
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.formats.delta.metadata.checkpoint_state import CheckpointState, Expiration, read_checkpoint_state
from nightkeep.formats.delta.metadata.clustering import known_columns
from nightkeep.formats.delta.metadata.features import refuse_features, supported
from nightkeep.formats.delta.metadata.head import LogHead
from nightkeep.formats.delta.metadata.log_segment import Segment, segment
from nightkeep.formats.delta.metadata.schema import parse_schema
from nightkeep.formats.delta.retention.evidence import DOUBT
from nightkeep.formats.delta.retention.horizon import property_text, tombstone_retention_ms, transaction_retention_ms
from nightkeep.formats.delta.retention.referenced_files import doubts
from nightkeep.model import Address, Run
from nightkeep.storage import Storage

INTERVAL: Final = "delta.checkpointInterval"
_DEFAULT_INTERVAL: Final = 10


@dataclass(frozen=True, slots=True)
class WrittenCheckpoint:
    """A checkpoint that is visible now."""

    version: int
    actions: int
    bytes: int
    sidecars: int


def interval(metadata: Raw) -> int:
    """How many commits may follow a checkpoint. Raises CorruptMetadata unless it is a number above 0."""
    text = property_text(metadata, INTERVAL)
    if text is None:
        return _DEFAULT_INTERVAL
    if not text.strip().isascii() or not text.strip().isdigit() or int(text) == 0:
        raise CorruptMetadata(INTERVAL, "a number of commits above 0", repr(text))
    return int(text)


def is_due(log_files: Segment, metadata: Raw) -> bool:
    """Whether the log since its last checkpoint has as many commits as the table's interval."""
    return len(log_files.commits) >= interval(metadata)


def write_checkpoint(
    table: Address, storage: Storage, newest: LogHead, run: Run, *, sidecar_actions: int = SIDECAR_ACTIONS
) -> WrittenCheckpoint | None:
    """The checkpoint of the head's version. None if there is one, or another writer was first.

    Raises RefusedTable for a table that we may not write, or that a checkpoint cannot hold; EvidenceError for a log
    that contradicts itself or that the staged bytes do not agree with; UnknownOutcome, OSError.
    """
    newest.refuse_changes(table.name)
    log_files = segment(storage, newest.version)
    if not log_files.commits and log_files.checkpoint is not None:
        return None
    marks = _marks(storage, newest.version, run)
    read = read_checkpoint_state(storage, log_files, expiration(newest.metadata, run.now_ms))
    state = read.state
    # The head has what it read; the domains it does not read may make a feature count.
    refuse_features(table.name, state.protocol, state.metadata, domains=state.domains, reads_values=False)
    schema = parse_schema(state.metadata, state.protocol, table=table.name)
    schema = replace(schema, clustering=known_columns(state.protocol, state.domains))
    columns = CheckpointSchema.of(table.name, schema)
    v2 = "v2Checkpoint" in supported(state.protocol) and property_text(state.metadata, _POLICY) == "v2"
    staged = stage_checkpoint(storage, columns, read, run, v2=v2, marks=marks, sidecar_actions=sidecar_actions)
    try:
        require_same_actions(storage, log_files, columns, read, staged)
    except Exception:
        discard_checkpoint(storage, staged)
        raise
    if not publish_checkpoint(storage, staged):
        return None
    move_hint(storage, hint_of(staged), run)
    return WrittenCheckpoint(staged.version, staged.actions, staged.bytes, len(staged.sidecars))


def require_same_actions(
    storage: Storage, log_files: Segment, columns: CheckpointSchema, read: CheckpointState, staged: StagedCheckpoint
) -> None:
    """Raises EvidenceError unless the staged bytes hold the actions of the log, and no other."""
    kept = StatsKept(columns.schema, columns.as_json, columns.as_struct)
    wanted = log_sums(storage, log_files, read.expiration, kept)
    found = staged_sums(storage, [part.name for part in staged.parts], kept)
    wanted.require(found, subject=f"{staged.staged.name}, a checkpoint of version {staged.version}")
    counted = found.sums.get("add", (0, 0))[0]
    if counted != staged.adds:
        raise EvidenceError(staged.staged.name, f"{staged.adds} files, as the hint will state", str(counted))


def expiration(metadata: Raw, now_ms: int) -> Expiration:
    """What has expired by the table's own retention."""
    kept_ms = transaction_retention_ms(metadata)
    return Expiration(now_ms - tombstone_retention_ms(metadata), None if kept_ms is None else now_ms - kept_ms)


def _marks(storage: Storage, version: int, run: Run) -> dict[str, str]:
    """The footer's text about what the log leaves in doubt. Raises EvidenceError for a log that contradicts itself."""
    found = doubts(storage, version, now_ms=run.now_ms)
    more = f"; {len(found) - 1} more like it" if len(found) > 1 else ""
    return {DOUBT: f"{found[0]}{more}"} if found else {}


_POLICY: Final = "delta.checkpointPolicy"
