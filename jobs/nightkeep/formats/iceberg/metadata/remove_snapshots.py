"""Table metadata -> the metadata of a version without some snapshots, branches and tags.

Follows TableMetadata.Builder of Iceberg Java. All other fields are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, head, integer, objects, past_versions, refs


@dataclass(frozen=True, slots=True)
class RemovedSnapshots:
    """What to remove: ids of snapshots, and branches and tags, each with the id of the snapshot it points to."""

    snapshots: frozenset[int]
    refs: frozenset[tuple[str, int]]
    now_ms: int


def without(raw: Raw, gone: RemovedSnapshots, *, location: str, subject: str) -> Raw:
    """The metadata that follows `raw`, which is at `location`.

    Raises CorruptMetadata if a branch or tag that stays points to a removed snapshot: readers refuse such a version.
    """
    names = {name for name, _ in gone.refs}
    left = {name: ref for name, ref in refs(raw, subject=subject).items() if name not in names}
    before = head(raw, subject=subject)
    pointed = {integer(ref, "snapshot-id", subject=subject) for ref in left.values()} | {before.current}
    if lost := pointed & gone.snapshots:
        raise CorruptMetadata(f"{subject}: snapshots to remove", "none of a branch or tag", str(sorted(map(str, lost))))
    result = {
        **raw,
        **({"refs": left} if raw.get("refs") is not None else {}),
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
    """The snapshot log after the last removed snapshot. A gap would suggest that another snapshot was current then."""
    log: list[Raw] = []
    for entry in objects(raw, "snapshot-log", subject=subject):
        if integer(entry, "snapshot-id", subject=subject) in gone:
            log.clear()
        else:
            log.append(entry)
    return log
