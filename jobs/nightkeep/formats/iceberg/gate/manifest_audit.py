"""Parent and candidate -> faults of manifests. Every entry is compared with the manifest list and the parent.

Readers skip manifests by sequence number, counts and partition bounds in the list. Spec, "Manifest Lists".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyiceberg.types import UUIDType

from nightkeep.formats.iceberg.gate.header_audit import manifest_header_faults
from nightkeep.formats.iceberg.gate.live_files import changed_fields, live_files
from nightkeep.formats.iceberg.metadata.content_files import (
    ContentFile,
    Entry,
    FileContent,
    Manifest,
    ManifestContent,
    Status,
)
from nightkeep.formats.iceberg.metadata.conversions import from_bytes
from nightkeep.formats.iceberg.metadata.manifest_schema import partition_types
from nightkeep.formats.iceberg.metadata.manifests import read_manifest
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.storage import Storage

_COUNTED = {Status.ADDED: "added", Status.EXISTING: "existing", Status.DELETED: "deleted"}


def manifest_faults(storage: Storage, parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults unless the parent's manifests are listed unchanged; new manifests are read and every entry is checked."""
    listed = {manifest.path: manifest for manifest in parent.manifests}
    live, removed = live_files(parent), Counter[Identity]()
    paths = Counter(manifest.path for manifest in candidate.manifests)
    yield from (f"{path}: listed {times} times" for path, times in paths.items() if times > 1)
    for manifest in candidate.manifests:
        before = listed.get(manifest.path)
        if before is None:
            entries = read_manifest(storage, manifest, candidate.schema)
            removed.update(entry.file.identity for entry in entries if entry.status is Status.DELETED)
            data = storage.read(manifest.name)
            size = len(data)
            faults = (
                *([f"its list states {manifest.bytes} bytes, it has {size}"] if manifest.bytes != size else []),
                *manifest_header_faults(data, manifest, candidate),
                *_list_faults(manifest, entries, candidate),
                *_entry_faults(entries, live, candidate),
            )
            yield from (f"{manifest.name}: {fault}" for fault in faults)
        elif not _same_line(before, manifest):
            yield f"{manifest.name}: its line in the manifest list changed, though its bytes did not"
    yield from _removal_faults(Counter(live.keys() - live_files(candidate).keys()), removed)


def _removal_faults(gone: Counter[Identity], removed: Counter[Identity]) -> Iterator[str]:
    """Faults unless each file that is gone has one entry as deleted: expiry deletes files by these entries, and other
    writers find by them that a file which they work on is gone."""
    for identity in (gone - removed) + (removed - gone):
        yield f"{identity[0]}: {removed[identity]} entries record it as deleted, expected {gone[identity]}"


def _same_line(before: Manifest, after: Manifest) -> bool:
    # After an upgrade to row lineage the list assigns row ids to old manifests too.
    given = after if before.first_row_id is not None else replace(after, first_row_id=None)
    return given == before and after.partitions == before.partitions


def _list_faults(manifest: Manifest, entries: Sequence[Entry], candidate: IcebergSnapshot) -> Iterator[str]:
    own = (candidate.version, candidate.sequence_number)
    if (manifest.snapshot_id, manifest.sequence_number) != own:
        yield f"added by {manifest.snapshot_id} with {manifest.sequence_number}, expected {own[0]} with {own[1]}"
    for status, word in _COUNTED.items():
        files = [entry.file for entry in entries if entry.status is status]
        counts = tuple(getattr(manifest, f"{word}_{what}") for what in ("files", "rows"))
        if counts != (len(files), sum(file.rows for file in files)):
            yield f"{counts[0]} {word} files with {counts[1]} rows, its entries are {len(files)}"
    live = [entry.file.sequence_number for entry in entries if entry.status is not Status.DELETED]
    least = min(live, default=candidate.sequence_number)
    if manifest.min_sequence_number != least:
        # Java drops deletes by this number: with too high a number it would lose them.
        yield f"least sequence number {manifest.min_sequence_number}, its entries have {least}"
    yield from partition_faults(manifest, [entry.file for entry in entries], candidate.schema)


def _entry_faults(
    entries: Sequence[Entry], live: Mapping[Identity, ContentFile], candidate: IcebergSnapshot
) -> Iterator[str]:
    for entry in entries:
        before = live.get(entry.file.identity)
        if entry.status is Status.ADDED:
            if before is not None or entry.snapshot_id != candidate.version:
                yield f"{entry.file.path}: added by {entry.snapshot_id}, expected a new file of {candidate.version}"
        elif before is None:
            yield f"{entry.file.path}: {entry.status.name.lower()}, but no live file of the parent"
        elif entry.status is Status.DELETED and entry.snapshot_id != candidate.version:
            yield f"{entry.file.path}: deleted by {entry.snapshot_id}, expected {candidate.version}"
        elif not _same_numbers(before, entry.file):
            numbers = _numbers(entry.file)
            yield f"{entry.file.path}: numbers {numbers}, the parent has {_numbers(before)}"
        elif entry.status is Status.DELETED and (changed := _changed(before, entry.file)):
            yield f"{entry.file.path}: deleted with another {', '.join(changed)} than it had"


def _changed(before: ContentFile, deleted: ContentFile) -> list[str]:
    """Other fields of a file that is deleted, whose entry has the deleting snapshot's id."""
    return [name for name in changed_fields(before, deleted) if name != "snapshot_id"]


def _same_numbers(before: ContentFile, after: ContentFile) -> bool:
    numbers, expected = _numbers(after), _numbers(before)
    return numbers == expected or (before.first_row_id is None and numbers[:2] == expected[:2])


def _numbers(file: ContentFile) -> tuple[int | None, ...]:
    return (file.sequence_number, file.file_sequence_number if file.is_dated else None, file.first_row_id)


def partition_faults(manifest: Manifest, files: Sequence[ContentFile], schema: IcebergSchema) -> Iterator[str]:
    """Faults unless every entry has the manifest's content and spec, and its bounds contain all partition values."""
    data = manifest.content is ManifestContent.DATA
    for file in files:
        if file.spec_id != manifest.spec_id or (file.content is FileContent.DATA) is not data:
            yield f"{file.path}: {file.content.name} of spec {file.spec_id} in a manifest of {manifest.spec_id}"
    if manifest.partitions is None:
        return
    kinds = partition_types(schema, manifest.spec_id)
    if len(manifest.partitions) != len(kinds):
        yield f"{len(manifest.partitions)} partition summaries, the spec has {len(kinds)} fields"
        return
    for place, (kind, summary) in enumerate(zip(kinds, manifest.partitions, strict=True)):
        values = [file.partition[place] for file in files]
        if None in values and not summary.get("contains_null"):
            yield f"partition field {place}: holds null, its summary states none"
        if summary.get("contains_nan") is False and any(value != value for value in values):
            yield f"partition field {place}: holds NaN, its summary states none"
        ends = {end: summary.get(f"{end}_bound") for end in ("lower", "upper")}
        read = {
            end: from_bytes(kind, data, subject=manifest.path) for end, data in ends.items() if isinstance(data, bytes)
        }
        order = _signed_halves if isinstance(kind, UUIDType) else _signed_zeros
        yield from (f"partition field {place}: {fault}" for fault in _bound_faults(values, read, order))


_Order = Callable[[Any], tuple[object, ...]]
"""A value of a partition field -> its sort key."""


def _bound_faults(values: Sequence[object], ends: Mapping[str, object], order: _Order) -> Iterator[str]:
    held = [value for value in values if value is not None and value == value]
    if held and len(ends) < 2:
        yield "no bounds, though it holds values"
        return
    for value in held:
        if order(value) < order(ends["lower"]) or order(value) > order(ends["upper"]):
            yield f"holds {value}, outside of its bounds, {ends['lower']} to {ends['upper']}"
            return


def _signed_zeros(value: object) -> tuple[object, ...]:
    """A sort key by which -0.0 comes before 0.0, as in Java."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else (value,)


def _signed_halves(value: bytes) -> tuple[int, int]:
    """A sort key in the order of java.util.UUID.compareTo, by which Java plans. The audited code has its own."""
    return (int.from_bytes(value[:8], "big", signed=True), int.from_bytes(value[8:], "big", signed=True))
