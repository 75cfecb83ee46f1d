"""Position deletes and vectors of a unit -> those that apply to each data file (spec, "Scan Planning"). Pure."""

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
    """The identities of the position delete files or the vector that apply to each data file, by path.

    A vector replaces all position delete files for its data file. A position delete file for several data files
    counts for each data file that its bounds do not exclude.
    """
    if not unit.positional:
        return dict.fromkeys((file.path for file in unit.files), frozenset())
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
    """For each data file, by path, the deletes of several data files that may name it.

    Sweeps over the data files in the order of their paths. Between two ends of bounds the candidate deletes stay the
    same. Data files that compare alike with all sequence numbers of the deletes then share one set.
    """
    ordered = sorted(files, key=_name)
    started, ended = _turns([_name(file) for file in ordered], deletes)
    numbers = sorted({each.sequence_number for each in deletes})
    file_numbers = sorted({each.file_sequence_number for each in deletes})
    held: dict[int, ContentFile] = {}
    by_age: dict[tuple[int, int], frozenset[Identity]] = {}
    by_file: dict[str, frozenset[Identity]] = {}
    for at, file in enumerate(ordered):
        if at in started or at in ended:
            by_age = {}
            for ordinal in ended.get(at, ()):
                del held[ordinal]
            held |= {ordinal: deletes[ordinal] for ordinal in started.get(at, ())}
        age = (bisect_left(numbers, file.sequence_number), bisect_left(file_numbers, file.file_sequence_number))
        if age not in by_age:
            by_age[age] = frozenset(delete.identity for delete in held.values() if _may_name(delete, file))
        by_file[file.path] = by_age[age]
    return by_file


_Turns = Mapping[int, Sequence[int]]
"""Indexes of deletes, by the index of a data file in the order of paths."""


def _turns(names: Sequence[bytes], deletes: Sequence[ContentFile]) -> tuple[_Turns, _Turns]:
    """For the sorted `names`: the deletes whose bounds begin at each index, and those whose bounds ended before it."""
    started: dict[int, list[int]] = {}
    ended: dict[int, list[int]] = {}
    for ordinal, delete in enumerate(deletes):
        low, high = _path_bounds(delete)
        start, stop = bisect_left(names, low), len(names) if high is None else bisect_right(names, high)
        if start < stop:
            started.setdefault(start, []).append(ordinal)
            ended.setdefault(stop, []).append(ordinal)
    return started, ended


def _name(file: ContentFile) -> bytes:
    return file.path.encode()


def _may_name(delete: ContentFile, file: ContentFile) -> bool:
    """Whether a delete may name a data file: by both sequence numbers, the data file is not newer than the delete."""
    older = file.sequence_number <= delete.sequence_number
    return older and file.file_sequence_number <= delete.file_sequence_number


def _path_bounds(delete: ContentFile) -> tuple[bytes, bytes | None]:
    """The lower and upper bound of a position delete file's paths, as UTF-8; an upper bound of None means no limit."""
    ends: list[bytes | None] = []
    for bound in ("lower_bounds", "upper_bounds"):
        bounds = delete.raw.get(bound)
        end = bounds.get(_PATH_FIELD) if isinstance(bounds, Mapping) else None
        ends.append(end if isinstance(end, bytes) else None)
    return ends[0] or b"", ends[1]
