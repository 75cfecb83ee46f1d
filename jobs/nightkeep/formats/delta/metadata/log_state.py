"""A segment of the log -> the state of its version, and the digest that identifies its commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nightkeep.errors import MissingFile
from nightkeep.formats.delta.metadata.actions import Action, parse_lines
from nightkeep.formats.delta.metadata.checkpoints import checkpoint_actions
from nightkeep.formats.delta.metadata.log_segment import Segment, commits_newest_first, segment
from nightkeep.formats.delta.metadata.naming import commit_name
from nightkeep.formats.delta.metadata.replay import LogState, replay
from nightkeep.model import digest_of
from nightkeep.storage import Storage


class ReadState(NamedTuple):
    """A state, and the digest of the commit that made it; empty if the log no longer has that commit."""

    state: LogState
    digest: str


def read_state(storage: Storage, log_files: Segment, *, staged: str | None = None) -> ReadState:
    """The state of the segment's version, or of the staged commit on top of it. Raises CorruptMetadata, MissingFile."""
    names = [name for _, name in log_files.commits] + ([staged] if staged else [])
    digests: dict[str, str] = {}

    def actions(name: str) -> Iterator[Action]:
        data = storage.read(name)
        digests[name] = digest_of(data)
        return parse_lines(data, subject=name)

    checkpoint = checkpoint_actions(storage, log_files.checkpoint) if log_files.checkpoint else ()
    own = actions(log_files.own) if log_files.own and not names else ()
    state = replay(checkpoint, ((name, actions(name)) for name in names), own)
    return ReadState(state, digests.get(staged or log_files.own or "", ""))


def digest(storage: Storage, version: int) -> str | None:
    """The digest of a version's commit. Empty if only a checkpoint has the version; None if the log does not have it.

    The bytes of a commit are unique, because it names files that no other commit names. While a version's digest stays
    the same, newer versions are still built on it.
    """
    try:
        return digest_of(storage.read(commit_name(version)))
    except MissingFile:
        return "" if _is_in_log(storage, version) else None


def _is_in_log(storage: Storage, version: int) -> bool:
    try:
        segment(storage, version)
    except MissingFile:
        return False
    return True


def commit_infos(storage: Storage) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Versions and their commitInfo, newest first. Skips commits without one, and commits deleted since the listing."""
    for version, name in commits_newest_first(storage):
        try:
            data = storage.read(name)
        except MissingFile:
            continue
        lines = b"\n".join(line for line in data.split(b"\n") if b'"commitInfo"' in line)
        yield from ((version, body) for kind, body in parse_lines(lines, subject=name) if kind == "commitInfo")
