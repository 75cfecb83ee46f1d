"""A snapshot's JSON and the entries that its commit wrote -> what contradicts in them. Metadata only.

Of any release: what a release does not write is not looked for. Readers skip a manifest by the buckets, levels and
partitions that its list states, and read as many bytes as are stated (ManifestsReader.java).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.gate.manifest_audit import partition_faults, place_faults
from nightkeep.formats.paimon.metadata.binary_row import decode_row
from nightkeep.formats.paimon.metadata.changelog import FULL_COMPACTION, LOOKUP, producer_of
from nightkeep.formats.paimon.metadata.entries import ADD, entry_identity, parse_list, read_manifest
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bool
from nightkeep.formats.paimon.reading.live_faults import overlaps
from nightkeep.storage import Storage

_BASE, _DELTA, _CHANGES = "baseManifestList", "deltaManifestList", "changelogManifestList"
COMPACT: Final = "COMPACT"


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """A manifest of a commit's own: its line in the list, its entries, and its size."""

    line: Record
    entries: Sequence[Record]
    bytes: int


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """What a commit wrote beside its JSON. `changes` is None where the list of its changelog has expired. `list_bytes`:
    the sizes of its lists."""

    delta: Sequence[WrittenManifest]
    changes: Sequence[WrittenManifest] | None
    list_bytes: Mapping[str, int]

    @property
    def entries(self) -> list[Record]:
        return [entry for manifest in self.delta for entry in manifest.entries]


def committed_files(storage: Storage, raw: Mapping[str, object]) -> CommittedFiles:
    """Raises MissingFile, CorruptMetadata, RefusedTable."""
    base = storage.stat(f"manifest/{raw[_BASE]}")
    sizes = {} if base is None else {_BASE: base.bytes}
    delta = _manifests(storage, raw, _DELTA, sizes)
    try:
        changes = _manifests(storage, raw, _CHANGES, sizes)
    except MissingFile:
        # Java deletes changelogs before their snapshots.
        changes = None
    return CommittedFiles(delta, changes, sizes)


def _manifests(
    storage: Storage, raw: Mapping[str, object], field: str, sizes: dict[str, int]
) -> Sequence[WrittenManifest]:
    name = raw.get(field)
    if name is None:
        return ()
    data = storage.read(f"manifest/{name}")
    sizes[field] = len(data)
    return [_manifest(storage, line) for line in parse_list(data, f"manifest/{name}").records]


def _manifest(storage: Storage, line: Record) -> WrittenManifest:
    found = storage.stat(f"manifest/{line['_FILE_NAME']}")
    return WrittenManifest(line, read_manifest(storage, line).records, 0 if found is None else found.bytes)


def commit_faults(
    raw: Mapping[str, object], parent: Mapping[str, object] | None, files: CommittedFiles, schema: PaimonSchema
) -> Iterator[str]:
    """`schema` is the one that the snapshot states."""
    entries = files.entries
    yield from _twice(entries)
    for entry in entries:
        yield from _entry_faults(entry, schema)
    yield from _row_counts(raw, parent, entries)
    yield from _changelog_faults(raw, files.changes, schema)
    for field, size in files.list_bytes.items():
        stated = raw.get(f"{field}Size")
        if stated is not None and stated != size:
            yield f"it states {stated} bytes of its {field}, the file has {size}"
    for manifest in (*files.delta, *(files.changes or ())):
        yield from (f"manifest {manifest.line['_FILE_NAME']}: {fault}" for fault in _line_faults(manifest, schema))
    if schema.primary_keys and not option_bool(schema, "pk-clustering-override"):
        yield from _overlaps(entries, schema)
    before, after = (None if each is None else number_in(each, "nextRowId") for each in (parent, raw))
    if before is not None and after is not None and after < before:
        yield f"it states next row id {after}, and the snapshot before {before}"


def moved(entries: Sequence[Record]) -> tuple[Mapping[Hashable, Record], Mapping[Hashable, Record]]:
    """The files that a commit leaves added, and those that it leaves removed, by identity: the last entry decides."""
    last: dict[Hashable, Record] = {entry_identity(entry): entry for entry in entries}
    added = {file: entry for file, entry in last.items() if entry["_KIND"] == ADD}
    return added, {file: entry for file, entry in last.items() if file not in added}


def number_in(raw: Mapping[str, object], name: str) -> int | None:
    value = raw.get(name)
    return value if isinstance(value, int) else None


def _twice(entries: Sequence[Record]) -> Iterator[str]:
    for (kind, identity), count in Counter((entry["_KIND"], entry_identity(entry)) for entry in entries).items():
        if count > 1:
            yield f"it {'adds' if kind == ADD else 'removes'} {identity[3]} {count} times"


def _entry_faults(entry: Record, schema: PaimonSchema) -> Iterator[str]:
    file, total = entry["_FILE"], entry["_TOTAL_BUCKETS"]
    name = file["_FILE_NAME"]
    if file["_MIN_SEQUENCE_NUMBER"] > file["_MAX_SEQUENCE_NUMBER"]:
        numbers = f"from {file['_MIN_SEQUENCE_NUMBER']} to {file['_MAX_SEQUENCE_NUMBER']}"
        yield f"sequence numbers of {name} go {numbers}"
    deleted = file.get("_DELETE_ROW_COUNT")
    if deleted is not None and deleted > file["_ROW_COUNT"]:
        yield f"{name} has {deleted} deletes among {file['_ROW_COUNT']} rows"
    if total > 0 and not entry["_BUCKET"] < total:
        yield f"{name} is in bucket {entry['_BUCKET']} of {total}"
    if file["_LEVEL"] and not schema.primary_keys:
        yield f"{name} is on level {file['_LEVEL']} of a table without keys"


def _row_counts(
    raw: Mapping[str, object], parent: Mapping[str, object] | None, entries: Sequence[Record]
) -> Iterator[str]:
    """Counts of rows that contradict. Paimon 0.5 adds the rows of removed files (`metadata.row_totals`)."""
    stated, total = number_in(raw, "deltaRecordCount"), number_in(raw, "totalRecordCount")
    before = None if parent is None else number_in(parent, "totalRecordCount")
    if stated is None:
        return
    added, removed = (
        sum(entry["_FILE"]["_ROW_COUNT"] for entry in entries if (entry["_KIND"] == ADD) is adds)
        for adds in (True, False)
    )
    may_be_of_0_5 = all(entry["_FILE"].get("_DELETE_ROW_COUNT") is None for entry in entries)
    if stated != added - removed and not (may_be_of_0_5 and stated == added + removed):
        yield f"it states {stated} more rows, and its manifests have {added - removed} more"
    if before is not None and total is not None and total != before + stated:
        yield f"it states {total} rows in all, expected {before} of the snapshot before and {stated} more"


def _changelog_faults(
    raw: Mapping[str, object], changes: Sequence[WrittenManifest] | None, schema: PaimonSchema
) -> Iterator[str]:
    """A compaction reports changes only where the table's producer has it do so."""
    if changes is None:
        return
    entries = [entry for manifest in changes for entry in manifest.entries]
    stated, found = number_in(raw, "changelogRecordCount"), sum(entry["_FILE"]["_ROW_COUNT"] for entry in entries)
    if stated is not None and stated != found:
        yield f"it states {stated} changes, and its changelog files have {found}"
    for entry in entries:
        if entry["_KIND"] != ADD:
            yield f"its changelog removes {entry['_FILE']['_FILE_NAME']}"
    if entries and raw["commitKind"] == COMPACT and producer_of(schema) not in (LOOKUP, FULL_COMPACTION):
        yield f"it is a compaction and reports {found} changes, with changelog-producer {producer_of(schema)}"


def _line_faults(manifest: WrittenManifest, schema: PaimonSchema) -> Iterator[str]:
    line, entries = manifest.line, manifest.entries
    if line["_FILE_SIZE"] != manifest.bytes:
        yield f"its list states {line['_FILE_SIZE']} bytes, the file has {manifest.bytes}"
    yield from place_faults(line, entries)
    types = [field.type for field in schema.select(schema.partition_keys)]
    rows = [decode_row(entry["_PARTITION"], types) for entry in entries]
    yield from partition_faults(line["_PARTITION_STATS"], rows, types) if rows else ()


def _overlaps(entries: Sequence[Record], schema: PaimonSchema) -> Iterator[str]:
    yield from (f"it adds {overlap}" for overlap in overlaps(moved(entries)[0].values(), schema))
