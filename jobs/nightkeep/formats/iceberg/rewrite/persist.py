"""Deletes of a task's data files -> positions in place of them; no data file is read for more than keys.

New positions hold everything the file's old ones did: at most one vector, or one position delete file, is left for
each data file (spec, "Delete Formats"). Which delete files that makes superfluous is decided when it is committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap64

from nightkeep.formats.iceberg.deletes.position_deletes import write_positions
from nightkeep.formats.iceberg.deletes.vectors import PuffinVectorWriter
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, NewFile
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
    """What a task did: `outputs` are names of files that nothing refers to yet, `marked` the rows newly hidden by
    position, `findings` what an operator should know."""

    edit: IcebergEdit
    outputs: tuple[str, ...]
    marked: int
    findings: tuple[str, ...]


def persist(storage: Storage, task: PersistTask, run: Run) -> Persisted:
    """Find what equality deletes hide, and write it together with what positions hid already.

    A data file all of whose rows are hidden stays, with positions of all its rows: no data file is removed here.
    Raises CorruptMetadata and MissingFile naming the file that is not as its manifest says.
    """
    found = equality_rows(storage, task.unit.schema, task.probes, index_bytes=task.index_bytes)
    # Positions are read of no file that stays as it is.
    changing = [each for each in task.marked if each.file.path in task.folded or each.file.path in found]
    held = positional_rows(storage, changing)
    folds = [_fold(task.unit, each, held[each.file.path], found.get(each.file.path, _NONE)) for each in changing]
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
    """`rows` are the new positions of a data file, none where it gets no new ones; `marked` were not hidden by
    position before. `replaced` are the positional deletes that readers no longer need for it."""

    file: ContentFile
    rows: BitMap64
    replaced: frozenset[tuple[str, int | None]]
    marked: int


def _fold(unit: IcebergUnit, marked: Marked, held: Mapping[ContentFile, BitMap64], found: BitMap64) -> _Fold:
    before = BitMap64.union(_NONE, _NONE, *held.values())
    after = before | found
    telling = [delete for delete, rows in held.items() if rows]
    every = frozenset(delete.identity for delete in marked.held)
    if after != before or len(telling) > 1 or any(is_unwanted(unit, delete) for delete in telling):
        return _Fold(marked.file, after, every, len(after) - len(before))
    # All that is hidden is told in one good place already: what else may hold for the file says nothing of it.
    return _Fold(marked.file, _NONE, every - {delete.identity for delete in telling}, 0)


def _write(storage: Storage, unit: IcebergUnit, rows: Mapping[ContentFile, BitMap64], run: Run) -> tuple[NewFile, ...]:
    """One file of all vectors, or a position delete file for each data file (spec, "Delete Formats")."""
    naming = IcebergNaming(run, unit.key)
    if unit.schema.format_version >= 3:
        writer = PuffinVectorWriter(storage, data_location(unit.schema, unit.spec_id, unit.values, naming.vectors()))
        for file, positions in rows.items():
            writer.add(file, positions)
        return writer.close()
    places = (data_location(unit.schema, unit.spec_id, unit.values, naming.deletes()) for _ in rows)
    pairs = zip(places, rows.items(), strict=True)
    return tuple(write_positions(storage, place, file, positions) for place, (file, positions) in pairs)


def _findings(folds: Sequence[_Fold]) -> tuple[str, ...]:
    empty = sum(len(each.rows) == each.file.rows for each in folds)
    return (f"{empty} data files without a visible row stay until they are optimized",) if empty else ()
