"""A unit's data files as planning sees them, each with the deletes that hold for it.

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
    """A data file, the vector or the position deletes that hold for it, and how many equality deletes may."""

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
        """Those that speak of this file alone, and go with it."""
        return tuple(delete for delete in self.held if delete.referenced == self.file.path)

    @property
    def deleted_rows(self) -> int:
        """By vectors, exactly; by position delete files of this file, as Java counts them (ContentFileUtil.java).

        What those of several files and equality deletes hide, no metadata tells. Position delete files may name a
        row twice: by them no file is without rows before it is read.
        """
        counted = sum(delete.rows for delete in self.own)
        return min(counted, self.rows if any(delete.is_vector for delete in self.own) else max(0, self.rows - 1))


def placed_files(unit: IcebergUnit) -> tuple[PlacedFile, ...]:
    """In the order of the unit."""
    found: Counter[str] = Counter()
    for probe in probes(unit, unit.files):
        found.update({file.path: count for file, count in zip(probe.files, probe.counts, strict=True)})
    return tuple(PlacedFile(each.file, each.held, found[each.file.path]) for each in marked_files(unit, unit.files))
