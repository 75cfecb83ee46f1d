"""JSON of table metadata -> checked values, and the JSON of the next version with one more snapshot.

Iceberg table spec, "Table Metadata Fields". Fields that we do not know are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.encodings.documents import GZIP, gunzip, parse_object
from nightkeep.errors import CorruptMetadata, kind_of
from nightkeep.model import digest_of
from nightkeep.model.json_values import JsonValue

MAIN: Final = "main"
NO_SNAPSHOT: Final = -1
"""The version of a table without snapshots (Java's value for no snapshot)."""
_CLOCK_SKEW_MS: Final = 60_000
"""How much older than the entry before it a log entry may be. Java refuses more (TableMetadata.java, ONE_MINUTE)."""
_KEPT_VERSIONS: Final = "write.metadata.previous-versions-max"
_DEFAULT_KEPT_VERSIONS: Final = 100

Raw = Mapping[str, JsonValue]
"""A JSON object, by the spec's names."""


@dataclass(frozen=True, slots=True)
class MetadataHead:
    """The values that a commit builds on. `current` is the snapshot that main points to, None before the first.

    `snapshots` are the JSON objects of all snapshots, by id. `next_row_id` is None before format version 3.
    """

    format_version: int
    uuid: str
    current: int | None
    sequence_number: int
    updated_ms: int
    next_row_id: int | None
    snapshots: Mapping[int, Raw]


def decode(data: bytes, *, subject: str) -> Raw:
    """The JSON object of a metadata file's bytes, compressed by gzip or not. Raises CorruptMetadata."""
    # Both `.gz.metadata.json` and `.metadata.json.gz` are in use, in Hadoop tables too: check the bytes, not the name.
    return parse_object(gunzip(data, subject=subject) if data[:2] == GZIP else data, subject=subject)


def head(raw: Raw, *, subject: str) -> MetadataHead:
    """The head of table metadata. Raises CorruptMetadata for values that are missing, mistyped or contradictory."""
    snapshots: dict[int, Raw] = {}
    for each in objects(raw, "snapshots", subject=subject):
        number = integer(each, "snapshot-id", subject=subject)
        if number in snapshots:
            raise CorruptMetadata(subject, "one snapshot of each id", f"{number} twice")
        snapshots[number] = each
    current = _current(raw, subject)
    if current is not None and current not in snapshots:
        raise CorruptMetadata(subject, f"snapshot {current}, which {MAIN} points to", "none")
    version = integer(raw, "format-version", subject=subject)
    return MetadataHead(
        format_version=version,
        # The first releases wrote none. Nothing is committed to such a table.
        uuid=text({"table-uuid": "", **raw} if version == 1 else raw, "table-uuid", subject=subject),
        current=current,
        sequence_number=integer(raw, "last-sequence-number", subject=subject) if version > 1 else 0,
        updated_ms=integer(raw, "last-updated-ms", subject=subject),
        next_row_id=integer(raw, "next-row-id", subject=subject) if version > 2 else None,
        snapshots=snapshots,
    )


def content(raw: Raw, *, subject: str) -> frozenset[tuple[str, str, int]]:
    """The table, its snapshots, branches and tags, each as (kind, name, snapshot id).

    Main is included even if metadata has only `current-snapshot-id` for it.
    """
    current = head(raw, subject=subject)
    pointed = {name: integer(ref, "snapshot-id", subject=subject) for name, ref in refs(raw, subject=subject).items()}
    pointed |= {} if current.current is None else {MAIN: current.current}
    return frozenset(
        {("table", current.uuid, 0)}
        | {("ref", name, number) for name, number in pointed.items()}
        | {("snapshot", "", number) for number in current.snapshots}
    )


def commit_digest(raw: Raw, snapshot: Raw) -> str:
    """A digest that identifies a snapshot: of table UUID, snapshot id and location of the manifest list."""
    parts = (str(raw.get("table-uuid")).lower(), str(snapshot.get("snapshot-id")), str(snapshot.get("manifest-list")))
    return digest_of(*(each.encode(errors="surrogatepass") for each in parts))


def digest_on_main(raw: Raw, version: int, *, subject: str) -> str | None:
    """`commit_digest` of the snapshot `version` if it is main's or an ancestor of it, else None.

    Raises CorruptMetadata.
    """
    table = head(raw, subject=subject)
    if version == NO_SNAPSHOT:
        return commit_digest(raw, {})
    return (
        commit_digest(raw, table.snapshots[version])
        if version in ancestors(raw, table.current, subject=subject)
        else None
    )


def ancestors(raw: Raw, snapshot_id: int | None, *, subject: str) -> Iterator[int]:
    """A snapshot's id, its parent's and so on, as far as metadata still has them. Raises CorruptMetadata."""
    snapshots = head(raw, subject=subject).snapshots
    seen: set[int] = set()
    while snapshot_id is not None and snapshot_id in snapshots:
        if snapshot_id in seen:
            raise CorruptMetadata(subject, "ancestors that end", f"a circle at snapshot {snapshot_id}")
        seen.add(snapshot_id)
        yield snapshot_id
        snapshot_id = parent_id(snapshots[snapshot_id], subject=subject)


def with_snapshot(raw: Raw, snapshot: Raw, *, location: str, subject: str, branch: str = MAIN) -> Raw | None:
    """The metadata that follows `raw`, which is at `location`, with `snapshot` added and the branch pointing to it.

    Follows TableMetadata.Builder of Iceberg Java. Returns None if another commit came first: the branch has moved or is
    gone, or the sequence number or row ids are used. Raises CorruptMetadata.
    """
    before, named = head(raw, subject=subject), refs(raw, subject=subject)
    added = _Added.of(snapshot, before, subject)
    if branch != MAIN and named.get(branch, {}).get("type") != "branch":
        return None
    newest = before.current if branch == MAIN else integer(named[branch], "snapshot-id", subject=subject)
    if not added.follows(before, newest):
        return None
    reference = {**named.get(branch, {"type": "branch"}), "snapshot-id": added.id}
    result: dict[str, JsonValue] = {
        **raw,
        # Only main is the table's current version, and has a log.
        **({"current-snapshot-id": added.id, "snapshot-log": _logged(raw, added, subject)} if branch == MAIN else {}),
        "refs": {**named, branch: reference},
        **({"last-sequence-number": added.sequence_number} if before.format_version > 1 else {}),
        "last-updated-ms": max(before.updated_ms, added.timestamp_ms),
        # Leave nulls out: Java's reader does not accept null for a number.
        "snapshots": [
            *objects(raw, "snapshots", subject=subject),
            {key: value for key, value in snapshot.items() if value is not None},
        ],
        "metadata-log": past_versions(raw, before, location, subject=subject),
    }
    if before.next_row_id is not None:
        result["next-row-id"] = before.next_row_id + added.rows
    return result


@dataclass(frozen=True, slots=True)
class _Added:
    id: int
    parent: int | None
    sequence_number: int
    timestamp_ms: int
    first_row_id: int | None
    rows: int

    @classmethod
    def of(cls, snapshot: Raw, before: MetadataHead, table: str) -> _Added:
        subject = f"{table}: snapshot to add"
        text(snapshot, "manifest-list", subject=subject)
        lineage = before.next_row_id is not None
        added = cls(
            id=integer(snapshot, "snapshot-id", subject=subject),
            parent=parent_id(snapshot, subject=subject),
            # Staged for format version 1, which has none. After an upgrade that is a conflict.
            sequence_number=integer({"sequence-number": 0, **snapshot}, "sequence-number", subject=subject),
            timestamp_ms=integer(snapshot, "timestamp-ms", subject=subject),
            first_row_id=integer(snapshot, "first-row-id", subject=subject) if lineage else None,
            rows=integer(snapshot, "added-rows", subject=subject) if lineage else 0,
        )
        if added.id in before.snapshots or added.rows < 0:
            found = f"id {added.id}, {added.rows} rows"
            raise CorruptMetadata(subject, "an id that no snapshot has, and no negative count of rows", found)
        return added

    def follows(self, before: MetadataHead, newest: int | None) -> bool:
        taken = before.next_row_id is not None and self.first_row_id != before.next_row_id
        is_next = self.sequence_number > before.sequence_number or before.format_version == 1
        return self.parent == newest and is_next and not taken


def _logged(raw: Raw, added: _Added, subject: str) -> list[Raw]:
    log: Sequence[Raw] = objects(raw, "snapshot-log", subject=subject)
    last = integer(log[-1], "timestamp-ms", subject=subject) if log else added.timestamp_ms
    if added.timestamp_ms < last - _CLOCK_SKEW_MS:
        raise CorruptMetadata(f"{subject}: snapshot {added.id}", f"a time after {last}", str(added.timestamp_ms))
    entry: Raw = {"timestamp-ms": added.timestamp_ms, "snapshot-id": added.id}
    return [*log, entry]


def past_versions(raw: Raw, before: MetadataHead, location: str, *, subject: str) -> list[Raw]:
    """The metadata log with the file at `location` appended, limited to the length that the table's properties set."""
    entry: Raw = {"timestamp-ms": before.updated_ms, "metadata-file": location}
    return [*objects(raw, "metadata-log", subject=subject), entry][-_kept_versions(raw, subject) :]


def _kept_versions(raw: Raw, subject: str) -> int:
    count = properties(raw, subject=subject).get(_KEPT_VERSIONS, str(_DEFAULT_KEPT_VERSIONS))
    try:
        return max(1, int(count))
    except ValueError as failure:
        raise CorruptMetadata(f"{subject}: {_KEPT_VERSIONS}", "a number", kind_of(count)) from failure


def refs(raw: Raw, *, subject: str) -> Mapping[str, Raw]:
    """Branches and tags by name. Raises CorruptMetadata."""
    named = {} if raw.get("refs") is None else raw["refs"]
    if not isinstance(named, dict) or not all(isinstance(each, dict) for each in named.values()):
        raise CorruptMetadata(f"{subject}: refs", "an object of objects", kind_of(named))
    return named


def properties(raw: Raw, *, subject: str) -> Mapping[str, str]:
    """The table's properties. Raises CorruptMetadata."""
    fields = {} if raw.get("properties") is None else raw["properties"]
    if not isinstance(fields, dict) or not all(isinstance(each, str) for each in fields.values()):
        raise CorruptMetadata(f"{subject}: properties", "an object of texts", kind_of(fields))
    return fields


def summary_of(snapshot: Raw, *, subject: str) -> Mapping[str, str]:
    """A snapshot's summary; empty if it has none. Raises CorruptMetadata."""
    fields = {} if snapshot.get("summary") is None else snapshot["summary"]
    if not isinstance(fields, dict):
        raise CorruptMetadata(f"{subject}: summary", "an object of texts", kind_of(fields))
    # The spec allows only strings; convert the numbers that some writers use.
    return {key: value if isinstance(value, str) else str(value) for key, value in fields.items() if value is not None}


def objects(raw: Raw, name: str, *, subject: str) -> Sequence[Raw]:
    """The list of objects `name`; empty if it is missing. Raises CorruptMetadata."""
    items = [] if raw.get(name) is None else raw[name]
    if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
        raise CorruptMetadata(f"{subject}: {name}", "a list of objects", kind_of(items))
    return items


def integer(raw: Raw, name: str, *, subject: str) -> int:
    """The integer `name`. Raises CorruptMetadata if it is missing or of another type."""
    value = raw.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
        raise CorruptMetadata(f"{subject}: {name}", "a whole number of 64 bits", kind_of(value))
    return value


def parent_id(snapshot: Raw, *, subject: str) -> int | None:
    """The id of a snapshot's parent; None if it has none. Raises CorruptMetadata."""
    return _snapshot_id(snapshot, "parent-snapshot-id", subject)


def text(raw: Raw, name: str, *, subject: str) -> str:
    """The string `name`. Raises CorruptMetadata if it is missing or of another type."""
    value = raw.get(name)
    if not isinstance(value, str):
        raise CorruptMetadata(f"{subject}: {name}", "a text", kind_of(value))
    return value


def _snapshot_id(raw: Raw, name: str, subject: str) -> int | None:
    """The snapshot id `name`; None if it is missing or -1, which Java writes for no snapshot."""
    value = raw.get(name)
    return None if value is None or value == NO_SNAPSHOT else integer(raw, name, subject=subject)


def _current(raw: Raw, subject: str) -> int | None:
    """The current snapshot's id. Raises CorruptMetadata unless main agrees with it (spec, "Snapshot References")."""
    current = _snapshot_id(raw, "current-snapshot-id", subject)
    main = refs(raw, subject=subject).get(MAIN)
    pointed = current if main is None else integer(main, "snapshot-id", subject=subject)
    if main is not None and (pointed != current or main.get("type") != "branch"):
        found = f"a ref of {kind_of(main.get('type'))} as its type, at {pointed}"
        raise CorruptMetadata(f"{subject}: {MAIN}", f"a branch at the current snapshot, {current}", found)
    return current
