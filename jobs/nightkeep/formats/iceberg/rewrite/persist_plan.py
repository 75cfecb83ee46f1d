"""Deletes of a partition that are slow to read -> tasks that write positions instead. Metadata only.

Iceberg table spec, "Delete Formats". Equality deletes become positions. So do position deletes that are not of the
wanted kind: in format version 2 one file for one data file, and its only one; in version 3 a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.features import refuse_keys
from nightkeep.formats.iceberg.metadata.file_formats import delete_format
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.delete_matching import Matching, Probe, key_bytes, matchings, probes_of
from nightkeep.formats.iceberg.rewrite.hidden_rows import INDEX_BYTES, Marked, marked_files
from nightkeep.model import Estimate, Intent, Request
from nightkeep.protocol import Work

TASK_ROWS = 2_000_000
"""Rows of the data files whose keys a task reads, about a third of a second of work. Each task also reads the deleted
keys again, which takes a small part of that. A task's memory does not grow with its rows."""
_POSITION_BYTES = 4
"""Estimated bytes of a stored position: a vector takes less, a position delete file more."""


@dataclass(frozen=True, slots=True)
class PersistTask:
    """Data files of a unit whose deletes will become positions.

    `unit` has only what the task reads. `marked` are files that get new positions if `probes` match rows in them, or if
    they are in `folded`: their positional deletes are not of the wanted kind. `settled` are paths of files that need no
    equality delete once the task is done, whether in `marked` or not. The index of deleted keys is built in parts of
    `index_bytes`.
    """

    unit: IcebergUnit
    marked: tuple[Marked, ...]
    folded: frozenset[str]
    probes: tuple[Probe, ...]
    settled: frozenset[str]
    planned_sequence: int
    index_bytes: int
    intent: Intent


@dataclass(frozen=True, slots=True)
class _Picked:
    """The deletes of a unit that call for work. `older` are data files older than some equality delete.

    `idle` are deletes that apply to no data file of the table. `probes` are those of `matchings` for all files.
    """

    matchings: tuple[Matching, ...]
    probes: tuple[Probe, ...]
    marked: tuple[Marked, ...]
    folded: frozenset[str]
    older: tuple[ContentFile, ...]
    equality: tuple[ContentFile, ...]
    idle: tuple[ContentFile, ...]

    @property
    def deletes(self) -> tuple[ContentFile, ...]:
        """The deletes that tasks read."""
        probed = {delete.identity: delete for probe in self.probes for delete in probe.deletes}
        held = {each.identity: each for marked in self.marked for each in marked.held}
        return tuple((probed | held).values())


def persist_deletes(snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request) -> Work[PersistTask] | None:
    """Work for a unit with equality deletes, with position deletes of an unwanted kind, or with idle deletes."""
    if unit.left_out:
        return None
    deletes = _find(snapshot, unit)
    if not (deletes.equality or deletes.folded or deletes.idle):
        return None
    tasks = _tasks(deletes, unit, request, snapshot.sequence_number)
    read = deletes.deletes
    probed = {file.path: file for probe in deletes.probes for file in probe.files}
    keys = sum(key_bytes(file, probe.field_ids) for probe in deletes.probes for file in probe.files)
    size = sum(delete.content_bytes or delete.bytes for delete in read) + keys
    return Work(
        reason=_reason(deletes),
        input_files=tuple(dict.fromkeys(file.name for file in (*read, *deletes.idle, *probed.values()))),
        input_bytes=size,
        estimate=Estimate(size, _written_bytes(deletes), _files_after(unit, deletes, len(tasks)), _benefit(deletes)),
        tasks=tasks,
        # A global delete can only be removed by a commit that settles all partitions.
        together="global" if any(unit.schema.is_global(each.spec_id) for each in unit.equality) else None,
    )


def refuse_persisting(snapshot: IcebergSnapshot, request: Request) -> None:
    """Raises RefusedTable for equality deletes by columns whose values readers compare differently.

    For example a field within a null struct is null by the specification, but another key in Java.
    """
    schema, deletes = snapshot.schema, [delete for unit in snapshot.units for delete in unit.equality]
    refuse_keys(schema, deletes)
    top = {field.field_id: field for each in schema.schemas.values() for field in each.fields}
    for number in sorted({number for delete in deletes for number in delete.equality_ids}):
        kind = schema.field(number).field_type
        what = "a field within another" if number not in top else None if kind.is_primitive else f"a {kind}"
        if what:
            feature = f"equality deletes by {schema.field(number).name}, {what}, of which readers differ"
            raise RefusedTable(snapshot.table.name, feature, "delete by columns of primitive types")


def refuse_delete_format(snapshot: IcebergSnapshot, request: Request) -> None:
    """Raises RefusedTable if the table has deletes, and position deletes would be in a format that is not written."""
    has_deletes = any(unit.equality or unit.positional for unit in snapshot.units)
    if has_deletes and snapshot.schema.format_version < 3:
        delete_format(snapshot.schema)


def is_unwanted(unit: IcebergUnit, delete: ContentFile) -> bool:
    """Whether a positional delete is not of the wanted kind: a vector, or a file for one data file."""
    return not delete.is_vector if unit.schema.format_version >= 3 else delete.referenced is None


def streaming_note(snapshot: IcebergSnapshot) -> str | None:
    """A note that the commit is a `delete`: a compaction that began before must not bring deleted rows back.

    Java rejects such a compaction for new position deletes only if their snapshot is a `delete` or an `overwrite`
    (MergingSnapshotProducer.java).
    """
    return (
        "commits as `delete`, so that compactions started before are rejected: "
        "Spark streaming readers of the table need streaming-skip-delete-snapshots=true"
    )


def left_out_note(snapshot: IcebergSnapshot) -> str | None:
    """A note on partitions left out for files that we cannot read; or the reason why no run can go on from here."""
    if snapshot.unread is not None:
        return f"a run would be refused: {snapshot.unread.feature}; {snapshot.unread.advice}"
    left_out = [unit for unit in snapshot.units if unit.left_out]
    if not left_out or left_out[0].left_out is None:
        return None
    names = ", ".join(str(unit.key) for unit in left_out[:3]) + (", ..." if len(left_out) > 3 else "")
    why = left_out[0].left_out
    return f"{len(left_out)} of {len(snapshot.units)} partitions are left out, {names}: {why.feature}; {why.advice}"


def filter_note(snapshot: IcebergSnapshot) -> str | None:
    """A note if a filter keeps global equality deletes: they are removed only when all partitions are done."""
    if len(snapshot.units) < 2:
        return None
    every = {delete.identity: delete for unit in snapshot.units for delete in unit.equality}
    count = sum(snapshot.schema.is_global(delete.spec_id) for delete in every.values())
    if not count:
        return None
    return f"{_files(count, 'equality delete file')} for all partitions: a filter leaves them in place"


def _find(snapshot: IcebergSnapshot, unit: IcebergUnit) -> _Picked:
    newest = max((delete.sequence_number for delete in unit.equality), default=-1)
    oldest = min((file.sequence_number for file in unit.files), default=newest)
    older = tuple(file for file in unit.files if file.sequence_number < newest)
    pairs = matchings(unit, older)
    probes = probes_of(pairs)
    every = marked_files(unit, unit.files)
    folded = frozenset(
        each.file.path for each in every if len(each.held) > 1 or any(is_unwanted(unit, held) for held in each.held)
    )
    needed = folded | {file.path for probe in probes for file in probe.files}
    held = {delete.identity for marked in every for delete in marked.held}
    return _Picked(
        matchings=pairs,
        probes=probes,
        marked=tuple(marked for marked in every if marked.file.path in needed),
        folded=folded,
        older=older,
        equality=tuple(delete for delete in unit.equality if delete.sequence_number > oldest),
        idle=(
            *(delete for delete in unit.positional if delete.identity not in held),
            *_idle_equality(snapshot, unit, oldest),
        ),
    )


def _idle_equality(snapshot: IcebergSnapshot, unit: IcebergUnit, oldest: int) -> tuple[ContentFile, ...]:
    """Equality deletes that apply to no data file: none in their scope is older. `oldest` is this unit's lowest number.

    The first unit removes the global ones.
    """
    schema = snapshot.schema
    own = [delete for delete in unit.equality if not schema.is_global(delete.spec_id)]
    idle = [delete for delete in own if delete.sequence_number <= oldest]
    if unit is snapshot.units[0] and len(own) < len(unit.equality):
        least = min((file.sequence_number for each in snapshot.units for file in each.files), default=None)
        shared = (delete for delete in unit.equality if schema.is_global(delete.spec_id))
        idle += [delete for delete in shared if least is None or delete.sequence_number <= least]
    return tuple(idle)


def _tasks(picked: _Picked, unit: IcebergUnit, request: Request, sequence: int) -> tuple[PersistTask, ...]:
    """Tasks of about equal rows. The first one also settles files that no task needs to read."""
    parts = _parts(picked.marked)
    every = frozenset(file.path for file in picked.older)
    idle = every - {marked.file.path for marked in picked.marked}
    index_bytes = min(INDEX_BYTES, max(1, request.task_bytes // 8))
    tasks = []
    for number, part in enumerate(parts):
        paths = frozenset(marked.file.path for marked in part)
        inner = probes_of(picked.matchings, paths)
        held = {delete.identity: delete for marked in part for delete in marked.held}
        equality = {delete.identity: delete for probe in inner for delete in probe.deletes}
        reads = replace(
            unit,
            files=tuple(marked.file for marked in part),
            positional=tuple(held.values()),
            equality=tuple(equality.values()),
        )
        older = every & paths
        settled = older | idle if number == 0 else older
        folded = picked.folded & paths
        tasks.append(PersistTask(reads, part, folded, inner, settled, sequence, index_bytes, Intent.of(request)))
    return tuple(tasks)


def _parts(marked: Sequence[Marked]) -> list[tuple[Marked, ...]]:
    """The files in parts of about equal rows, at least one part: a unit may only have deletes to remove."""
    rows = sum(each.file.rows for each in marked)
    parts: list[list[Marked]] = [[] for _ in range(max(1, min(len(marked), round(rows / TASK_ROWS))))]
    loads = [0] * len(parts)
    for each in sorted(marked, key=lambda each: (-each.file.rows, each.file.path)):
        lightest = loads.index(min(loads))
        parts[lightest].append(each)
        loads[lightest] += each.file.rows
    return [tuple(part) for part in parts]


def _written_bytes(picked: _Picked) -> int:
    deleted = sum(delete.rows for delete in picked.deletes)
    return _POSITION_BYTES * min(deleted, sum(marked.file.rows for marked in picked.marked))


def _files_after(unit: IcebergUnit, picked: _Picked, tasks: int) -> int:
    return min(tasks, len(picked.marked)) if unit.schema.format_version >= 3 else len(picked.marked)


def _reason(picked: _Picked) -> str:
    probed = {file.path for probe in picked.probes for file in probe.files}
    keys = sum(delete.rows for delete in picked.equality)
    reasons = [
        (
            picked.equality,
            f"{_files(len(picked.equality), 'equality delete file')} of {keys:,} keys for "
            f"{_files(len(picked.older), 'older data file')}, {len(probed)} of which may have such rows",
        ),
        (picked.folded, f"position deletes of {_files(len(picked.folded), 'data file')} in several places"),
        (picked.idle, f"{_files(len(picked.idle), 'delete file')} for no row of any data file"),
    ]
    return "; ".join(sentence for held, sentence in reasons if held)


def _benefit(picked: _Picked) -> str:
    benefits = [
        (picked.equality, f"readers compare no keys with {_files(len(picked.equality), 'equality delete file')}"),
        (picked.folded, "one place of positions for each data file"),
        (picked.idle, f"{_files(len(picked.idle), 'delete file')} fewer"),
    ]
    return ", ".join(sentence for held, sentence in benefits if held)


def _files(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
