"""Files of a log -> what shows that one was copied over another. Writers without checksums leave no other evidence.

A copy of a much older commit shows by its time (version_audit), and one of a near commit by its content.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from typing import Final

from nightkeep.errors import EvidenceError
from nightkeep.formats.delta.metadata.log_segment import Checkpoint, Segment, commits_newest_first, complete_checkpoints
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.retention.action_files import commit_actions
from nightkeep.formats.delta.retention.evidence import Commit
from nightkeep.storage import Storage, same_bytes

_BLOCK: Final = 1 << 20
_CHANGES: Final = ("add", "remove")


def commits_before(storage: Storage, segment: Segment, *, within_ms: int) -> Iterator[Commit]:
    """The commit of a segment's checkpoint and those made up to `within_ms` before it, newest first, and one more.

    Ends at a commit that states no time.
    """
    if segment.checkpoint is None or not segment.commits:
        return
    latest_ms: int | None = None
    for version, name in commits_newest_first(storage):
        if version > segment.checkpoint.version:
            continue
        commit = Commit(version, name)
        deque(commit.watched(commit_actions(storage, name)), maxlen=0)
        yield commit
        latest_ms = commit.time_ms if latest_ms is None else latest_ms
        if latest_ms is None or commit.time_ms is None or commit.time_ms < latest_ms - within_ms:
            return


def content(storage: Storage, name: str) -> tuple[str, str]:
    """The name of a file of the log, and a digest of its bytes."""
    digest = hashlib.sha256()
    with storage.open(name) as source:
        while block := source.read(_BLOCK):
            digest.update(block)
    return name, digest.hexdigest()[:32]


def require_own_state(storage: Storage, checkpoint: Checkpoint) -> None:
    """Raises EvidenceError for a checkpoint with the bytes of another version's, if files changed between the two.

    Only files of one size are read. A checkpoint of several files is not compared: some of them may stay the same.
    """
    listed = storage.list(LOG)
    sizes = {stored.name: stored.bytes for stored in listed}
    (name, *more) = checkpoint.names
    for other in complete_checkpoints(listed) if not more else ():
        (twin, *rest) = other.names
        alike = not rest and other.version != checkpoint.version and sizes[twin] == sizes.get(name)
        if alike and _is_copy(storage, name, twin) and _changed_between(storage, checkpoint.version, other.version):
            raise EvidenceError(name, "content of its own", f"that of {twin}")


def _is_copy(storage: Storage, one: str, other: str) -> bool:
    with storage.open(one) as ours, storage.open(other) as theirs:
        return same_bytes(ours, theirs)


def _changed_between(storage: Storage, one: int, other: int) -> bool:
    """Whether a commit after the older of two versions, up to the newer, changes files or is not in the log."""
    commits = dict(commits_newest_first(storage))
    names = [commits.get(version) for version in range(min(one, other) + 1, max(one, other) + 1)]
    return any(name is None or any(kind in _CHANGES for kind, _ in commit_actions(storage, name)) for name in names)
