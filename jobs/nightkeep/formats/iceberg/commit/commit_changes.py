"""Edits and the parent snapshot -> the files that a commit removes and adds. Pure.

Decides which deletes are no longer needed, from the snapshot that the commit is staged on: other writers may have added
data files and deletes since the plan. A delete is never removed by its age alone: Java's commits lose deletes that way
(apache/iceberg issue 10312).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, NewFile
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.positional_deletes import _NONE, Identity, positional_of
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.model import UnitKey


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a commit does to the live files of its parent. `removed` has each file once, as it is live in the parent."""

    removed: tuple[ContentFile, ...]
    added: tuple[NewFile, ...]


@dataclass(frozen=True)
class Edits:
    """All edits of one commit, and the keys of their units."""

    every: tuple[IcebergEdit, ...]
    keys: tuple[UnitKey, ...]

    @cached_property
    def removed_data(self) -> frozenset[str]:
        files = (file for edit in self.every for file in edit.removed)
        return frozenset(file.path for file in files if file.content is FileContent.DATA)

    @cached_property
    def removed_deletes(self) -> frozenset[Identity]:
        files = (file for edit in self.every for file in edit.removed)
        return frozenset(file.identity for file in files if file.content is FileContent.POSITION_DELETES)

    @cached_property
    def folded(self) -> Mapping[str, frozenset[Identity]]:
        """Positional deletes that the commit replaces, by data file."""
        folded: dict[str, frozenset[Identity]] = {}
        for target in (target for edit in self.every for target in edit.targets):
            folded[target.path] = folded.get(target.path, frozenset()) | target.folded
        return folded

    @cached_property
    def settled(self) -> frozenset[str]:
        return frozenset().union(*(edit.settled for edit in self.every))

    @cached_property
    def planned_sequence(self) -> int:
        """The edits considered equality deletes up to this sequence number."""
        return min(edit.planned_sequence for edit in self.every)

    @property
    def added(self) -> tuple[NewFile, ...]:
        return tuple(new for edit in self.every for new in edit.added)


def live_files(snapshot: IcebergSnapshot) -> Iterator[ContentFile]:
    """Every live file once. A global equality delete is listed in many units."""
    yield from {file.identity: file for file in (*_listed(snapshot), *snapshot.stray)}.values()


def _listed(snapshot: IcebergSnapshot) -> Iterator[ContentFile]:
    for unit in snapshot.units:
        yield from unit.files
        yield from unit.positional
        yield from unit.equality


def change_of(parent: IcebergSnapshot, edits: Edits) -> FileChange:
    """The change of `parent`'s files. Raises CorruptMetadata if a rewritten data file is no longer live in it."""
    units = [parent.by_key[key] for key in edits.keys if key in parent.by_key]
    data = {file.path: file for unit in units for file in unit.files}
    lost = sorted(edits.removed_data - data.keys())
    if lost:
        subject = f"{parent.table.name} version {parent.version}"
        raise CorruptMetadata(subject, f"{lost[0]} as it was rewritten", "no such live file")
    gone = [data[path] for path in sorted(edits.removed_data)]
    deletes = [delete for unit in units for delete in retired_positional(unit, edits)]
    return FileChange((*gone, *deletes, *_retired_equality(parent, units, edits)), edits.added)


def retired_positional(unit: IcebergUnit, edits: Edits) -> Iterator[ContentFile]:
    """Position deletes and vectors of a changed unit that the commit replaces, or that apply to no data file."""
    kept = tuple(file for file in unit.files if file.path not in edits.removed_data)
    holding = positional_of(replace(unit, files=kept))
    # Many data files share one set: check each set once.
    distinct = {(held, edits.folded.get(path, _NONE)) for path, held in holding.items()}
    waiting: set[Identity] = set()
    for held, folded in distinct:
        waiting |= held - folded
    for delete in unit.positional:
        if delete.identity in edits.removed_deletes or delete.identity not in waiting:
            yield delete


def _retired_equality(parent: IcebergSnapshot, units: Sequence[IcebergUnit], edits: Edits) -> Iterator[ContentFile]:
    """Equality deletes that are no longer needed.

    No older data file in their scope may still have a row that only they delete.
    """
    everywhere: _Undecided | None = None
    seen: set[Identity] = set()
    for unit in units:
        here = _undecided([unit], edits, (new for new in edits.added if _within(new, unit)))
        for delete in unit.equality:
            if delete.identity in seen:
                continue
            seen.add(delete.identity)
            if parent.schema.is_global(delete.spec_id):
                everywhere = everywhere or _undecided(parent.units, edits, edits.added)
                scope = everywhere
            else:
                scope = here
            if scope.nothing_older(delete.sequence_number, edits.planned_sequence):
                yield delete


@dataclass(frozen=True, slots=True)
class _Undecided:
    """The lowest data sequence numbers in a scope: of all data files, and of those not settled. None: no file."""

    of_any: int | None
    of_unsettled: int | None

    def nothing_older(self, sequence_number: int, planned_sequence: int) -> bool:
        """Whether no data file left to check has a sequence number below that of the equality delete."""
        # Files are settled only for the deletes of the planned snapshot; for newer deletes every file counts.
        least = self.of_unsettled if sequence_number <= planned_sequence else self.of_any
        return least is None or least >= sequence_number


def _undecided(units: Iterable[IcebergUnit], edits: Edits, added: Iterable[NewFile]) -> _Undecided:
    kept = [file for unit in units for file in unit.files if file.path not in edits.removed_data]
    # Files that inherit the commit's sequence number are newer than every delete.
    new = [
        each.sequence_number for each in added if each.content is FileContent.DATA and each.sequence_number is not None
    ]
    any_ = [*new, *(file.sequence_number for file in kept)]
    unsettled = [*new, *(file.sequence_number for file in kept if file.path not in edits.settled)]
    return _Undecided(min(any_, default=None), min(unsettled, default=None))


def _within(new: NewFile, unit: IcebergUnit) -> bool:
    return identity(new.spec_id, new.partition) == identity(unit.spec_id, unit.values)
