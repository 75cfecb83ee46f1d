"""Deletes of a task's data files -> one positional delete per data file. Of data files only key columns are read.

The new positions include all old ones of the data file: it is left with at most one vector or one position delete file
(spec, "Delete Formats"). The commit decides which delete files are then no longer needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap64

from nightkeep.formats.iceberg.deletes.position_deletes import write_positions
from nightkeep.formats.iceberg.deletes.vectors import PuffinVectorWriter
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, NewFile
from nightkeep.formats.iceberg.metadata.file_formats import delete_format
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.new_locations import data_location
from nightkeep.formats.iceberg.metadata.pending_changes import DeleteTarget, IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.hidden_rows import Marked, equality_rows, positional_rows
from nightkeep.formats.iceberg.rewrite.persist_plan import PersistTask, is_unwanted
from nightkeep.model import Run
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class Persisted:
    """The result of a task. `outputs` are names of new files that no version refers to yet.

    `marked` counts the rows newly deleted by position, `findings` are messages for the operator.
    """

    edit: IcebergEdit
    outputs: tuple[str, ...]
    marked: int
    findings: tuple[str, ...]


def persist(storage: Storage, task: PersistTask, run: Run) -> Persisted:
    """Write the positions that equality deletes delete, together with those already deleted by position.

    A data file without live rows stays, with all its positions deleted: no data file is removed here. Raises
    CorruptMetadata and MissingFile naming a file that contradicts its manifest entry.
    """
    deleted = equality_rows(storage, task.unit.schema, task.probes, index_bytes=task.index_bytes)
    # Read the old positions of changing files only.
    changing = [each for each in task.marked if each.file.path in task.folded or each.file.path in deleted]
    held = positional_rows(storage, changing)
    folds = [_fold(task.unit, each, held[each.file.path], deleted.get(each.file.path, _NONE)) for each in changing]
    added = _write(storage, task.unit, {each.file: each.rows for each in folds if each.rows}, run)
    edit = IcebergEdit(
        planned_sequence=task.planned_sequence,
        intent=task.intent,
        added=added,
        targets=tuple(DeleteTarget(each.file.path, each.replaced) for each in folds if each.rows or each.replaced),
        settled=task.settled,
    )
    outputs = tuple(dict.fromkeys(storage_name(new.path) for new in added))
    return Persisted(edit, outputs, sum(each.marked for each in folds), _findings(folds))


_NONE = BitMap64()


@dataclass(frozen=True, slots=True)
class _Fold:
    """The change to one data file. `rows` are all its deleted positions, empty if nothing is to be written for it.

    `marked` counts positions that were not deleted before. `replaced` are identities of the positional deletes that
    readers no longer need for it.
    """

    file: ContentFile
    rows: BitMap64
    replaced: frozenset[tuple[str, int | None]]
    marked: int


def _fold(unit: IcebergUnit, marked: Marked, held: Mapping[ContentFile, BitMap64], matched: BitMap64) -> _Fold:
    before = BitMap64.union(_NONE, _NONE, *held.values())
    after = before | matched
    deleting = [delete for delete, rows in held.items() if rows]
    every = frozenset(delete.identity for delete in marked.held)
    if after != before or len(deleting) > 1 or any(is_unwanted(unit, delete) for delete in deleting):
        return _Fold(marked.file, after, every, len(after) - len(before))
    # One delete of the wanted kind already has all positions. Other deletes have no position in this file.
    return _Fold(marked.file, _NONE, every - {delete.identity for delete in deleting}, 0)


def _write(storage: Storage, unit: IcebergUnit, rows: Mapping[ContentFile, BitMap64], run: Run) -> tuple[NewFile, ...]:
    """Write one Puffin file with all vectors, or one position delete file per data file (spec, "Delete Formats")."""
    naming = IcebergNaming(run, unit.key)
    if unit.schema.format_version >= 3:
        writer = PuffinVectorWriter(storage, data_location(unit.schema, unit.spec_id, unit.values, naming.vectors()))
        for file, positions in rows.items():
            writer.add(file, positions)
        return writer.close()
    kind = delete_format(unit.schema)
    places = (data_location(unit.schema, unit.spec_id, unit.values, naming.deletes(kind)) for _ in rows)
    pairs = zip(places, rows.items(), strict=True)
    return tuple(write_positions(storage, place, file, held, file_format=kind) for place, (file, held) in pairs)


def _findings(folds: Sequence[_Fold]) -> tuple[str, ...]:
    empty = sum(len(each.rows) == each.file.rows for each in folds)
    return (f"{empty} data files without a visible row stay until they are optimized",) if empty else ()
