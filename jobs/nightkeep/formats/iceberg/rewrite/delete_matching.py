"""Equality deletes and data files of a unit -> which keys must be looked up in which files. Metadata only.

Iceberg table spec, "Scan Planning": an equality delete applies to data with a smaller sequence number. A unit lists
only deletes in its scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
import numpy.typing as npt

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.key_bounds import Flags, Spans, may_match, ranked, spans

_PAIRS: Final = 1 << 22
"""Pairs of data file and delete file compared at a time. A pair takes a few bytes."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Equality deletes with the same key columns, and the data files in which they may match rows.

    `field_ids` are ascending. `counts` has for each of `files` the number of deletes that may match in it, at least
    one. `deletes` are ordered by sequence number; each may match in at least one file.
    """

    field_ids: tuple[int, ...]
    files: tuple[ContentFile, ...]
    counts: tuple[int, ...]
    deletes: tuple[ContentFile, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """Equality deletes with the same key columns, data files, and the bounds of both: one Spans per column."""

    field_ids: tuple[int, ...]
    files: tuple[ContentFile, ...]
    deletes: tuple[ContentFile, ...]
    _held: tuple[Spans, ...]
    _deleted: tuple[Spans, ...]

    @classmethod
    def of(
        cls,
        schema: IcebergSchema,
        field_ids: tuple[int, ...],
        files: tuple[ContentFile, ...],
        deletes: Iterable[ContentFile],
    ) -> Matching:
        ordered = tuple(sorted(deletes, key=lambda delete: (delete.sequence_number, delete.path)))
        fields = [schema.field(number) for number in field_ids]
        deleted, held = spans(ordered, fields), spans(files, fields)
        columns = [ranked([keys[at] for keys in deleted], [keys[at] for keys in held]) for at in range(len(field_ids))]
        return cls(field_ids, files, ordered, tuple(right for _, right in columns), tuple(left for left, _ in columns))

    def probe(self, paths: frozenset[str] | None = None) -> Probe | None:
        """The probe of all files, or of those in `paths`; None if nothing may match."""
        chosen = np.array([paths is None or file.path in paths for file in self.files], np.bool_)
        files = tuple(compress(self.files, chosen))
        counts, needed = np.zeros(len(files), np.int64), np.zeros(len(self.deletes), np.bool_)
        for start, matches in self._matches(files, [each[chosen] for each in self._held]):
            counts[start : start + len(matches)] = matches.sum(axis=1)
            needed |= matches.any(axis=0)
        if not needed.any():
            return None
        return Probe(
            self.field_ids,
            tuple(compress(files, counts > 0)),
            tuple(counts[counts > 0].tolist()),
            tuple(compress(self.deletes, needed)),
        )

    def _matches(self, files: Sequence[ContentFile], held: Sequence[Spans]) -> Iterator[tuple[int, Flags]]:
        """Yield batches of files: the index of the first file, and whether each delete (second axis) may match."""
        newer, older = _sequences(self.deletes), _sequences(files)
        step = max(1, _PAIRS // max(1, len(newer)))
        for start in range(0, len(files), step):
            some = slice(start, start + step)
            matches = may_match(self._deleted, [each[some] for each in held])
            yield start, matches & (newer > older[some, None])


def matchings(unit: IcebergUnit, files: Iterable[ContentFile]) -> tuple[Matching, ...]:
    """One Matching for each set of key columns. Deletes must be newer than at least one of these files."""
    held = tuple(files)
    if not held:
        return ()
    oldest = min(file.sequence_number for file in held)
    deletes: dict[tuple[int, ...], list[ContentFile]] = {}
    for delete in unit.equality:
        if delete.sequence_number > oldest:
            deletes.setdefault(tuple(sorted(delete.equality_ids)), []).append(delete)
    return tuple(Matching.of(unit.schema, field_ids, held, deletes[field_ids]) for field_ids in sorted(deletes))


def probes(unit: IcebergUnit, files: Iterable[ContentFile]) -> tuple[Probe, ...]:
    """One Probe for each set of key columns by which rows of these files may be deleted."""
    return probes_of(matchings(unit, files))


def probes_of(matchings: Iterable[Matching], paths: frozenset[str] | None = None) -> tuple[Probe, ...]:
    """The probes of all files, or of those in `paths`; empty ones left out."""
    return tuple(probe for each in matchings if (probe := each.probe(paths)) is not None)


def key_bytes(file: ContentFile, field_ids: Sequence[int]) -> int:
    """Bytes of columns in a file, by its manifest; the size of the whole file if column sizes are missing."""
    sizes = file.raw.get("column_sizes")
    if not isinstance(sizes, Mapping):
        return file.bytes
    return sum(size for number in field_ids if isinstance(size := sizes.get(number), int))


def _sequences(files: Sequence[ContentFile]) -> npt.NDArray[np.int64]:
    return np.array([file.sequence_number for file in files], np.int64)
