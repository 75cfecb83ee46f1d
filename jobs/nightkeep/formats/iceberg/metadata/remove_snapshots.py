"""Table metadata -> the metadata of the version without some snapshots, branches and tags.

As TableMetadata.Builder of Iceberg's Java does it; whatever else a version says is kept as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, head, integer, objects, past_versions, refs


@dataclass(frozen=True, slots=True)
class RemovedSnapshots:
    """What a version no longer has: snapshots by id, and branches and tags, each with the snapshot it points to."""

    snapshots: frozenset[int]
    refs: frozenset[tuple[str, int]]
    now_ms: int


def without(raw: Raw, gone: RemovedSnapshots, *, location: str, subject: str) -> Raw:
    """The metadata that `raw`, found at `location`, becomes. Raises CorruptMetadata where a branch or tag that stays
    points to a snapshot that goes: readers would refuse such a version."""
    names = {name for name, _ in gone.refs}
    left = {name: ref for name, ref in refs(raw, subject=subject).items() if name not in names}
    before = head(raw, subject=subject)
    pointed = {integer(ref, "snapshot-id", subject=subject) for ref in left.values()} | {before.current}
    if lost := pointed & gone.snapshots:
        raise CorruptMetadata(f"{subject}: snapshots to remove", "none of a branch or tag", str(sorted(map(str, lost))))
    result = {
        **raw,
        "refs": left,
        "snapshots": _others(raw, "snapshots", gone.snapshots, subject=subject),
        "snapshot-log": _history(raw, gone.snapshots, subject=subject),
        "last-updated-ms": max(before.updated_ms, gone.now_ms),
        "metadata-log": past_versions(raw, before, location, subject=subject),
    }
    for name in ("statistics", "partition-statistics"):
        if raw.get(name) is not None:
            result[name] = _others(raw, name, gone.snapshots, subject=subject)
    return result


def _others(raw: Raw, name: str, gone: Collection[int], *, subject: str) -> Sequence[Raw]:
    return [
        each
        for each in objects(raw, name, subject=subject)
        if integer(each, "snapshot-id", subject=subject) not in gone
    ]


def _history(raw: Raw, gone: Collection[int], *, subject: str) -> Sequence[Raw]:
    """What is before a snapshot that went goes as well: another would seem to have been current in its time."""
    log: list[Raw] = []
    for entry in objects(raw, "snapshot-log", subject=subject):
        if integer(entry, "snapshot-id", subject=subject) in gone:
            log.clear()
        else:
            log.append(entry)
    return log
