"""A unit's data files as planning sees them, each with the deletes that hold for it; and what one task replaces.

Iceberg table spec, "Scan Planning". Metadata only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nightkeep.formats.iceberg.data.write import WrittenFile
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.manifest_merge import worth_merging
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.delete_matching import probes
from nightkeep.formats.iceberg.rewrite.hidden_rows import INDEX_BYTES, Deletes, marked_files
from nightkeep.model import Intent, Request


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


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a task replaces, and as what: `files` of `unit`, which has no more than reading them takes.

    New files have the data sequence number `planned_sequence`: deletes that come after the plan hold for them, as
    they do for the rows where they were. The index of deleted keys is held in parts of `index_bytes`.
    """

    unit: IcebergUnit
    files: tuple[PlacedFile, ...]
    planned_sequence: int
    index_bytes: int
    intent: Intent
    rewrites_manifests: bool

    @classmethod
    def of(cls, snapshot: IcebergSnapshot, unit: IcebergUnit, files: Sequence[PlacedFile], request: Request) -> Inputs:
        return cls(
            unit=_reading(unit, files),
            files=tuple(files),
            planned_sequence=snapshot.sequence_number,
            index_bytes=min(INDEX_BYTES, max(1, request.task_bytes // 8)),
            intent=Intent.of(request),
            rewrites_manifests=worth_merging(snapshot) is not None,
        )

    def edit(self, written: Iterable[WrittenFile]) -> IcebergEdit:
        """All files go with the deletes that speak of them alone. Which others go too is decided by the commit."""
        return IcebergEdit(
            planned_sequence=self.planned_sequence,
            intent=self.intent,
            removed=tuple(each for placed in self.files for each in (placed.file, *placed.own)),
            added=tuple(each.file for each in written),
            rewrites_manifests=self.rewrites_manifests,
        )


def _reading(unit: IcebergUnit, files: Sequence[PlacedFile]) -> IcebergUnit:
    data = tuple(placed.file for placed in files)
    positional = {delete.identity: delete for placed in files for delete in placed.held}
    by_keys = [placed.file for placed in files if placed.by_keys]
    equality = {delete.identity: delete for probe in probes(unit, by_keys) for delete in probe.deletes}
    return replace(unit, files=data, positional=tuple(positional.values()), equality=tuple(equality.values()))
