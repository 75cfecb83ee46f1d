"""Table metadata -> the commits of all writers on main, and what each states of the rows: its summary's operation.

Iceberg table spec, "Snapshots": `replace` changes files without changing the rows of the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.first_version import completed
from nightkeep.formats.iceberg.metadata.naming import OPERATION_PROPERTY
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.table_metadata import (
    MetadataHead,
    Raw,
    ancestors,
    commit_digest,
    head,
    integer,
    objects,
    parent_id,
    refs,
    summary_of,
)
from nightkeep.protocol import Bound
from nightkeep.protocol.past import Past, PastCommit, PastReading, RowClaim

_TOTALS: Final = {
    "total-records": ("added-records", "deleted-records"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
"""SnapshotSummary.java: a total is the one before, with what was added and without what was removed."""


def past_of(handle: TableHandle) -> PastReading[IcebergSnapshot, IcebergUnit]:
    return PastReading(read=Bound(read_past, handle), files=files, apart=apart)


def files(unit: IcebergUnit) -> Mapping[Hashable, int]:
    return {file.identity: file.bytes for some in (unit.files, unit.positional, unit.equality) for file in some}


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


def read_past(handle: TableHandle, *, since: int | None, since_ms: int | None) -> Past:
    """As `protocol.past.ReadsPast`, of main."""
    raw, location = handle.load()
    metadata = completed(raw, subject=location)
    table = head(metadata, subject=location)
    found: list[PastCommit] = []
    on_main = list(ancestors(metadata, table.current, subject=location))
    for number in on_main:
        if found and number == since:
            break
        commit = _commit(metadata, table, number, location)
        if found and since_ms is not None and commit.time_ms < since_ms:
            break
        found.append(commit)
    undone = tuple(_undone(metadata, table, on_main, location))
    return Past(commits=tuple(found[::-1]), cut=_cut(found, table, since=since, since_ms=since_ms), undone=undone)


def _cut(found: Sequence[PastCommit], table: MetadataHead, *, since: int | None, since_ms: int | None) -> str | None:
    if not found:
        return "the table has no snapshot"
    oldest = found[-1]
    if oldest.parent is None or oldest.parent in table.snapshots:
        return None
    has_all = since is not None and oldest.parent == since
    return None if has_all else f"snapshots before {oldest.version} have expired"


def _commit(metadata: Raw, table: MetadataHead, number: int, subject: str) -> PastCommit:
    raw = table.snapshots[number]
    summary = summary_of(raw, subject=f"{subject}: snapshot {number}")
    parent = parent_id(raw, subject=subject)
    operation = str(summary.get("operation", "commit"))
    keeps = operation == "replace" or OPERATION_PROPERTY in summary
    added, removed = (_number(summary, name) for name in _TOTALS["total-records"])
    before = None if parent is None else table.snapshots.get(parent)
    return PastCommit(
        version=number,
        parent=parent,
        digest=commit_digest(metadata, raw),
        claim=RowClaim.KEEPS_ROWS if keeps else RowClaim.CHANGES_ROWS,
        kind=operation,
        author=_author(summary),
        time_ms=integer(raw, "timestamp-ms", subject=subject),
        rows=None if added is None and removed is None else (added or 0) - (removed or 0),
        faults=() if before is None else tuple(_faults(raw, summary, before, subject)),
    )


def _author(summary: Mapping[str, str]) -> str:
    names = ("engine-name", "app-id", "spark.app.id", "flink.job-id")
    found = next((summary[name] for name in names if summary.get(name)), None)
    version = summary.get("engine-version")
    return "an unnamed writer" if found is None else f"{found} {version}" if version else found


def _number(summary: Mapping[str, str], name: str) -> int | None:
    text = summary.get(name)
    return int(text) if text is not None and text.isdecimal() and text.isascii() and len(text) < 20 else None


def _faults(raw: Raw, summary: Mapping[str, str], before: Raw, subject: str) -> Iterator[str]:
    number, least = (each.get("sequence-number") for each in (raw, before))
    if isinstance(number, int) and isinstance(least, int) and number <= least:
        yield f"its sequence number is {number}, and its parent has {least}"
    earlier = summary_of(before, subject=subject)
    for total, (more, less) in _TOTALS.items():
        stated, had = _number(summary, total), _number(earlier, total)
        if stated is None or had is None:
            continue
        expected = had + (_number(summary, more) or 0) - (_number(summary, less) or 0)
        if stated != expected:
            yield f"its summary states {total} {stated}, expected {expected} by what it adds and removes"


def _undone(metadata: Raw, table: MetadataHead, on_main: Sequence[int], subject: str) -> Iterator[PastCommit]:
    """Snapshots that were main's once, and that no branch or tag has."""
    named = refs(metadata, subject=subject)
    heads = [integer(ref, "snapshot-id", subject=subject) for ref in named.values()]
    kept = {number for start in heads for number in ancestors(metadata, start, subject=subject)} | set(on_main)
    logged = {
        integer(each, "snapshot-id", subject=subject) for each in objects(metadata, "snapshot-log", subject=subject)
    }
    yield from (_commit(metadata, table, number, subject) for number in logged & table.snapshots.keys() - kept)
