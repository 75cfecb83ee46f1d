"""Unit -> its data files for planning, each with the deletes that apply to it.

Iceberg table spec, "Scan Planning". Metadata only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.delete_matching import probes
from nightkeep.formats.iceberg.rewrite.hidden_rows import Deletes, marked_files
from nightkeep.model.file_columns import FileColumns, Numbers, columns_of, name_ranks, names_of


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A data file, the positional deletes that apply to it, and the number of equality deletes that may."""

    file: ContentFile
    held: Deletes
    by_keys: int

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def bytes(self) -> int:
        return self.file.bytes

    @property
    def rows(self) -> int:
        return self.file.rows

    @property
    def deletes(self) -> int:
        return len(self.held) + self.by_keys

    @property
    def own(self) -> Deletes:
        """The positional deletes of this file only, which are removed with it."""
        return tuple(delete for delete in self.held if delete.referenced == self.file.path)

    @property
    def deleted_rows(self) -> int:
        """Rows deleted by vectors and by position delete files of this file only, as in ContentFileUtil.java.

        Metadata has no such counts for equality deletes and for position delete files of several data files. A position
        delete file may name a row twice, so its count alone does not prove that a file has no live rows.
        """
        if not self.held:
            return 0
        counted = sum(delete.rows for delete in self.own)
        return min(counted, self.rows if any(delete.is_vector for delete in self.own) else max(0, self.rows - 1))


class PlacedFiles(Sequence[PlacedFile]):
    """Files for planning, which asks for their columns several times."""

    def __init__(self, files: tuple[PlacedFile, ...], columns: FileColumns) -> None:
        self._files, self._columns = files, columns

    def columns(self) -> FileColumns:
        return self._columns

    def names(self) -> Sequence[str]:
        return names_of(self._files)

    def name_ranks(self) -> Numbers:
        return name_ranks(self._files)

    def take(self, places: Numbers) -> PlacedFiles:
        return PlacedFiles(tuple(self._files[place] for place in places.tolist()), self._columns.take(places))

    @overload
    def __getitem__(self, place: int) -> PlacedFile: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[PlacedFile, ...]: ...
    def __getitem__(self, place: int | slice) -> PlacedFile | tuple[PlacedFile, ...]:
        return self._files[place]

    def __iter__(self) -> Iterator[PlacedFile]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def placed_files(unit: IcebergUnit) -> PlacedFiles:
    """The unit's data files, in its order."""
    counts: Counter[str] = Counter()
    for probe in probes(unit, unit.files):
        counts.update({file.path: count for file, count in zip(probe.files, probe.counts, strict=True)})
    marked = marked_files(unit, unit.files)
    files = tuple(PlacedFile(each.file, each.held, counts[each.file.path]) for each in marked)
    return PlacedFiles(files, columns_of(files))
