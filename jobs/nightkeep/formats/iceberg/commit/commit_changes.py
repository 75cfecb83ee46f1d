"""Edits on top of a snapshot -> the files that a commit removes and adds. Pure.

Which deletes a commit makes superfluous is decided here, from the snapshot as it is when the commit is staged: others
may have added data files and deletes since the edits were planned. A delete never goes by its age alone: Java's
commits lose deletes that way (apache/iceberg issue 10312).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, NewFile
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.positional_deletes import (
    _NONE,
    Identity,
    positional_of,
)
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.model import UnitKey


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a commit does to the live files of its parent: `removed` as they are live in it, each once."""

    removed: tuple[ContentFile, ...]
    added: tuple[NewFile, ...]


@dataclass(frozen=True)
class Edits:
    """The edits of one commit together, and the units they are of."""

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
        """What is settled is so for equality deletes up to this."""
        return min(edit.planned_sequence for edit in self.every)

    @property
    def added(self) -> tuple[NewFile, ...]:
        return tuple(new for edit in self.every for new in edit.added)


def live_files(snapshot: IcebergSnapshot) -> Iterator[ContentFile]:
    """Every live file once: global equality deletes are in many units."""
    yield from {file.identity: file for file in (*_listed(snapshot), *snapshot.stray)}.values()


def _listed(snapshot: IcebergSnapshot) -> Iterator[ContentFile]:
    for unit in snapshot.units:
        yield from unit.files
        yield from unit.positional
        yield from unit.equality


def change_of(parent: IcebergSnapshot, edits: Edits) -> FileChange:
    """Raises CorruptMetadata where a data file that was rewritten is not live in `parent` any more."""
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
    """Position deletes and vectors of a touched unit that are replaced, or hold for no data file any more."""
    kept = tuple(file for file in unit.files if file.path not in edits.removed_data)
    holding = positional_of(replace(unit, files=kept))
    # Many data files have one and the same set.
    distinct = {(held, edits.folded.get(path, _NONE)) for path, held in holding.items()}
    waiting: set[Identity] = set()
    for held, folded in distinct:
        waiting |= held - folded
    for delete in unit.positional:
        if delete.identity in edits.removed_deletes or delete.identity not in waiting:
            yield delete


def _retired_equality(parent: IcebergSnapshot, units: Sequence[IcebergUnit], edits: Edits) -> Iterator[ContentFile]:
    """Equality deletes with no older data file in their scope whose rows may still be hidden by them alone."""
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
    """The least data sequence numbers in a scope: of all files, and of those that are not settled. None: no file."""

    of_any: int | None
    of_unsettled: int | None

    def nothing_older(self, sequence_number: int, planned_sequence: int) -> bool:
        """Equality deletes hold for data with a sequence number strictly below theirs."""
        # What is settled was looked at with the deletes of the planned snapshot.
        least = self.of_unsettled if sequence_number <= planned_sequence else self.of_any
        return least is None or least >= sequence_number


def _undecided(units: Iterable[IcebergUnit], edits: Edits, added: Iterable[NewFile]) -> _Undecided:
    kept = [file for unit in units for file in unit.files if file.path not in edits.removed_data]
    # Files that are added with the number of the commit are newer than every delete.
    new = [
        each.sequence_number for each in added if each.content is FileContent.DATA and each.sequence_number is not None
    ]
    any_ = [*new, *(file.sequence_number for file in kept)]
    unsettled = [*new, *(file.sequence_number for file in kept if file.path not in edits.settled)]
    return _Undecided(min(any_, default=None), min(unsettled, default=None))


def _within(new: NewFile, unit: IcebergUnit) -> bool:
    values: Any = new.raw["partition"]
    return identity(new.spec_id, values) == identity(unit.spec_id, unit.values)
