"""Position deletes and vectors of a unit -> which of them hold for each data file (spec, "Scan Planning"). Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit

Identity = tuple[str, int | None]


_NONE: frozenset[Identity] = frozenset()


_PATH_FIELD = 2_147_483_546
"""Reserved field id of file_path in position delete files (spec, "Reserved Field IDs")."""


def positional_of(unit: IcebergUnit) -> Mapping[str, frozenset[Identity]]:
    """The position deletes or the vector that hold for each data file, by path (spec, "Scan Planning").

    A vector hides what position delete files say of its data file. One that speaks of several data files counts for
    those that its bounds do not rule out.
    """
    by_path: dict[str, list[ContentFile]] = {}
    for delete in unit.positional:
        by_path.setdefault(delete.referenced or "", []).append(delete)
    shared = _shared(unit.files, by_path.pop("", ()))
    by_file: dict[str, frozenset[Identity]] = {}
    for file in unit.files:
        own = [each for each in by_path.get(file.path, ()) if file.sequence_number <= each.sequence_number]
        vectors = [each for each in own if each.is_vector]
        held = frozenset(each.identity for each in vectors or own)
        by_file[file.path] = held if vectors else held | shared[file.path] if held else shared[file.path]
    return by_file


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
    by_file: dict[str, frozenset[Identity]] = {}
    for at, file in enumerate(ordered):
        if at in begun or at in ended:
            known = {}
            for ordinal in ended.get(at, ()):
                del held[ordinal]
            held |= {ordinal: deletes[ordinal] for ordinal in begun.get(at, ())}
        age = (bisect_left(numbers, file.sequence_number), bisect_left(file_numbers, file.file_sequence_number))
        if age not in known:
            known[age] = frozenset(each.identity for each in held.values() if _may_name(each, file))
        by_file[file.path] = known[age]
    return by_file


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
        bounds = delete.raw.get(bound)
        end = bounds.get(_PATH_FIELD) if isinstance(bounds, Mapping) else None
        ends.append(end if isinstance(end, bytes) else None)
    return ends[0] or b"", ends[1]
