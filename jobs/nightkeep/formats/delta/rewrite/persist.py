"""Deletion vectors of a partition -> fewer, fuller files of vectors. Data files are not read or written.

A file of vectors may hold vectors of several partitions. A replaced vector stays in it as unused bytes. Only vectors
that are kept are read. New vectors are allowed only where the table enables them (PROTOCOL.md, "Deletion Vectors").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nightkeep.clustering.sizing import is_gone
from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.deletes.vectors import DeltaVectorWriter, read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, Vector, VectorStorage
from nightkeep.formats.delta.metadata.naming import vector_folder
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.tuning import LIVE_VECTOR_SHARE, PACKED_VECTOR_FILES
from nightkeep.model import Estimate, Intent, Request, Run
from nightkeep.protocol import Work
from nightkeep.storage import Storage

_AROUND: int = 8
"""Bytes that a stored vector takes besides its payload: size and checksum."""

Files = tuple[DeltaDataFile, ...]


@dataclass(frozen=True, slots=True)
class VectorTask:
    """One task on a unit's files.

    `gone` have no live rows and are removed. `empty` have a vector of no rows and lose it. The vectors of `packed` are
    copied to a new file.
    """

    unit: DeltaUnit
    gone: Files
    empty: Files
    packed: Files
    intent: Intent

    @property
    def inputs(self) -> Files:
        return (*self.gone, *self.empty, *self.packed)


def prune_vectors(snapshot: DeltaSnapshot, unit: DeltaUnit, request: Request) -> Work[VectorTask] | None:
    """Work that removes files without live rows, drops vectors of no rows, and packs scattered vectors into one file.

    Vectors are packed if the partition's vectors lie in PACKED_VECTOR_FILES files or more (two with `request.full`), or
    if less than LIVE_VECTOR_SHARE of a file is in use.
    """
    gone = tuple(file for file in unit.files if is_gone(file))
    empty = tuple(file for file in unit.files if file.vector and not file.vector.rows and not is_gone(file))
    packed = _to_pack(snapshot, unit, request) if snapshot.schema.writes_vectors else ()
    task = VectorTask(unit, gone, empty, packed, Intent.of(request))
    if not task.inputs:
        return None
    places = {_place(file) for file in packed}
    size = sum(file.vector.bytes for file in packed if file.vector)
    return Work(
        reason=_reason(task, len(places)),
        input_files=tuple(file.name for file in task.inputs),
        input_bytes=size,
        estimate=Estimate(
            size,
            size,
            1 if packed else 0,
            _benefit(task, len(places)),
            more_files=-len(gone),
            more_bytes=-sum(file.bytes for file in gone),
        ),
        tasks=(task,),
    )


def refuse_new_vectors(snapshot: DeltaSnapshot, request: Request) -> None:
    """Raises RefusedTable if vectors are scattered, nothing can be pruned, and the table does not allow new vectors."""
    if snapshot.schema.writes_vectors:
        return
    pruned = any(prune_vectors(snapshot, unit, request) for unit in snapshot.units)
    if not pruned and any(_are_scattered(_kept(unit), request) for unit in snapshot.units):
        feature = "its deletion vectors are scattered, and new ones are not enabled (delta.enableDeletionVectors)"
        raise RefusedTable(snapshot.table.name, feature, "set it to true, or purge the vectors with optimize")


def persist(storage: Storage, task: VectorTask, run: Run) -> tuple[DeltaEdit, tuple[str, ...]]:
    """The edit, and the names of the new files of vectors."""
    writer = DeltaVectorWriter(storage, vector_folder(run))
    moved = [_with_vector(file, writer.add(read_vector(storage, file))) for file in task.packed]
    added = (*(_with_vector(file, None) for file in task.empty), *moved)
    return DeltaEdit(task.inputs, added, task.intent), writer.close()


def _to_pack(snapshot: DeltaSnapshot, unit: DeltaUnit, request: Request) -> Files:
    kept = _kept(unit)
    if _are_scattered(kept, request):
        return kept
    sparse = {place for place, share in _used(snapshot).items() if share < LIVE_VECTOR_SHARE}
    return tuple(file for file in kept if _place(file) in sparse)


def _kept(unit: DeltaUnit) -> Files:
    """Files with live rows whose vector hides some rows and is stored in a file, not inline."""
    return tuple(file for file in unit.files if _place(file) and file.deleted_rows and not is_gone(file))


def _are_scattered(kept: Files, request: Request) -> bool:
    return len({_place(file) for file in kept}) >= (2 if request.full else PACKED_VECTOR_FILES)


def _used(snapshot: DeltaSnapshot) -> Mapping[str, float]:
    """The share in use of each file of vectors: bytes of live vectors, divided by the end of the last of them."""
    live: dict[str, dict[int, int]] = {}
    for file in (file for unit in snapshot.units for file in unit.files):
        if file.vector is not None and file.vector.offset is not None:
            live.setdefault(file.vector.place, {})[file.vector.offset] = file.vector.bytes + _AROUND
    ends = {place: max(offset + size for offset, size in held.items()) for place, held in live.items()}
    return {place: sum(held.values()) / ends[place] for place, held in live.items()}


def _place(file: DeltaDataFile) -> str | None:
    """The place of the file that holds the vector. None without a vector, or for an inline one."""
    return None if file.vector is None or file.vector.kind is VectorStorage.INLINE else file.vector.place


def _with_vector(file: DeltaDataFile, vector: Vector | None) -> Mapping[str, object]:
    """The file's add action with this vector, or none. Rows, statistics and row ids stay."""
    kept = {key: value for key, value in file.raw.items() if key != "deletionVector"} | {"dataChange": False}
    return kept if vector is None else kept | {"deletionVector": vector.descriptor}


def _reason(task: VectorTask, places: int) -> str:
    sentences = [
        (task.packed, f"{len(task.packed)} deletion vectors scattered over {places} files"),
        (task.empty, f"{len(task.empty)} of no rows"),
        (task.gone, f"{len(task.gone)} that hide every row of their file"),
    ]
    return "; ".join(sentence for held, sentence in sentences if held)


def _benefit(task: VectorTask, places: int) -> str:
    sentences = [
        (task.packed, f"readers open 1 file of vectors for {places}"),
        (task.empty or task.gone, f"{len(task.empty) + len(task.gone)} vectors fewer"),
    ]
    return ", ".join(sentence for held, sentence in sentences if held)
