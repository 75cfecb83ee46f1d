"""Unit -> its data files for planning, each with the deletes that apply to it.

Iceberg table spec, "Scan Planning". Metadata only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.delete_matching import probes
from nightkeep.formats.iceberg.rewrite.hidden_rows import Deletes, marked_files


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
        counted = sum(delete.rows for delete in self.own)
        return min(counted, self.rows if any(delete.is_vector for delete in self.own) else max(0, self.rows - 1))


def placed_files(unit: IcebergUnit) -> tuple[PlacedFile, ...]:
    """The unit's data files, in its order."""
    counts: Counter[str] = Counter()
    for probe in probes(unit, unit.files):
        counts.update({file.path: count for file, count in zip(probe.files, probe.counts, strict=True)})
    return tuple(PlacedFile(each.file, each.held, counts[each.file.path]) for each in marked_files(unit, unit.files))
