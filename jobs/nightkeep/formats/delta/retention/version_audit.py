"""Replay of a version -> reasons to doubt it: compared with the checkpoint's hint, checksums and commitInfo."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from nightkeep.formats.delta.metadata.actions import Raw, long_value
from nightkeep.formats.delta.metadata.log_segment import Segment
from nightkeep.formats.delta.metadata.replay import FileKey
from nightkeep.formats.delta.retention.evidence import (
    Commit,
    Sum,
    adds_of_checkpoint,
    checkpoint_sum,
    doubt_of_checkpoint,
    newest_checksum,
    require_checksum,
    unproven_checkpoint,
)
from nightkeep.formats.delta.retention.log_copies import commits_before, content, require_own_state
from nightkeep.protocol.table_files import Unproven
from nightkeep.storage import Storage

_SKEW_MS: Final = 60_000
"""How far the clocks of two writers may differ."""


@dataclass
class Proof:
    """Evidence about a segment. Its newest checksum proves all versions up to its own, but no later commit.

    Without a checksum, the checkpoint must match its hint. `unproven` collects what has no second statement.
    """

    storage: Storage
    checkpoint: Sequence[str]
    checksum: tuple[int, Raw] | None
    unproven: list[Unproven] = field(default_factory=list)
    contents: list[tuple[str, str]] = field(default_factory=list)
    table_id: str | None = None
    time_ms: int | None = None
    removers: list[Commit] = field(default_factory=list)

    @classmethod
    def of(cls, storage: Storage, segment: Segment, names: Sequence[str]) -> Proof:
        start = () if segment.checkpoint is None else (segment.checkpoint.version,)
        proof = cls(storage, names, newest_checksum(storage, (*start, *(version for version, _ in segment.commits))))
        if segment.checkpoint is None:
            return proof
        proof._begin(segment)
        if proof.checksum is None:
            stated = adds_of_checkpoint(storage, segment.checkpoint.version)
            unproven = unproven_checkpoint(names, proof.checkpoint_files, stated)
            doubts = (unproven, *(doubt_of_checkpoint(storage, name) for name in segment.checkpoint.names))
            proof.unproven += [doubt for doubt in doubts if doubt is not None]
            require_own_state(storage, segment.checkpoint)
        elif proof.checksum[0] == segment.checkpoint.version:
            proof._compare(None, (), frozenset())
        return proof

    @cached_property
    def checkpoint_files(self) -> int:
        """The number of files in the checkpoint; 0 without a checkpoint."""
        return checkpoint_sum(self.storage, self.checkpoint, frozenset()).files

    def reached(self, commit: Commit, added: Iterable[Raw], gone: Collection[FileKey]) -> None:
        """Compare the state after `commit`: the checkpoint's files without `gone`, and the files in `added`."""
        if commit.transaction is not None:
            self.contents.append((commit.name, f"transaction {commit.transaction}"))
        if self._is_after_checksum(commit):
            self.contents.append(content(self.storage, commit.name))
        doubts = [commit.unproven(), self._of_another_table(commit), self._of_another_time(commit)]
        unproven = next((doubt for doubt in doubts if doubt is not None), None)
        if commit.older and self._is_after_checksum(commit):
            self.removers.append(commit)
        if self.checksum is not None and self.checksum[0] == commit.version:
            self._compare(commit, added, frozenset(gone))
        elif unproven is not None and self._is_after_checksum(commit):
            self.unproven.append(unproven)

    def _is_after_checksum(self, commit: Commit) -> bool:
        return self.checksum is None or self.checksum[0] < commit.version

    def _begin(self, segment: Segment) -> None:
        """Read what was committed just before the checkpoint, to compare the commits after it with that."""
        if self.checksum is not None and self.checksum[0] == segment.version:
            return
        earlier = tuple(commits_before(self.storage, segment, within_ms=2 * _SKEW_MS))
        self.contents += [content(self.storage, commit.name) for commit in earlier]
        self.time_ms = earlier[0].time_ms if earlier else None

    def require_removed(self) -> None:
        """Call after the last commit. Files that were removed but never added must be in the checkpoint."""
        if self._missing({key for commit in self.removers for key in commit.older}):
            strays = [(commit, self._missing(commit.older)) for commit in self.removers]
            self.unproven += [commit.removes_strays(count) for commit, count in strays if count]

    def _missing(self, keys: Collection[FileKey]) -> int:
        """The number of these files that the checkpoint does not have."""
        if not keys:
            return 0
        rest = checkpoint_sum(self.storage, self.checkpoint, frozenset(keys))
        return len(keys) - (self.checkpoint_files - rest.files)

    def _of_another_table(self, commit: Commit) -> Unproven | None:
        previous, self.table_id = self.table_id, commit.table_id or self.table_id
        if previous is None or self.table_id == previous:
            return None
        return Unproven(commit.name, f"it is of table {self.table_id}, the versions before are of {previous}")

    def _of_another_time(self, commit: Commit) -> Unproven | None:
        before, self.time_ms = self.time_ms, commit.time_ms
        if before is None or self.time_ms is None or self.time_ms >= before - _SKEW_MS:
            return None
        # A commit of another table in this place may show no other contradiction.
        return Unproven(commit.name, f"it was made at {self.time_ms} ms, the version before it at {before} ms")

    def _compare(self, commit: Commit | None, added: Iterable[Raw], gone: frozenset[FileKey]) -> None:
        assert self.checksum is not None
        version, stated = self.checksum
        sizes = [long_value(body, "size", subject=str(body.get("path"))) for body in added]
        counted = Sum(len(sizes), sum(sizes)) + checkpoint_sum(self.storage, self.checkpoint, gone)
        require_checksum(stated, counted, commit, version=version)
