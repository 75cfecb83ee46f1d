"""Parent and staged snapshot -> faults of files, deletes, sequence numbers, row ids and totals.

Every number is computed again from staged bytes: results that the rewrite or the staging reported are not used. The
readers of metadata, data files and vectors are shared with the rewrite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from pyroaring import BitMap64

from nightkeep.errors import naming
from nightkeep.formats.iceberg.data.partition_values import require_partition_values
from nightkeep.formats.iceberg.gate.delete_audit import delete_faults, new_delete_faults
from nightkeep.formats.iceberg.gate.file_audit import file_faults
from nightkeep.formats.iceberg.gate.lineage_audit import row_id_faults
from nightkeep.formats.iceberg.gate.live_files import changed_fields, live_files
from nightkeep.formats.iceberg.gate.manifest_audit import manifest_faults
from nightkeep.formats.iceberg.gate.order_audit import overlap_faults, stated_order_faults
from nightkeep.formats.iceberg.gate.scan import rows
from nightkeep.formats.iceberg.gate.snapshot_audit import counts
from nightkeep.formats.iceberg.metadata.content_files import FileContent
from nightkeep.formats.iceberg.metadata.moved_units import moved_files
from nightkeep.formats.iceberg.metadata.snapshot import NO_SNAPSHOT, IcebergSnapshot, IcebergUnit
from nightkeep.gate.listing import listing_faults
from nightkeep.gate.untouched import stray_changes
from nightkeep.model import UnitKey
from nightkeep.protocol import Positions, Show
from nightkeep.storage import Storage

_NONE: Final = BitMap64()
_TOTALS = ("data-files", "delete-files", "records", "files-size", "position-deletes", "equality-deletes")


def version_faults(
    storage: Storage, parent: IcebergSnapshot, candidate: IcebergSnapshot, touched: Sequence[UnitKey]
) -> tuple[str, ...]:
    """Faults of the version: changes outside the touched partitions, and numbers that disagree."""
    return (
        *_snapshot_faults(parent, candidate),
        *manifest_faults(storage, parent, candidate),
        *_file_faults(parent, candidate, touched),
        *delete_faults(parent, candidate, touched),
        *_sequence_faults(parent, candidate),
        *row_id_faults(parent, candidate),
        *_order_faults(storage, parent, candidate, touched),
        *_move_faults(parent, candidate, touched),
        *_total_faults(parent, candidate),
    )


def _snapshot_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    parent_id = candidate.parent_version if candidate.parent_version is not None else NO_SNAPSHOT
    if parent_id != parent.version:
        yield f"parent {parent_id}, expected {parent.version}"
    if candidate.schema.format_version == 1:
        if candidate.sequence_number or "sequence-number" in candidate.raw:
            yield f"sequence number {candidate.sequence_number}, expected none in format version 1"
    elif candidate.sequence_number <= parent.sequence_number:
        yield f"sequence number {candidate.sequence_number}, expected above its parent's, {parent.sequence_number}"
    if candidate.timestamp_ms < parent.timestamp_ms:
        yield f"made at {candidate.timestamp_ms}, before its parent, at {parent.timestamp_ms}"
    schemas = [side.schema.current.schema_id for side in (parent, candidate)]
    if schemas[0] != schemas[1]:
        yield f"schema {schemas[1]}, expected its parent's, {schemas[0]}"
    if candidate.operation not in ("delete", "replace"):
        yield f"operation {candidate.operation}, expected one that shows the same rows"


def _file_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Faults unless files in both snapshots are equal in every field, and untouched partitions have the same files."""
    before, after = live_files(parent), live_files(candidate)
    for file in before.keys() & after.keys():
        changed = changed_fields(before[file], after[file])
        if changed:
            yield f"{file[0]}: {', '.join(changed)} changed, though its bytes did not"

    moved = moved_files([candidate.by_key[key] for key in touched])

    def is_same(left: IcebergUnit | None, right: IcebergUnit | None) -> bool:
        return _own_files(left, parent) == _own_files(right, candidate) - moved

    yield from stray_changes(parent.by_key, candidate.by_key, touched, is_same)
    paths = Counter(file.path for unit in candidate.units for file in unit.files)
    yield from (f"{path}: live {times} times" for path, times in paths.items() if times > 1)


def _own_files(unit: IcebergUnit | None, snapshot: IcebergSnapshot) -> frozenset[tuple[str, int | None]]:
    """Files of a unit without global equality deletes: a commit removes those when no partition needs them."""
    if unit is None:
        return frozenset()
    own = (file for file in unit.equality if not snapshot.schema.is_global(file.spec_id))
    return frozenset(file.identity for file in (*unit.files, *unit.positional, *own))


def _sequence_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults in sequence numbers of new files.

    Rewritten data must not be newer than the parent, so that newer deletes still apply. Deletes have the commit's own.
    """
    before, own = live_files(parent), candidate.sequence_number
    for file in (file for file in live_files(candidate).values() if file.identity not in before):
        if file.snapshot_id != candidate.version or file.file_sequence_number != own:
            yield f"{file.path}: added with {file.file_sequence_number} by {file.snapshot_id}, expected {own} and us"
        if file.content is FileContent.DATA and file.sequence_number > parent.sequence_number:
            yield f"{file.path}: sequence number {file.sequence_number}, newer than deletes that its rows may miss"
        if file.content is not FileContent.DATA and file.sequence_number != own:
            yield f"{file.path}: sequence number {file.sequence_number}, expected the commit's, {own}"


def _move_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Faults unless the files of a unit that moved are all gone, and those with its rows are of the current spec."""
    for unit in (candidate.by_key[key] for key in touched):
        if not unit.moved:
            continue
        stay = {file.path for file in unit.files} & {file.path for file in parent.by_key[unit.key].files}
        yield from (f"{path}: stays in {unit.key}, whose rows moved" for path in sorted(stay))
        for other in (each for each in unit.moved if each.spec_id != candidate.schema.default_spec_id):
            yield f"{other.key}: has rows of {unit.key}, expected them in spec {candidate.schema.default_spec_id}"


def _order_faults(
    storage: Storage, parent: IcebergSnapshot, candidate: IcebergSnapshot, touched: Sequence[UnitKey]
) -> Iterator[str]:
    """Faults of the order that new data files name. Rows within a file are compared where they are decoded. Files that
    moved name none."""
    before = live_files(parent).keys() | moved_files([candidate.by_key[key] for key in touched])
    for unit in candidate.units:
        new = [file for file in unit.files if file.identity not in before]
        yield from stated_order_faults(candidate, new)
        yield from overlap_faults(storage, unit, new)


def _total_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults in the summary's totals: the parent's total plus the change, or a new count if that is negative."""
    before, after = (counts(live_files(side).values()) for side in (parent, candidate))
    for end in _TOTALS:
        totals = [side.summary.get(f"total-{end}", "") for side in (parent, candidate)]
        moved = int(totals[0]) + after[end] - before[end] if totals[0].isdecimal() else -1
        expected = after[end] if moved < 0 else moved
        if totals[1] != str(expected):
            yield f"summary: total-{end} {totals[1] or 'missing'}, expected {expected}"


def unit_faults(
    storage: Storage, base: IcebergUnit, candidate: IcebergUnit, positions: Positions, show: Show
) -> tuple[str, ...]:
    """Faults of the new files of one touched partition, whose rows at `positions` are shown. Data files of the base are
    read for these alone."""
    require_partition_values(storage, base.schema, base.files)
    before = {file.identity for file in (*base.files, *base.positional)}
    fresh = [file for file in candidate.files if file.identity not in before]
    deletes = [file for file in candidate.positional if file.identity not in before]
    new_names = {file.name for file in fresh}
    for batch in rows(storage, candidate, {name: at for name, at in positions.items() if name not in new_names}):
        show(batch)
    with naming(candidate.key, "rows as their schema promises"):
        return (
            *listing_faults(
                storage, {file.name: file.bytes for file in (*candidate.files, *deletes)}, source="the manifest"
            ),
            *new_delete_faults(storage, candidate, deletes),
            *(
                fault
                for file in fresh
                for fault in file_faults(storage, candidate, file, live=positions.get(file.name, _NONE), show=show)
            ),
        )
