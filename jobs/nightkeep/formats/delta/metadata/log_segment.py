"""Listing of _delta_log -> the files that make one version: a complete checkpoint and every commit after it.

Only the listing counts. `_last_checkpoint` may be old, new or wrong, and the listing has all that it states. Compacted
logs and checksums only repeat what commits state.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nightkeep.errors import MissingFile
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.storage import ListedFile, Storage

_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKSUM = re.compile(r"([0-9]{20})\.crc")
_SINGLE = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
_UNIQUE = re.compile(r"([0-9]{20})\.checkpoint\.[0-9A-Za-z-]{36}\.(?:json|parquet)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: one file, or every part in order. `unique`: named with a UUID, as in the V2 spec."""

    version: int
    names: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """The files of one version. `commits` follow the checkpoint, or start at 0.

    `own` is the version's own commit, None where the log no longer has it.
    """

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[tuple[int, str], ...]
    own: str | None


def segment(storage: Storage, version: int | None = None) -> Segment:
    """The segment of the newest version, or of `version`. Raises MissingFile where the log does not hold it."""
    listed = storage.list(LOG)
    commits, checkpoints = _commits(listed), complete_checkpoints(listed)
    versions = sorted(commits.keys() | {candidate.version for candidate in checkpoints})
    subject = f"{storage.root}/{LOG}"
    if not versions:
        raise MissingFile(subject, "commits or checkpoints of a Delta table", "none")
    target = versions[-1] if version is None else version
    if not versions[0] <= target <= versions[-1]:
        raise MissingFile(subject, f"version {target}", f"versions {versions[0]} to {versions[-1]}")
    checkpoint = max((c for c in checkpoints if c.version <= target), key=_preference, default=None)
    start = checkpoint.version + 1 if checkpoint else 0
    chosen = [number for number in sorted(commits) if start <= number <= target]
    _require_all(subject, chosen, start=start, end=target)
    return Segment(target, checkpoint, tuple((n, commits[n]) for n in chosen), commits.get(target))


def segment_without(storage: Storage, left_out: Checkpoint) -> Segment | None:
    """The segment of a checkpoint's version as older files of the log give it. None where they are not all there."""
    listed = storage.list(LOG)
    commits = _commits(listed)
    older = [found for found in complete_checkpoints(listed) if found.version < left_out.version]
    checkpoint = max(older, key=_preference, default=None)
    start = checkpoint.version + 1 if checkpoint else 0
    chosen = [number for number in sorted(commits) if start <= number <= left_out.version]
    if len(chosen) != left_out.version - start + 1:
        return None
    return Segment(left_out.version, checkpoint, tuple((n, commits[n]) for n in chosen), commits.get(left_out.version))


@dataclass(frozen=True, slots=True)
class Listing:
    """The log at the time of listing: `commits` ascending, the range of versions that it can rebuild, and the newest
    version that a complete checkpoint has, None without one. `checksums`: versions with a checksum file."""

    commits: tuple[tuple[int, ListedFile], ...]
    oldest: int
    newest: int
    checkpoint: int | None = None
    checksums: frozenset[int] = frozenset()


def listing(storage: Storage) -> Listing:
    """Raises MissingFile if the log can rebuild no version."""
    listed = storage.list(LOG)
    versions = {name: version for version, name in _commits(listed).items()}
    commits = sorted(
        ((versions[stored.name], stored) for stored in listed if stored.name in versions), key=lambda commit: commit[0]
    )
    checkpoints = [checkpoint.version for checkpoint in complete_checkpoints(listed)]
    starts = checkpoints + [0] * (0 in versions.values())
    if not starts:
        expected = "the first commit of a Delta table, or a complete checkpoint"
        raise MissingFile(f"{storage.root}/{LOG}", expected, f"{len(commits)} later commits")
    newest_checkpoint = max(checkpoints, default=None)
    checksums = frozenset(int(match[1]) for stored in listed if (match := _CHECKSUM.fullmatch(_base(stored))))
    return Listing(tuple(commits), min(starts), max([*starts, *versions.values()]), newest_checkpoint, checksums)


def newest(storage: Storage) -> int:
    """The newest version in the listing. Raises MissingFile where there is none."""
    listed = storage.list(LOG)
    versions = _commits(listed).keys() | {checkpoint.version for checkpoint in complete_checkpoints(listed)}
    if not versions:
        raise MissingFile(f"{storage.root}/{LOG}", "commits or checkpoints of a Delta table", "none")
    return max(versions)


def commits_newest_first(storage: Storage) -> Sequence[tuple[int, str]]:
    """Version and name of every commit that the log still has."""
    return sorted(_commits(storage.list(LOG)).items(), reverse=True)


def _require_all(subject: str, chosen: Sequence[int], *, start: int, end: int) -> None:
    if len(chosen) == end - start + 1:
        return
    missing = next((start + i for i, number in enumerate(chosen) if number != start + i), start + len(chosen))
    found = f"commits {chosen[0]} to {chosen[-1]} with a gap" if chosen else "no commit"
    expected = f"commit {missing:020d}.json, or a complete checkpoint of version {missing} or newer"
    raise MissingFile(subject, f"{expected}, to read version {end}", f"{found} from version {start} on")


def _commits(listed: Iterable[ListedFile]) -> Mapping[int, str]:
    matches = ((_COMMIT.fullmatch(_base(stored)), stored.name) for stored in listed)
    return {int(match[1]): name for match, name in matches if match}


def complete_checkpoints(listed: Iterable[ListedFile]) -> list[Checkpoint]:
    """The complete checkpoints. An empty file is unfinished: a checkpoint holds at least a protocol."""
    checkpoints: list[Checkpoint] = []
    parts: defaultdict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for stored in listed:
        base = _base(stored)
        if stored.bytes == 0 or ".checkpoint." not in base:
            continue
        if match := _SINGLE.fullmatch(base):
            checkpoints.append(Checkpoint(int(match[1]), (stored.name,)))
        elif match := _UNIQUE.fullmatch(base):
            checkpoints.append(Checkpoint(int(match[1]), (stored.name,), unique=True))
        elif match := _PART.fullmatch(base):
            parts[int(match[1]), int(match[3])][int(match[2])] = stored.name
    for (version, count), names in parts.items():
        if len(names) == count and names.keys() == set(range(1, count + 1)):
            checkpoints.append(Checkpoint(version, tuple(names[i] for i in range(1, count + 1))))
    return checkpoints


def _preference(checkpoint: Checkpoint) -> tuple[int, bool, tuple[str, ...]]:
    """Sort key: the newest checkpoint wins, then one in a single file, because racing writers may mix parts."""
    return (checkpoint.version, len(checkpoint.names) == 1, checkpoint.names)


def _base(stored: ListedFile) -> str:
    return stored.name.rpartition("/")[2]
