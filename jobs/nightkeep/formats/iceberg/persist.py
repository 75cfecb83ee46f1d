"""Deletes of a task's data files -> positions in place of them; no data file is read for more than keys.

New positions hold everything the file's old ones did: at most one vector, or one position delete file, is left for
each data file (spec, "Delete Formats"). Which delete files that makes superfluous is decided when it is committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap64

from nightkeep.formats.iceberg.content_files import ContentFile, NewFile
from nightkeep.formats.iceberg.edits import IcebergEdit, Target
from nightkeep.formats.iceberg.hidden_rows import Marked, equality_rows, positional_rows
from nightkeep.formats.iceberg.naming import Naming
from nightkeep.formats.iceberg.paths import storage_name
from nightkeep.formats.iceberg.persist_plan import PersistTask
from nightkeep.formats.iceberg.places import data_location
from nightkeep.formats.iceberg.position_deletes import write_positions
from nightkeep.formats.iceberg.vectors import VectorWriter
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
    before = positional_rows(storage, changing)
    after = {path: rows | found.get(path, _NONE) for path, rows in before.items()}
    targets = [
        each for each in changing if each.file.path in task.folded or after[each.file.path] != before[each.file.path]
    ]
    files = [each.file for each in targets]
    added = _write(storage, task, {file: after[file.path] for file in files if after[file.path]}, run)
    edit = IcebergEdit(
        planned_sequence=task.planned_sequence,
        intent=task.intent,
        added=added,
        targets=tuple(_target(each) for each in targets),
        settled=task.settled,
    )
    outputs = tuple(dict.fromkeys(storage_name(new.path) for new in added))
    marked = sum(len(after[file.path]) - len(before[file.path]) for file in files)
    return Persisted(edit, outputs, marked, _findings(files, after))


_NONE = BitMap64()


def _target(marked: Marked) -> Target:
    return Target(marked.file.path, frozenset(delete.identity for delete in marked.held))


def _write(storage: Storage, task: PersistTask, rows: Mapping[ContentFile, BitMap64], run: Run) -> tuple[NewFile, ...]:
    """One file of all vectors, or a position delete file for each data file (spec, "Delete Formats")."""
    unit, naming = task.unit, Naming(run, task.unit.key)
    if unit.schema.format_version >= 3:
        writer = VectorWriter(storage, data_location(unit.schema, unit.spec_id, unit.values, naming.vectors()))
        for file, positions in rows.items():
            writer.add(file, positions)
        return writer.close()
    places = (data_location(unit.schema, unit.spec_id, unit.values, naming.deletes()) for _ in rows)
    pairs = zip(places, rows.items(), strict=True)
    return tuple(write_positions(storage, place, file, positions) for place, (file, positions) in pairs)


def _findings(files: Sequence[ContentFile], after: Mapping[str, BitMap64]) -> tuple[str, ...]:
    empty = sum(len(after[file.path]) == file.rows for file in files)
    return (f"{empty} data files without a visible row stay until they are optimized",) if empty else ()
