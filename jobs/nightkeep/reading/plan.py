"""A version and a request -> the splits to read, and what was left out of them and why.

Partitions are left out by their values, buckets by the hash of the key, files by their statistics, and row groups by
those of their footers. Rows that are merged are left out only by what decides which of them become one: the key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic

import numpy as np
import pyarrow as pa

from nightkeep.errors import RefusedTable
from nightkeep.protocol.reading import FileReads, FileSection, OpenReading, Path, ReadFile, ReadView
from nightkeep.protocol.work import Snapshot, U, Unit
from nightkeep.reading.report import LeftOut, ReadPlan, Why
from nightkeep.reading.request import ReadRequest, passing, shown_rows
from nightkeep.reading.splits import FileRange, Flags, ReadPart, ReadSplit, ShownRows, matching_groups
from nightkeep.sql_text.rows.condition import Test
from nightkeep.sql_text.rows.pruning import can_be_true, paths_of, wanted_values

SPLIT_BYTES: Final = 128 << 20
"""About as much as a split reads: spark.sql.files.maxPartitionBytes."""
OPEN_BYTES: Final = 4 << 20
"""What opening a file costs, as bytes: spark.sql.files.openCostInBytes."""


@dataclass(frozen=True, slots=True)
class Planned(Generic[U]):
    """A plan, and what carries it out: the splits, and the functions and columns to read them with.

    `types` has the columns that people see with another type than the one they are read with.
    """

    plan: ReadPlan
    splits: tuple[ReadSplit[U], ...]
    files: FileReads[U]
    shown: ShownRows
    types: pa.Schema = field(default_factory=lambda: pa.schema([]))


@dataclass(slots=True)
class _Tally:
    """What was there, and what was left out."""

    of: dict[Why, int] = field(default_factory=lambda: dict.fromkeys(Why, 0))
    gone: dict[Why, int] = field(default_factory=lambda: dict.fromkeys(Why, 0))

    def count(self, why: Why, of: int, gone: int) -> None:
        self.of[why] += of
        self.gone[why] += gone


def plan_read(
    table: str,
    format: str,
    reading: OpenReading,
    request: ReadRequest,
    *,
    also: Sequence[Test] = (),
    footers: bool = False,
) -> Planned[Unit]:
    """Plan a read of a version. Reads metadata only, and footers of files that are larger than a split.

    `also`: tests that rows must pass besides the request's condition. `footers`: read those of all files that are left,
    so that the plan can state which row groups are left out. Without it, these are found when the split is read. Raises
    UsageError for what the table does not have, and RefusedTable.
    """
    snapshot = reading.snapshot(request.version, request.tag)
    if request.version is None and request.tag is None and request.view is None:
        reading.require_newest(snapshot)
    shown = passing(shown_rows(request, reading.columns(snapshot)), also)
    view = request.view or reading.default_view(snapshot)
    sections = reading.sections(snapshot, view)
    return planned(
        table, format, reading, snapshot, view, request=request, shown=shown, sections=sections, footers=footers
    )


def planned(
    table: str,
    format: str,
    reading: OpenReading,
    snapshot: Snapshot,
    view: ReadView,
    *,
    request: ReadRequest,
    shown: ShownRows,
    sections: Sequence[FileSection[Unit]],
    footers: bool = False,
) -> Planned[Unit]:
    """The plan for these sections of one snapshot in one view. Raises RefusedTable."""
    _refuse_collated(table, reading.collated(snapshot), shown.where)
    tally = _Tally()
    picking = _Picking(reading, shown.where, tally, footers=footers)
    parts = [part for section in picking.of(sections) for part in picking.parts(section)]
    splits = tuple(_packed(parts))
    unfiltered = _split_count(sections)
    tally.count(Why.SPLITS, max(unfiltered, len(splits)), max(unfiltered - len(splits), 0))
    plan = ReadPlan(
        table=table,
        format=format,
        version=snapshot.version,
        view=view,
        columns=tuple(shown.schema.names),
        where=request.where,
        splits=len(splits),
        files=sum(len(part.ranges) for part in parts),
        bytes=sum(part.bytes for part in parts),
        merged_files=sum(len(part.ranges) for part in parts if part.merges),
        left_out=tuple(LeftOut(why, tally.of[why], tally.gone[why]) for why in Why),
        footers=footers,
    )
    return Planned(plan, splits, reading.files, shown, reading.shown(snapshot))


def _refuse_collated(table: str, collated: Sequence[str], where: Test | None) -> None:
    """Raises RefusedTable for a condition on a column whose values are not compared by their bytes."""
    named = {path[0] for path in (() if where is None else paths_of(where))}
    for column in collated:
        if column in named:
            feature = f"a condition on column {column} is not handled: it has a collation"
            raise RefusedTable(table, feature, "use conditions on other columns")


class _Picking:
    """What the filter leaves of the sections."""

    def __init__(self, reading: OpenReading, where: Test | None, tally: _Tally, *, footers: bool) -> None:
        self._reading, self._files, self._where = reading, reading.files, where
        self._tally, self._footers = tally, footers
        self._paths: frozenset[Path] = frozenset() if where is None else paths_of(where)

    def of(self, sections: Sequence[FileSection[Unit]]) -> list[FileSection[Unit]]:
        """The sections of partitions and buckets that may hold matching rows."""
        chosen = [section for section in sections if self._partition(section)]
        self._count(Why.PARTITIONS, sections, chosen, lambda unit: unit.key.partition)
        held = [section for section in chosen if self._bucket(section)]
        self._count(Why.BUCKETS, chosen, held, lambda unit: unit.key)
        return held

    def _count(
        self,
        why: Why,
        sections: Sequence[FileSection[Unit]],
        kept: Sequence[FileSection[Unit]],
        key: Callable[[Unit], Hashable],
    ) -> None:
        every, left = ({key(section.unit) for section in some} for some in (sections, kept))
        self._tally.count(why, len(every), len(every) - len(left))

    def _partition(self, section: FileSection[Unit]) -> bool:
        if self._where is None:
            return True
        return bool(can_be_true(self._where, self._files.partition(section.unit, self._paths), 1)[0])

    def _bucket(self, section: FileSection[Unit]) -> bool:
        keys = {} if self._where is None else wanted_values(self._where)
        return not keys or self._reading.may_hold(section.unit, keys)

    def parts(self, section: FileSection[Unit]) -> Iterator[ReadPart[Unit]]:
        """The parts of one section: one if its files are merged, else one or more for each file."""
        kept = [file for file, may in zip(section.files, self._may_match(section), strict=True) if may]
        self._tally.count(Why.FILES, len(section.files), len(section.files) - len(kept))
        if not kept:
            return
        if section.merges:
            unit = self._files.narrowed(section.unit, {file.name for file in kept})
            yield ReadPart(unit, tuple(FileRange(file.name, file.bytes) for file in kept), merges=True)
            return
        for batch in _batches(kept):
            unit = self._files.narrowed(section.unit, {file.name for file in batch})
            ranges = [each for file in batch for each in self._ranges(unit, file)]
            yield from _cut(unit, ranges)

    def _may_match(self, section: FileSection[Unit]) -> Flags:
        count = len(section.files)
        if self._where is None or not count:
            return np.ones(count, np.bool_)
        spans = self._files.spans(section.unit, self._paths)
        if section.merges:
            spans = {path: each for path, each in spans.items() if path[0] in section.decisive}
        return can_be_true(self._where, spans, count)

    def _ranges(self, unit: Unit, file: ReadFile) -> Sequence[FileRange]:
        """The file whole, or its row groups in ranges of about a split's size."""
        if file.bytes <= SPLIT_BYTES and not (self._footers and self._where is not None):
            return [FileRange(file.name, file.bytes)]
        opened = self._files.open(unit, file.name)
        groups = matching_groups(opened, self._where)
        self._tally.count(Why.ROW_GROUPS, len(opened.groups), len(opened.groups) - len(groups))
        group_bytes = file.bytes // max(1, len(opened.groups))
        most = max(1, SPLIT_BYTES // max(1, group_bytes))
        return [
            FileRange(file.name, group_bytes * len(some), tuple(some))
            for at in range(0, len(groups), most)
            if (some := groups[at : at + most])
        ]


def _batches(files: Sequence[ReadFile]) -> Iterator[list[ReadFile]]:
    """Files of a unit, about a split's worth at a time."""
    batch: list[ReadFile] = []
    for file in files:
        if batch and sum(OPEN_BYTES + each.bytes for each in (*batch, file)) > SPLIT_BYTES:
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch


def _cut(unit: Unit, ranges: Sequence[FileRange]) -> Iterator[ReadPart[Unit]]:
    """One part, unless a single file was cut into several ranges."""
    if len({each.name for each in ranges}) == 1:
        yield from (ReadPart(unit, (each,), merges=False) for each in ranges)
    elif ranges:
        yield ReadPart(unit, tuple(ranges), merges=False)


def _packed(parts: Sequence[ReadPart[Unit]]) -> Iterator[ReadSplit[Unit]]:
    """Parts in their order, about a split's worth at a time."""
    held: list[ReadPart[Unit]] = []
    size = 0
    for part in parts:
        weight = part.bytes + OPEN_BYTES * len(part.ranges)
        if held and size + weight > SPLIT_BYTES:
            yield ReadSplit(tuple(held))
            held, size = [], 0
        held.append(part)
        size += weight
    if held:
        yield ReadSplit(tuple(held))


def _split_count(sections: Sequence[FileSection[Unit]]) -> int:
    """How many splits an unfiltered read has, by the sizes of files."""
    count = 0
    size = 0
    for section in sections:
        for batch in [section.files] if section.merges else _batches(section.files):
            weight = sum(OPEN_BYTES + file.bytes for file in batch)
            if not section.merges and weight > SPLIT_BYTES + OPEN_BYTES:
                count, size = count + bool(size) + -(-sum(file.bytes for file in batch) // SPLIT_BYTES), 0
                continue
            if size and size + weight > SPLIT_BYTES:
                count, size = count + 1, 0
            size += weight
    return count + bool(size)
