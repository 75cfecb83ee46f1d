"""Table metadata -> the commits of all writers on main, and what each states of the rows: its summary's operation.

Iceberg table spec, "Snapshots": `replace` changes files without changing the rows of the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from nightkeep.errors import EvidenceError, MissingFile, RefusedTable
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.first_version import completed
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.formats.iceberg.metadata.naming import OPERATION_PROPERTY
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.table_metadata import (
    MetadataHead,
    Raw,
    ancestors,
    commit_digest,
    decode,
    head,
    integer,
    objects,
    parent_id,
    refs,
    summary_of,
    text,
)
from nightkeep.formats.iceberg.reading.commit_faults import TOTALS, commit_faults, number_in, snapshot_faults
from nightkeep.formats.iceberg.reading.commit_files import (
    Listed,
    committed_entries,
    listed_manifests,
    live_twice,
    schema_of,
)
from nightkeep.formats.iceberg.reading.file_faults import file_faults
from nightkeep.protocol import Bound
from nightkeep.protocol.past import Past, PastCommit, PastReading, RowClaim

_APPLICATIONS: Final = ("app-id", "spark.app.id", "flink.job-id")


def past_of(handle: TableHandle) -> PastReading[IcebergSnapshot, IcebergUnit]:
    return PastReading(
        read=Bound(read_past, handle),
        files=files,
        comparable=comparable,
        apart=apart,
        unread=unread,
        went_back=Bound(went_back, handle),
        layout=layout,
        file_faults=Bound(file_faults, handle),
    )


def unread(unit: IcebergUnit) -> str | None:
    return None if unit.unread is None else str(unit.unread)


def layout(unit: IcebergUnit) -> Hashable:
    """Java's compaction writes the rows of all specs by the newest one."""
    return unit.spec_id


def files(unit: IcebergUnit) -> Mapping[Hashable, int]:
    return {file.identity: file.bytes for some in (unit.files, unit.positional, unit.equality) for file in some}


def comparable(before: IcebergSnapshot, after: IcebergSnapshot) -> tuple[IcebergSnapshot, IcebergSnapshot]:
    """The commit after an upgrade to row lineage gives all rows their ids: they are compared without."""
    if not after.schema.has_row_lineage or "first-row-id" in before.raw:
        return before, after
    plain = replace(after.schema, format_version=2)
    return _without_ids(before, plain), _without_ids(after, plain)


def _without_ids(snapshot: IcebergSnapshot, plain: IcebergSchema) -> IcebergSnapshot:
    return replace(snapshot, units=tuple(replace(unit, schema=plain) for unit in snapshot.units))


def apart(before: IcebergUnit, after: IcebergUnit) -> tuple[IcebergUnit, IcebergUnit]:
    """Where both have the same deletes, the data files that one side alone has."""
    if (before.positional, before.equality) != (after.positional, after.equality):
        return before, after
    kept = set(map(_state, before.files)) & set(map(_state, after.files))
    old, new = (tuple(file for file in unit.files if _state(file) not in kept) for unit in (before, after))
    return replace(before, files=old), replace(after, files=new)


def _state(file: ContentFile) -> Hashable:
    """Sequence numbers decide which deletes apply, and what readers see of the last update."""
    return file.identity, file.sequence_number, file.file_sequence_number, file.first_row_id


def went_back(handle: TableHandle, version: int) -> bool:
    """As `protocol.past.PastReading.went_back`: by the log of metadata files, the newest first. A writer that went on
    from a stale pointer has no file with the version in its log."""
    raw, location = handle.load()
    for entry in reversed(objects(raw, "metadata-log", subject=location)):
        with suppress(MissingFile):
            where = text(entry, "metadata-file", subject=location)
            earlier = completed(
                decode(handle.storage.read(name_in(handle.storage, where)), subject=where), subject=where
            )
            if version in ancestors(earlier, head(earlier, subject=where).current, subject=where):
                return True
    return False


def read_past(handle: TableHandle, *, since: int | None, since_ms: int | None) -> Past:
    """As `protocol.past.ReadsPast`, of main. A snapshot that expires while it is read counts as one that is gone."""
    raw, location = handle.load()
    metadata = completed(raw, subject=location)
    table = head(metadata, subject=location)
    on_main = list(ancestors(metadata, table.current, subject=location))
    asked = _asked(table, on_main, since=since, since_ms=since_ms, subject=location)
    reader = _Reader(handle, metadata, table, location)
    found: list[PastCommit] = []
    expired = False
    for number in reversed(asked):
        try:
            found.append(reader.commit(number, known=number == since))
        except MissingFile:
            # What is older is gone as well.
            found, expired = [], True
    if found and found[-1].version != since:
        found = reader.with_repeated(found)
    cut = f"snapshots up to {found[0].parent} expired meanwhile" if expired and found else None
    undone = tuple(_undone(metadata, table, on_main, location))
    return Past(commits=tuple(found), cut=cut or _cut(found, table, since=since, since_ms=since_ms), undone=undone)


def _asked(
    table: MetadataHead, on_main: Sequence[int], *, since: int | None, since_ms: int | None, subject: str
) -> list[int]:
    """The snapshots to read, the newest first."""
    asked: list[int] = []
    for number in on_main:
        made_ms = integer(table.snapshots[number], "timestamp-ms", subject=subject)
        if asked and (since in (number, asked[-1]) or (since_ms is not None and made_ms < since_ms)):
            break
        asked.append(number)
    return asked


def _cut(found: Sequence[PastCommit], table: MetadataHead, *, since: int | None, since_ms: int | None) -> str | None:
    if not found:
        return "the table has no snapshot"
    oldest = found[0]
    if oldest.parent is None or oldest.parent in table.snapshots:
        return None
    has_all = since is not None and oldest.parent == since
    return None if has_all else f"snapshots before {oldest.version} have expired"


@dataclass(slots=True)
class _Reader:
    """Commits of one table, each with the manifests that it wrote. The lists of two snapshots are in memory at most."""

    handle: TableHandle
    metadata: Raw
    table: MetadataHead
    location: str
    lists: dict[int, Listed] = field(default_factory=dict)

    def commit(self, number: int, *, known: bool) -> PastCommit:
        """`known`: its files were looked at before. Raises MissingFile if it has expired meanwhile."""
        commit = stated_commit(self.metadata, self.table, number, self.location)
        return commit if known else replace(commit, faults=(*commit.faults, *self._faults(number)))

    def _faults(self, number: int) -> tuple[str, ...]:
        try:
            return tuple(self._file_faults(number))
        except MissingFile as failure:
            if self._is_gone(number):
                raise
            return (str(failure),)
        except RefusedTable:
            return ()
        except EvidenceError as failure:
            return (str(failure),)

    def _file_faults(self, number: int) -> Iterator[str]:
        raw = self.table.snapshots[number]
        storage, schema = self.handle.storage, schema_of(self.metadata, raw, table=str(self.handle))
        own, parent = self._listed(number), parent_id(raw, subject=self.location)
        try:
            before = None if parent not in self.table.snapshots or parent is None else self._listed(parent)
            entries = committed_entries(storage, schema, own=own, parent=before, version=number)
        except MissingFile:
            if parent is None or not self._is_gone(parent):
                raise
            entries = committed_entries(storage, schema, own=own, parent=None, version=number)
        yield from commit_faults(entries, raw, summary_of(raw, subject=self.location), schema)

    def with_repeated(self, commits: Sequence[PastCommit]) -> list[PastCommit]:
        """The commits, with the files that the last of several additions made live twice in the newest version."""
        newest = commits[-1]
        order = {commit.version: place for place, commit in enumerate(commits)}
        added: dict[int, list[str]] = {}
        raw = self.table.snapshots[newest.version]
        with suppress(EvidenceError, RefusedTable):
            schema = schema_of(self.metadata, raw, table=str(self.handle))
            for path, versions in live_twice(self.handle.storage, schema, self._listed(newest.version)):
                last = max(versions, key=lambda version: order.get(version, -1))
                added.setdefault(last, []).append(f"it adds {path}, which is live already")
        return [replace(each, faults=(*each.faults, *added.get(each.version, ()))) for each in commits]

    def _listed(self, number: int) -> Listed:
        if number not in self.lists:
            if len(self.lists) > 1:
                self.lists.clear()
            raw = self.table.snapshots[number]
            self.lists[number] = listed_manifests(self.handle.storage, raw, table=str(self.handle))
        return self.lists[number]

    def _is_gone(self, number: int) -> bool:
        raw, location = self.handle.load()
        return number not in head(completed(raw, subject=location), subject=location).snapshots


def stated_commit(metadata: Raw, table: MetadataHead, number: int, subject: str) -> PastCommit:
    """A commit by the JSON alone."""
    raw = table.snapshots[number]
    summary = summary_of(raw, subject=f"{subject}: snapshot {number}")
    parent = parent_id(raw, subject=subject)
    added, removed = (number_in(summary, name) for name in TOTALS["total-records"])
    before = None if parent is None else table.snapshots.get(parent)
    summaries = [summary_of(each, subject=subject) for each in (before or {}, raw)]
    return PastCommit(
        version=number,
        parent=parent,
        digest=commit_digest(metadata, raw),
        claim=claim_of(summary),
        kind=kind_of(summary),
        author=author_of(summary),
        time_ms=integer(raw, "timestamp-ms", subject=subject),
        bytes_added=number_in(summary, "added-files-size") or 0,
        rows=None if added is None and removed is None else (added or 0) - (removed or 0),
        faults=tuple(snapshot_faults(table, raw, before, summaries)),
    )


def kind_of(summary: Mapping[str, str]) -> str:
    return str(summary.get("operation", "commit"))


def claim_of(summary: Mapping[str, str]) -> RowClaim:
    """What a snapshot states of the rows, by its operation, and by ours that stores deletes in another form."""
    keeps = kind_of(summary) == "replace" or OPERATION_PROPERTY in summary
    return RowClaim.KEEPS_ROWS if keeps else RowClaim.CHANGES_ROWS


def application_of(summary: Mapping[str, str]) -> str | None:
    """The job that wrote a snapshot, as its summary names it."""
    return next((summary[name] for name in _APPLICATIONS if summary.get(name)), None)


def author_of(summary: Mapping[str, str]) -> str:
    found = summary.get("engine-name") or application_of(summary)
    version = summary.get("engine-version")
    return "an unnamed writer" if found is None else f"{found} {version}" if version else found


def _undone(metadata: Raw, table: MetadataHead, on_main: Sequence[int], subject: str) -> Iterator[PastCommit]:
    """Snapshots that were main's once, and that no branch or tag has."""
    named = refs(metadata, subject=subject)
    heads = [integer(ref, "snapshot-id", subject=subject) for ref in named.values()]
    kept = {number for start in heads for number in ancestors(metadata, start, subject=subject)} | set(on_main)
    logged = {
        integer(each, "snapshot-id", subject=subject) for each in objects(metadata, "snapshot-log", subject=subject)
    }
    yield from (stated_commit(metadata, table, number, subject) for number in logged & table.snapshots.keys() - kept)
