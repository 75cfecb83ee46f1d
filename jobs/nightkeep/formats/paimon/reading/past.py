"""Snapshots -> the commits of all writers, and what each states of the rows: its `commitKind` (A/Snapshot.java)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, EvidenceError, MissingFile, RefusedTable
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors
from nightkeep.formats.paimon.gate.scan import survivors
from nightkeep.formats.paimon.metadata.entries import ADD, decoding
from nightkeep.formats.paimon.metadata.record_expiry import EXPIRE_TIME, record_age
from nightkeep.formats.paimon.metadata.schema import skips_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import digest, parse_snapshot, snapshot_ids
from nightkeep.formats.paimon.reading.aged_keys import without_aged
from nightkeep.formats.paimon.reading.commit_faults import commit_faults, committed_files, moved, number_in
from nightkeep.formats.paimon.reading.file_faults import file_faults, schema_of
from nightkeep.formats.paimon.reading.live_faults import LiveFaults, live_faults
from nightkeep.formats.paimon.reading.versions import refuse_unreadable
from nightkeep.formats.paimon.reading.views import narrowed
from nightkeep.model import Address, View, digest_of
from nightkeep.protocol import Bound
from nightkeep.protocol.past import Past, PastCommit, PastReading, RowClaim
from nightkeep.storage import Storage

_CLAIMS: Mapping[object, RowClaim] = {"COMPACT": RowClaim.KEEPS_ROWS, "ANALYZE": RowClaim.TOUCHES_NO_FILES}


def past_of(address: Address, storage: Storage) -> PastReading[PaimonSnapshot, Bucket]:
    return PastReading(
        read=Bound(Bound(read_past, address), storage),
        files=files,
        apart=apart,
        expires=expires,
        without_aged=Bound(without_aged, storage),
        twice=Bound(twice, storage),
        file_faults=Bound(Bound(file_faults, address), storage),
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
    if not bucket.schemas.current.primary_keys:
        return 0
    lifted = narrowed(bucket, {file.name for file in bucket.files if file.level > 0})
    shown, newest = (survivors(storage, lifted, view) for view in (View.RAW, View.MERGED))
    return sum(len(rows - newest[name] if name in newest else rows) for name, rows in shown.items())


def _vectors(bucket: Bucket) -> Hashable:
    return bucket.index_files, bucket.vectors


def expires(snapshot: PaimonSnapshot) -> str | None:
    return None if record_age(snapshot.schema) is None else EXPIRE_TIME


def read_past(address: Address, storage: Storage, *, since: int | None, since_ms: int | None) -> Past:
    """As `protocol.past.ReadsPast`. A snapshot that expires while it is read counts as one that is gone."""
    ids = snapshot_ids(storage)
    found: list[_Read] = []
    for number in reversed(ids):
        if found and since is not None and number <= since:
            break
        try:
            read = _read(storage, number, has_parent=number - 1 in ids)
        except MissingFile:
            break
        if found and since_ms is not None and read.commit.time_ms < since_ms:
            break
        found.append(read)
    found.reverse()
    commits = tuple(_replayed(found))
    if commits and commits[-1].version != since:
        commits = tuple(_with_newest(address, storage, found, commits))
    return Past(commits=commits, cut=_cut(commits, ids, since=since, since_ms=since_ms))


def _cut(commits: Sequence[PastCommit], ids: Sequence[int], *, since: int | None, since_ms: int | None) -> str | None:
    if not commits:
        return "no snapshot is left"
    oldest = commits[0].version
    if since is not None and oldest > since + 1:
        return f"snapshots {since + 1} to {oldest - 1} have expired"
    has_all = since_ms is None or commits[0].time_ms < since_ms
    return f"snapshots before {oldest} have expired" if since is None and not has_all and 1 < oldest <= ids[0] else None


@dataclass(frozen=True, slots=True)
class _Read:
    """A commit, and the files that it adds and removes, by identity."""

    commit: PastCommit
    added: frozenset[Hashable]
    removed: frozenset[Hashable]


def _read(storage: Storage, number: int, *, has_parent: bool) -> _Read:
    name = f"snapshot/snapshot-{number}"
    data = storage.read(name)
    raw = parse_snapshot(data, subject=name)
    parent = _raw(storage, number - 1) if has_parent else None
    entries: Sequence[Record] | None = None
    bytes_added = 0
    try:
        files = committed_files(storage, raw)
        entries = files.entries
        with decoding(name, "entries of data files, and their counts"):
            faults = tuple(commit_faults(raw, parent, files, schema_of(storage, raw)))
            added, removed = moved(entries)
            bytes_added = sum(int(entry["_FILE"]["_FILE_SIZE"]) for entry in entries if entry["_KIND"] == ADD)
    except RefusedTable:
        faults, added, removed = (), {}, {}
    except EvidenceError as failure:
        if isinstance(failure, MissingFile) and digest(storage, number) is None:
            raise
        faults, added, removed = (str(failure),), {}, {}
    commit = PastCommit(
        version=number,
        parent=number - 1 if number > 1 else None,
        digest=digest_of(data),
        claim=claim_of(raw, entries=entries),
        kind=str(raw["commitKind"]),
        author=str(raw["commitUser"]),
        time_ms=int(str(raw["timeMillis"])),
        rows=number_in(raw, "deltaRecordCount"),
        bytes_added=bytes_added,
        faults=faults,
    )
    return _Read(commit, frozenset(added), frozenset(removed))


def claim_of(raw: Mapping[str, object], *, entries: Sequence[Record] | None) -> RowClaim:
    """`entries`: None where they cannot be read, so that there may be some."""
    claim = _CLAIMS.get(raw["commitKind"], RowClaim.CHANGES_ROWS)
    touches = entries is None or entries or raw.get("indexManifest") or claim is RowClaim.KEEPS_ROWS
    return claim if touches else RowClaim.TOUCHES_NO_FILES


def _raw(storage: Storage, number: int) -> Mapping[str, object] | None:
    name = f"snapshot/snapshot-{number}"
    try:
        return parse_snapshot(storage.read(name), subject=name)
    except MissingFile:
        return None


def _replayed(found: Sequence[_Read]) -> Iterator[PastCommit]:
    """The commits, with the files that one adds or removes although an earlier one of them did. What older commits
    did is not known here."""
    live, gone = set[Hashable](), set[Hashable]()
    for read in found:
        again = [("adds", "is live already", read.added & live), ("removes", "is gone already", read.removed & gone)]
        faults = (f"it {verb} {_name(file)}, which {why}" for verb, why, files in again for file in files)
        yield replace(read.commit, faults=(*read.commit.faults, *faults))
        live = (live - read.removed) | read.added
        gone = (gone - read.added) | read.removed


def _name(identity: Hashable) -> object:
    return identity[3] if isinstance(identity, tuple) else identity


def _with_newest(
    address: Address, storage: Storage, found: Sequence[_Read], commits: Sequence[PastCommit]
) -> Iterator[PastCommit]:
    """The commits, with what the live files of the newest version contradict. Of two files that overlap on a level,
    the later one is wrong."""
    faults: defaultdict[int, list[str]] = defaultdict(list)
    newest = len(commits) - 1
    try:
        seen = _live_faults(address, storage, commits[newest].version)
        faults[newest] += seen.of_version
        added = {_name(file): place for place, read in enumerate(found) for file in read.added}
        for pair in seen.overlaps:
            last = max((added[each] for each in pair.names if each in added), default=None)
            if last is not None:
                faults[last].append(f"it adds {pair}")
    except CorruptMetadata as failure:
        faults[newest].append(str(failure))
    except (EvidenceError, RefusedTable):
        # It is gone meanwhile, or no reader of ours handles it.
        pass
    for place, commit in enumerate(commits):
        yield replace(commit, faults=tuple(dict.fromkeys([*commit.faults, *faults[place]])))


def _live_faults(address: Address, storage: Storage, version: int) -> LiveFaults:
    name = f"snapshot/snapshot-{version}"
    raw = parse_snapshot(storage.read(name), subject=name)
    schema = schema_of(storage, raw)
    refuse_unreadable(address, schema)
    return live_faults(storage, raw, schema)
