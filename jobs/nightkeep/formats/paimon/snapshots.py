"""snapshot/snapshot-<n> -> its JSON, checked. The listing is the truth; LATEST and EARLIEST are hints that may lag."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.storage import Storage

MAX_SNAPSHOT_VERSION = 3


def snapshot_ids(storage: Storage) -> tuple[int, ...]:
    """Ids of the snapshots that exist, ascending."""
    names = (stored.name.rpartition("/")[2] for stored in storage.list("snapshot"))
    return tuple(sorted(int(n[9:]) for n in names if n.startswith("snapshot-") and n[9:].isdigit()))


def latest_id(storage: Storage) -> int:
    """The id of the newest snapshot. Raises MissingFile where there is none, or none as new as LATEST says.

    The hint is written after its snapshot and read before the listing: it may lag, but cannot lead.
    """
    hint = storage.read("snapshot/LATEST") if storage.exists("snapshot/LATEST") else b""
    found = max(snapshot_ids(storage), default=0)
    told = int(hint) if hint.isdigit() else 1
    if found < told:
        raise MissingFile(f"{storage.root}/snapshot", f"snapshot-{told} or a newer one", f"up to snapshot-{found}")
    return found


def newest_first(storage: Storage) -> Iterator[Mapping[str, object]]:
    """The JSON of every snapshot, newest first; one that expires between listing and reading is left out."""
    for version in reversed(snapshot_ids(storage)):
        name = f"snapshot/snapshot-{version}"
        try:
            yield parse_snapshot(storage.read(name), subject=name)
        except MissingFile:
            continue


def parse_snapshot(data: bytes, *, subject: str) -> Mapping[str, object]:
    """Snapshot JSON (A/Snapshot.java); unknown fields are kept.

    Raises CorruptMetadata, and RefusedTable for a version of the format that we do not know.
    """
    try:
        raw: Mapping[str, object] = json.loads(data)
        version = raw.get("version", 1)
    except (ValueError, AttributeError, RecursionError) as failure:
        raise CorruptMetadata(subject, "the JSON object of a snapshot", str(failure)) from failure
    if version not in range(1, MAX_SNAPSHOT_VERSION + 1):
        advice = f"we read versions up to {MAX_SNAPSHOT_VERSION}"
        raise RefusedTable(subject, f"snapshot version {version} is unknown", advice)
    for name, kind in _SNAPSHOT_FIELDS.items():
        if type(raw.get(name)) is not kind:
            raise CorruptMetadata(subject, f"{name}, of type {kind.__name__}", repr(raw.get(name)))
    return raw


_SNAPSHOT_FIELDS: Mapping[str, type] = {
    "id": int, "schemaId": int, "baseManifestList": str, "deltaManifestList": str, "commitUser": str,
    "commitIdentifier": int, "commitKind": str, "timeMillis": int, "totalRecordCount": int,
}  # fmt: skip
