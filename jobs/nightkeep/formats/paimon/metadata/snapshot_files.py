"""snapshot/snapshot-<n> -> its checked JSON. Only the listing counts; LATEST and EARLIEST are hints that may be old."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nightkeep.encodings.documents import parse_object
from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable, kind_of
from nightkeep.model import digest_of
from nightkeep.storage import Storage

MAX_SNAPSHOT_VERSION = 3


def snapshot_ids(storage: Storage) -> tuple[int, ...]:
    """Ids of the snapshots that exist, ascending."""
    names = (stored.name.rpartition("/")[2] for stored in storage.list("snapshot"))
    numbers = (numbered(name, "snapshot-") for name in names)
    return tuple(sorted(number for number in numbers if number is not None))


def latest_id(storage: Storage) -> int:
    """The id of the newest snapshot. Raises MissingFile if there is none, or none as new as LATEST.

    The hint is written after its snapshot and read before the listing, so it may be old but never too new.
    """
    hint = hinted(storage, "snapshot/LATEST") or 1
    newest = max(snapshot_ids(storage), default=0)
    if newest < hint:
        raise MissingFile(f"{storage.root}/snapshot", f"snapshot-{hint} or a newer one", f"up to snapshot-{newest}")
    return newest


def hinted(storage: Storage, name: str) -> int | None:
    """The number in a hint. None if there is no hint, or no number in it.

    Raises CorruptMetadata for a number that no snapshot can have.
    """
    hint = storage.read(name) if storage.exists(name) else b""
    if not hint.isdigit():
        return None
    number = _number(hint.decode())
    if number is None:
        raise CorruptMetadata(f"{storage.root}/{name}", "the number of a snapshot", f"{len(hint)} digits")
    return number


def numbered(name: str, prefix: str) -> int | None:
    """The number of a file called `<prefix><number>`, None for other names."""
    base = name.rpartition("/")[2]
    return _number(base.removeprefix(prefix)) if base.startswith(prefix) else None


def digest(storage: Storage, version: int) -> str | None:
    """The digest of a snapshot's JSON; None if there is no snapshot of this id.

    The names of its lists are unique. While an id has the same bytes, no rollback went below it, and newer snapshots
    are built on it.
    """
    try:
        return digest_of(storage.read(f"snapshot/snapshot-{version}"))
    except MissingFile:
        return None


def newest_first(storage: Storage) -> Iterator[Mapping[str, object]]:
    """The JSON of every snapshot, newest first. Skips snapshots that expire between listing and reading."""
    for version in reversed(snapshot_ids(storage)):
        name = f"snapshot/snapshot-{version}"
        try:
            yield parse_snapshot(storage.read(name), subject=name)
        except MissingFile:
            continue


def parse_snapshot(data: bytes, *, subject: str) -> Mapping[str, object]:
    """Snapshot JSON (A/Snapshot.java). Unknown fields are kept.

    Raises CorruptMetadata, and RefusedTable for an unknown version of the format.
    """
    raw: Mapping[str, object] = parse_object(data, subject=subject)
    version = raw.get("version", 1)
    if type(version) is not int or version not in range(1, MAX_SNAPSHOT_VERSION + 1):
        advice = f"we read versions up to {MAX_SNAPSHOT_VERSION}"
        shown = version if type(version) is int else kind_of(version)
        raise RefusedTable(subject, f"snapshot version {shown} is unknown", advice)
    present = {name: kind for name, kind in _OPTIONAL_FIELDS.items() if raw.get(name) is not None}
    for name, kind in {**_SNAPSHOT_FIELDS, **present}.items():
        value = raw.get(name)
        if type(value) is not kind:
            raise CorruptMetadata(subject, f"{name}, of type {kind.__name__}", kind_of(value))
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise CorruptMetadata(subject, f"{name}, of 64 bits", f"a number of {value.bit_length()} bits")
    return raw


def _number(digits: str) -> int | None:
    """The number as Java's Long.parseLong reads ASCII digits. None for other text: the file is not Paimon's."""
    fits = digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= _LONG_DIGITS
    return int(digits) if fits and int(digits) < 1 << 63 else None


_LONG_DIGITS = 19

_SNAPSHOT_FIELDS: Mapping[str, type] = {
    "id": int,
    "schemaId": int,
    "baseManifestList": str,
    "deltaManifestList": str,
    "commitUser": str,
    "commitIdentifier": int,
    "commitKind": str,
    "timeMillis": int,
    "totalRecordCount": int,
}
_OPTIONAL_FIELDS: Mapping[str, type] = {
    "baseManifestListSize": int,
    "deltaManifestListSize": int,
    "changelogManifestListSize": int,
    "changelogManifestList": str,
    "indexManifest": str,
    "statistics": str,
    "deltaRecordCount": int,
    "changelogRecordCount": int,
    "watermark": int,
    "nextRowId": int,
}
"""Fields that are null or missing in some releases and commits."""
