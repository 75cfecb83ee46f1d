"""Edits on top of a snapshot -> the files that a commit removes and adds. Pure.

Which deletes a commit makes superfluous is decided here, from the snapshot as it is when the commit is staged: others
may have added data files and deletes since the edits were planned. A delete never goes by its age alone: Java's
commits lose deletes that way (apache/iceberg issue 10312).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.content_files import Content, ContentFile, NewFile
from nightkeep.formats.iceberg.edits import IcebergEdit
from nightkeep.formats.iceberg.metadata import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.partition import identity
from nightkeep.model import UnitKey

Identity = tuple[str, int | None]
_NONE: frozenset[Identity] = frozenset()
_PATH_FIELD = 2_147_483_546
"""Reserved field id of file_path in position delete files (spec, "Reserved Field IDs")."""


@dataclass(frozen=True, slots=True)
class Change:
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
        return frozenset(file.path for file in files if file.content is Content.DATA)

    @cached_property
    def removed_deletes(self) -> frozenset[Identity]:
        files = (file for edit in self.every for file in edit.removed)
        return frozenset(file.identity for file in files if file.content is Content.POSITION_DELETES)

    @cached_property
    def folded(self) -> Mapping[str, frozenset[Identity]]:
        """Positional deletes that the commit replaces, by data file."""
        found: dict[str, frozenset[Identity]] = {}
        for target in (target for edit in self.every for target in edit.targets):
            found[target.path] = found.get(target.path, frozenset()) | target.folded
        return found

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


def positional_of(unit: IcebergUnit) -> Mapping[str, frozenset[Identity]]:
    """The position deletes or the vector that hold for each data file, by path (spec, "Scan Planning").

    A vector hides what position delete files say of its data file. One that speaks of several data files counts for
    those that its bounds do not rule out.
    """
    by_path: dict[str, list[ContentFile]] = {}
    for delete in unit.positional:
        by_path.setdefault(delete.referenced or "", []).append(delete)
    shared = _shared(unit.files, by_path.pop("", ()))
    found: dict[str, frozenset[Identity]] = {}
    for file in unit.files:
        own = [each for each in by_path.get(file.path, ()) if file.sequence_number <= each.sequence_number]
        vectors = [each for each in own if each.is_vector]
        held = frozenset(each.identity for each in vectors or own)
        found[file.path] = held if vectors else held | shared[file.path] if held else shared[file.path]
    return found


def _shared(files: Iterable[ContentFile], deletes: Sequence[ContentFile]) -> Mapping[str, frozenset[Identity]]:
    """Deletes of several data files that may name each of these, by path.

    Data files are taken in the order of their paths: between two ends of bounds all have the same deletes but for
    sequence numbers, and what is older than the same of them has one set.
    """
    ordered = sorted(files, key=_name)
    begun, ended = _turns([_name(file) for file in ordered], deletes)
    numbers = sorted({each.sequence_number for each in deletes})
    file_numbers = sorted({each.file_sequence_number for each in deletes})
    held: dict[int, ContentFile] = {}
    known: dict[tuple[int, int], frozenset[Identity]] = {}
    found: dict[str, frozenset[Identity]] = {}
    for at, file in enumerate(ordered):
        if at in begun or at in ended:
            known = {}
            for ordinal in ended.get(at, ()):
                del held[ordinal]
            held |= {ordinal: deletes[ordinal] for ordinal in begun.get(at, ())}
        age = (bisect_left(numbers, file.sequence_number), bisect_left(file_numbers, file.file_sequence_number))
        if age not in known:
            known[age] = frozenset(each.identity for each in held.values() if _may_name(each, file))
        found[file.path] = known[age]
    return found


_Turns = Mapping[int, Sequence[int]]
"""Ordinals of deletes by the place of a data file."""


def _turns(names: Sequence[bytes], deletes: Sequence[ContentFile]) -> tuple[_Turns, _Turns]:
    """At which of these sorted names each delete's bounds begin, and the first name that they end before."""
    begun: dict[int, list[int]] = {}
    ended: dict[int, list[int]] = {}
    for ordinal, delete in enumerate(deletes):
        low, high = _path_bounds(delete)
        start, stop = bisect_left(names, low), len(names) if high is None else bisect_right(names, high)
        if start < stop:
            begun.setdefault(start, []).append(ordinal)
            ended.setdefault(stop, []).append(ordinal)
    return begun, ended


def _name(file: ContentFile) -> bytes:
    return file.path.encode()


def _may_name(delete: ContentFile, file: ContentFile) -> bool:
    """Deletes name files that were there when they were written, and hold for those no newer than they are."""
    older = file.sequence_number <= delete.sequence_number
    return older and file.file_sequence_number <= delete.file_sequence_number


def _path_bounds(delete: ContentFile) -> tuple[bytes, bytes | None]:
    """Between which paths a position delete file's lie, as UTF-8; the upper one may be None, for any."""
    ends: list[bytes | None] = []
    for bound in ("lower_bounds", "upper_bounds"):
        told = delete.raw.get(bound)
        end = told.get(_PATH_FIELD) if isinstance(told, Mapping) else None
        ends.append(end if isinstance(end, bytes) else None)
    return ends[0] or b"", ends[1]


def change_of(parent: IcebergSnapshot, edits: Edits) -> Change:
    """Raises CorruptMetadata where a data file that was rewritten is not live in `parent` any more."""
    units = [parent.by_key[key] for key in edits.keys if key in parent.by_key]
    data = {file.path: file for unit in units for file in unit.files}
    lost = sorted(edits.removed_data - data.keys())
    if lost:
        subject = f"{parent.table.name} version {parent.version}"
        raise CorruptMetadata(subject, f"{lost[0]} as it was rewritten", "no such live file")
    gone = [data[path] for path in sorted(edits.removed_data)]
    deletes = [delete for unit in units for delete in retired_positional(unit, edits)]
    return Change((*gone, *deletes, *_retired_equality(parent, units, edits)), edits.added)


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
    new = [each.sequence_number for each in added if each.content is Content.DATA and each.sequence_number is not None]
    any_ = [*new, *(file.sequence_number for file in kept)]
    unsettled = [*new, *(file.sequence_number for file in kept if file.path not in edits.settled)]
    return _Undecided(min(any_, default=None), min(unsettled, default=None))


def _within(new: NewFile, unit: IcebergUnit) -> bool:
    values: Any = new.raw["partition"]
    return identity(new.spec_id, values) == identity(unit.spec_id, unit.values)
