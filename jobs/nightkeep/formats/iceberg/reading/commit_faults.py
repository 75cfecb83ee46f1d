"""What a commit changed -> sentences on what its metadata contradicts: of any writer, so only what the spec promises
and the engines keep. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from nightkeep.formats.iceberg.gate.live_files import changed_fields
from nightkeep.formats.iceberg.gate.manifest_audit import partition_faults
from nightkeep.formats.iceberg.gate.snapshot_audit import counts
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Entry, FileContent, Manifest, Status
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.table_metadata import MetadataHead, Raw
from nightkeep.formats.iceberg.reading.commit_files import CommittedEntries

TOTALS: Final = {
    "total-records": ("added-records", "deleted-records"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
"""SnapshotSummary.java: a total is the one before, with what was added and without what was removed."""
_REMOVED: Final = {"data-files": "deleted-data-files", "records": "deleted-records"}
"""Java's keys use `removed` for deletes, but `deleted` for data files and records."""
_COUNTED: Final = {Status.ADDED: "added", Status.EXISTING: "existing", Status.DELETED: "deleted"}


def number_in(summary: Mapping[str, str], name: str) -> int | None:
    text = summary.get(name)
    return int(text) if text is not None and text.isdecimal() and text.isascii() and len(text) < 20 else None


def snapshot_faults(
    table: MetadataHead, raw: Raw, before: Raw | None, summaries: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """By the JSON alone. `summaries` are those of the parent, if it is there, and of the snapshot."""
    number = raw.get("sequence-number")
    if isinstance(number, int) and table.format_version > 1 and number > table.sequence_number:
        yield f"its sequence number is {number}, and the table has given {table.sequence_number}"
    if before is None:
        return
    least = before.get("sequence-number")
    if isinstance(number, int) and isinstance(least, int) and number <= least and table.format_version > 1:
        yield f"its sequence number is {number}, and its parent has {least}"
    yield from _row_id_faults(raw, before)
    earlier, summary = summaries
    for total, (more, less) in TOTALS.items():
        stated, had = number_in(summary, total), number_in(earlier, total)
        if stated is None or had is None:
            continue
        expected = had + (number_in(summary, more) or 0) - (number_in(summary, less) or 0)
        if stated != expected:
            yield f"its summary states {total} {stated}, expected {expected} by what it adds and removes"


def _row_id_faults(raw: Raw, before: Raw) -> Iterator[str]:
    first, given, rows = raw.get("first-row-id"), before.get("first-row-id"), before.get("added-rows")
    if isinstance(first, int) and isinstance(given, int) and isinstance(rows, int) and first < given + rows:
        yield f"its row ids begin at {first}, and its parent has given them up to {given + rows}"


def commit_faults(
    files: CommittedEntries, raw: Raw, summary: Mapping[str, str], schema: IcebergSchema
) -> Iterator[str]:
    """By the manifests that the commit wrote and dropped."""
    yield from _count_faults(files, summary)
    yield from _repeated(files)
    if files.before is not None:
        yield from _carried_faults(files, files.before)
    yield from _number_faults(files, raw)
    for manifest, entries in files.written:
        faults = chain(_line_faults(manifest, entries), partition_faults(manifest, _files(entries), schema))
        yield from (f"{manifest.name}: {fault}" for fault in faults)
    for before, after in files.kept:
        if not _is_same_line(before, after):
            yield f"its line for {after.name} is another than its parent's"


def _files(entries: Iterable[Entry]) -> list[ContentFile]:
    return [entry.file for entry in entries]


def _count_faults(files: CommittedEntries, summary: Mapping[str, str]) -> Iterator[str]:
    """Numbers that the summary states. One that it leaves out is not stated."""
    found = {f"added-{end}": number for end, number in counts(files.added).items()}
    removed = counts(files.removed)
    found |= {_REMOVED.get(end, f"removed-{end}"): number for end, number in removed.items()}
    for key in (each for pair in TOTALS.values() for each in pair):
        stated, number = number_in(summary, key), found.get(key, 0)
        if stated is not None and stated != number:
            yield f"its summary states {key} {stated}, and its manifests have {number}"


def _repeated(files: CommittedEntries) -> Iterator[str]:
    live = [file.identity for file in (*files.added, *files.existing)]
    removed = [file.identity for file in files.removed]
    for word, names in (("lists", live), ("removes", removed)):
        yield from (f"it {word} {name[0]} {times} times" for name, times in Counter(names).items() if times > 1)
    still = {file.identity for file in files.existing} & set(removed)
    yield from (f"it removes {name[0]} and lists it still" for name in sorted(still, key=str))


def _carried_faults(files: CommittedEntries, before: Mapping[Identity, ContentFile]) -> Iterator[str]:
    """The files of dropped manifests go on, unchanged, or are recorded as removed; and no other file does."""
    gone = {file.identity for file in files.removed}
    kept = {file.identity for file in files.existing}
    yield from _some(before.keys() - gone - kept, "it drops", "and records no removal")
    yield from _some(gone - before.keys(), "it removes", "which its parent does not have")
    yield from _some(kept - before.keys(), "it lists", "as of earlier commits, and its parent does not have it")
    for file in files.existing:
        changed = _changed(before[file.identity], file) if file.identity in before else []
        if changed:
            yield f"{', '.join(changed)} of {file.path} changed, though its bytes did not"
    for file in files.removed:
        was = before.get(file.identity)
        if was is not None and (was.rows, was.bytes) != (file.rows, file.bytes):
            yield f"it removes {file.path} of {file.rows} rows, and its parent has {was.rows}"


_KEPT_FIELDS: Final = (
    "content",
    "spec_id",
    "partition",
    "rows",
    "bytes",
    "sequence_number",
    "file_sequence_number",
    "equality_ids",
    "first_row_id",
    "lower_bounds",
    "upper_bounds",
    "null_value_counts",
)
"""Fields of a file that decide what readers see of it. Engines may write the others anew."""


def _changed(before: ContentFile, after: ContentFile) -> list[str]:
    names = [name for name in changed_fields(before, after) if name in _KEPT_FIELDS]
    if not before.is_dated or not after.is_dated:
        names = [name for name in names if name != "file_sequence_number"]
    return names


def _some(names: Iterable[Identity], verb: str, why: str) -> Iterator[str]:
    found = sorted(name[0] for name in names)
    if found:
        what = found[0] if len(found) == 1 else f"{len(found)} files, such as {found[0]},"
        yield f"{verb} {what} {why}"


def _number_faults(files: CommittedEntries, raw: Raw) -> Iterator[str]:
    own = raw.get("sequence-number")
    if not isinstance(own, int) or not own:
        return
    for manifest, _ in files.written:
        if manifest.sequence_number != own:
            yield f"{manifest.name} has sequence number {manifest.sequence_number}, expected the snapshot's, {own}"
    newer = [file for file in (*files.added, *files.existing) if file.sequence_number > own]
    yield from (f"{file.path} has sequence number {file.sequence_number}, newer than the snapshot's" for file in newer)
    first = raw.get("first-row-id")
    for file in files.added:
        begins = file.first_row_id if file.content is FileContent.DATA else None
        if isinstance(first, int) and begins is not None and begins < first:
            yield f"row ids of {file.path} begin at {begins}, before the snapshot's, {first}"


def _line_faults(manifest: Manifest, entries: Sequence[Entry]) -> Iterator[str]:
    """Readers leave out manifests by what the list states of them."""
    for status, word in _COUNTED.items():
        rows = sum(entry.file.rows for entry in entries if entry.status is status)
        stated = getattr(manifest, f"{word}_rows")
        if stated != rows:
            yield f"its list states {stated} {word} rows, its entries have {rows}"
    live = [entry.file.sequence_number for entry in entries if entry.status is not Status.DELETED]
    if live and manifest.min_sequence_number > min(live):
        yield f"its list states the least sequence number {manifest.min_sequence_number}, its entries have {min(live)}"


def _is_same_line(before: Manifest, after: Manifest) -> bool:
    # After an upgrade to row lineage the list assigns row ids to old manifests too.
    given = after if before.first_row_id is not None else replace(after, first_row_id=None)
    return given == before
