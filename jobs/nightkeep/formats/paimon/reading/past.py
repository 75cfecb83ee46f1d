"""Snapshots -> the commits of all writers, and what each states of the rows: its `commitKind` (A/Snapshot.java)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors
from nightkeep.formats.paimon.gate.scan import survivors
from nightkeep.formats.paimon.metadata.entries import ADD, decoding, entry_identity, read_list, read_manifest
from nightkeep.formats.paimon.metadata.record_expiry import EXPIRE_TIME, record_age
from nightkeep.formats.paimon.metadata.schema import skips_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import parse_snapshot, snapshot_ids
from nightkeep.formats.paimon.reading.views import narrowed
from nightkeep.model import View, digest_of
from nightkeep.protocol import Bound
from nightkeep.protocol.past import Past, PastCommit, PastReading, RowClaim
from nightkeep.storage import Storage

_CLAIMS: Mapping[object, RowClaim] = {"COMPACT": RowClaim.KEEPS_ROWS, "ANALYZE": RowClaim.TOUCHES_NO_FILES}


def past_of(storage: Storage) -> PastReading[PaimonSnapshot, Bucket]:
    return PastReading(
        read=Bound(read_past, storage), files=files, apart=apart, expires=expires, twice=Bound(twice, storage)
    )


def files(bucket: Bucket) -> Mapping[Hashable, int]:
    return {(file.name, file.level): file.bytes for file in bucket.files}


def apart(before: Bucket, after: Bucket) -> tuple[Bucket, Bucket]:
    """Without keys, the files that one side alone has; of equal vectors. With keys, all of them may merge."""
    if before.schemas.current.primary_keys or _vectors(before) != _vectors(after):
        return before, after
    old, new = ({file.name for file in bucket.files} for bucket in (before, after))
    return narrowed(before, old - new), narrowed(after, new - old)


def twice(storage: Storage, bucket: Bucket) -> int:
    """Readers of a table with deletion vectors merge nothing: an old row of a key that no vector hides is shown beside
    the new one. A vector of a file that is not there hides nothing.

    Raises CorruptMetadata for a vector with positions beyond its file's rows."""
    if not skips_level0(bucket.schemas.current):
        return 0
    counted = {file.name: file.rows for file in bucket.files}
    for name, hidden in read_vectors(storage, bucket).items():
        if name in counted and hidden and hidden.max() >= counted[name]:
            expected = f"deleted positions below its {counted[name]} rows"
            raise CorruptMetadata(f"{bucket.key}: {name}", expected, str(hidden.max()))
    lifted = narrowed(bucket, {file.name for file in bucket.files if file.level > 0})
    shown, newest = (survivors(storage, lifted, view) for view in (View.RAW, View.MERGED))
    return sum(len(rows - newest[name] if name in newest else rows) for name, rows in shown.items())


def _vectors(bucket: Bucket) -> Hashable:
    return bucket.index_files, bucket.vectors


def expires(snapshot: PaimonSnapshot) -> str | None:
    return None if record_age(snapshot.schema) is None else EXPIRE_TIME


def read_past(storage: Storage, *, since: int | None, since_ms: int | None) -> Past:
    """As `protocol.past.ReadsPast`. A snapshot that expires while it is read counts as one that is gone."""
    ids = snapshot_ids(storage)
    found: list[PastCommit] = []
    for number in reversed(ids):
        if found and since is not None and number <= since:
            break
        try:
            commit = _commit(storage, number, has_parent=number - 1 in ids)
        except MissingFile:
            break
        if found and since_ms is not None and commit.time_ms < since_ms:
            break
        found.append(commit)
    return Past(commits=tuple(found[::-1]), cut=_cut(found, ids, since=since, since_ms=since_ms))


def _cut(found: Sequence[PastCommit], ids: Sequence[int], *, since: int | None, since_ms: int | None) -> str | None:
    if not found:
        return "no snapshot is left"
    oldest = found[-1].version
    if since is not None and oldest > since + 1:
        return f"snapshots {since + 1} to {oldest - 1} have expired"
    has_all = since_ms is None or found[-1].time_ms < since_ms
    return f"snapshots before {oldest} have expired" if since is None and not has_all and 1 < oldest <= ids[0] else None


def _commit(storage: Storage, number: int, *, has_parent: bool) -> PastCommit:
    name = f"snapshot/snapshot-{number}"
    data = storage.read(name)
    raw = parse_snapshot(data, subject=name)
    entries = [
        entry
        for meta in read_list(storage, str(raw["deltaManifestList"])).records
        for entry in read_manifest(storage, meta).records
    ]
    parent = _raw(storage, number - 1) if has_parent else None
    with decoding(name, "entries of data files, and their counts"):
        faults = tuple(_faults(raw, parent, entries))
    kind = raw["commitKind"]
    claim = _CLAIMS.get(kind, RowClaim.CHANGES_ROWS)
    if claim is not RowClaim.KEEPS_ROWS and not entries and not raw.get("indexManifest"):
        claim = RowClaim.TOUCHES_NO_FILES
    return PastCommit(
        version=number,
        parent=number - 1 if number > 1 else None,
        digest=digest_of(data),
        claim=claim,
        kind=str(kind),
        author=str(raw["commitUser"]),
        time_ms=int(str(raw["timeMillis"])),
        rows=_number(raw, "deltaRecordCount"),
        bytes_added=sum(int(entry["_FILE"]["_FILE_SIZE"]) for entry in entries if entry["_KIND"] == ADD),
        faults=faults,
    )


def _raw(storage: Storage, number: int) -> Mapping[str, object] | None:
    name = f"snapshot/snapshot-{number}"
    try:
        return parse_snapshot(storage.read(name), subject=name)
    except MissingFile:
        return None


def _number(raw: Mapping[str, object], name: str) -> int | None:
    value = raw.get(name)
    return value if isinstance(value, int) else None


def _faults(raw: Mapping[str, object], parent: Mapping[str, object] | None, entries: Sequence[Record]) -> Iterator[str]:
    for (kind, identity), count in Counter((entry["_KIND"], entry_identity(entry)) for entry in entries).items():
        if count > 1:
            yield f"it {'adds' if kind == ADD else 'removes'} {identity[3]} {count} times"
    for entry in entries:
        file = entry["_FILE"]
        if file["_MIN_SEQUENCE_NUMBER"] > file["_MAX_SEQUENCE_NUMBER"]:
            numbers = f"from {file['_MIN_SEQUENCE_NUMBER']} to {file['_MAX_SEQUENCE_NUMBER']}"
            yield f"sequence numbers of {file['_FILE_NAME']} go {numbers}"
        deleted = file.get("_DELETE_ROW_COUNT")
        if deleted is not None and deleted > file["_ROW_COUNT"]:
            yield f"{file['_FILE_NAME']} has {deleted} deletes among {file['_ROW_COUNT']} rows"
    yield from _counts(raw, parent, entries)


def _counts(raw: Mapping[str, object], parent: Mapping[str, object] | None, entries: Sequence[Record]) -> Iterator[str]:
    """Counts of rows that contradict. Manifests without counts of deletes are of releases that count otherwise, see
    `metadata.row_totals`."""
    stated, total = _number(raw, "deltaRecordCount"), _number(raw, "totalRecordCount")
    before = None if parent is None else _number(parent, "totalRecordCount")
    if stated is None or any("_DELETE_ROW_COUNT" not in entry["_FILE"] for entry in entries):
        return
    found = sum(entry["_FILE"]["_ROW_COUNT"] * (1 if entry["_KIND"] == ADD else -1) for entry in entries)
    if found != stated:
        yield f"it states {stated} more rows, and its manifests have {found} more"
    if before is not None and total is not None and total != before + stated:
        yield f"it states {total} rows in all, expected {before} of the snapshot before and {stated} more"
