"""Orphan files -> deleted or moved to quarantine, in bounded parts. Each file is checked once more before that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Final

import pyarrow as pa

from nightkeep.errors import NightkeepError
from nightkeep.model import Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import Removal, RemovalEntries, TableFiles
from nightkeep.retention.orphans.lease import LEASE_MS, Clock, wall_ms
from nightkeep.retention.orphans.quarantine_manifest import (
    PART,
    Mark,
    PlannedMove,
    QuarantinePart,
    folder_of,
    parts,
    write_mark,
    write_plan,
)
from nightkeep.retention.orphans.reconcile import Where, reconcile
from nightkeep.retention.orphans.sets import NO_FILES, FileTotals
from nightkeep.retention.orphans.sweep_request import FilesRemoved
from nightkeep.storage import ListedFile, MoveAnswer, MoveEnd, Storage, at_once, delete_listed, move_listed

_DELETED_PARTS: Final = 4
"""Files that are deleted need no plan: so many parts of them are one."""
_ENOUGH: Final = 1_000
"""After this many failures the rest is left: the store will probably fail for it too."""


def remove(
    table_files: TableFiles,
    batches: Iterator[pa.RecordBatch],
    run: Run,
    *,
    mode: SweepMode,
    total: FileTotals,
    older_than_ms: int | None,
    entries: RemovalEntries | None = None,
) -> FilesRemoved:
    """Delete the files of `batches` (schema ORPHANS), `total` in all, or move them to quarantine.

    A file is removed only if it still has the listed size and time. `entries` are written to the table's history before
    the first file and after the last; with no files, nothing is written. Failures on the way are in the
    result, and one of them ends the removal if the next file could not be removed safely either. Raises what the first
    announcement raises; no file is removed then.
    """
    if not total.files:
        return FilesRemoved()
    work = _Progress(table_files, run, at=_table_folder(table_files))
    if entries is not None:
        entries.announce(Removal(total.files, total.bytes, older_than_ms), run)
    act = {SweepMode.DELETE: work.delete, SweepMode.QUARANTINE: work.quarantine}[mode]
    most = PART if mode is SweepMode.QUARANTINE else _DELETED_PARTS * PART
    try:
        for files in _parts_of(batches, most):
            work.at = files["name"][0].as_py()
            act(files)
            work.at = _table_folder(table_files)
            if len(work.failed) >= _ENOUGH:
                raise OSError(f"{len(work.failed)} files could not be removed: the rest is left")
    except (NightkeepError, OSError) as failure:
        work.failed.append((work.at, str(failure)))
    finally:
        if entries is not None:
            _conclude(entries, work, older_than_ms)
    return FilesRemoved(work.gone, work.left, tuple(work.failed), work.folder, work.unknown)


def _conclude(entries: RemovalEntries, work: _Progress, older_than_ms: int | None) -> None:
    done = Removal(work.gone.files, work.gone.bytes, older_than_ms, failed=len(work.failed))
    try:
        entries.conclude(done, work.run)
    except (NightkeepError, OSError) as failure:
        # The result must still report the files that were removed.
        work.failed.append((_table_folder(work.table_files), f"the table's history does not record the end: {failure}"))


def _table_folder(table_files: TableFiles) -> str:
    """The name that is given for a failure of no particular file."""
    return table_files.home or "."


def _parts_of(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, most):
            yield batch.slice(start, most)


class _Fate(Enum):
    GONE = "gone"
    LEFT = "left"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Perhaps gone, perhaps under both names. Its part stays open, and the next run settles it."""


Became = tuple[_Fate, str]
"""What became of a file, and the reason if it could not be removed."""

_FATES: Final[Mapping[MoveEnd, Became]] = {
    MoveEnd.MOVED: (_Fate.GONE, ""),
    MoveEnd.CHANGED: (_Fate.LEFT, ""),
    MoveEnd.TAKEN: (_Fate.FAILED, "its place in quarantine is taken"),
    MoveEnd.LATE: (_Fate.FAILED, "its part took too long: another run may settle it by now"),
}


@dataclass
class _Progress:
    """What was done so far. `at` is the next file, or a plan or folder: the name that a failure is reported with."""

    table_files: TableFiles
    run: Run
    clock: Clock = wall_ms
    gone: FileTotals = NO_FILES
    left: FileTotals = NO_FILES
    unknown: FileTotals = NO_FILES
    failed: list[tuple[str, str]] = field(default_factory=list)
    at: str = ""
    folder: str | None = None
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def _storage(self) -> Storage:
        return self.table_files.storage

    def delete(self, files: pa.RecordBatch) -> None:
        """Delete one part."""
        listed = _listed(files)
        kept = dict(delete_listed(self._storage, listed))
        fates = dict(self._looked_after(name for name, why in kept.items() if why is not None))
        fates |= {name: _Fate.LEFT for name, why in kept.items() if why is None}
        self._count(listed, [fates.get(file.name, _Fate.GONE) for file in listed])
        self.failed += [(name, why) for name, why in kept.items() if why is not None and fates[name] is not _Fate.GONE]

    def _looked_after(self, names: Iterable[str]) -> Iterator[tuple[str, _Fate]]:
        """What became of files whose deletion failed: the store may have deleted them before it failed. After the first
        request without an answer, the rest is UNKNOWN."""
        is_silent = False
        for name in names:
            fate = _Fate.UNKNOWN
            if not is_silent:
                try:
                    fate = _Fate.GONE if self._storage.stat(name) is None else _Fate.FAILED
                except OSError:
                    is_silent = True
            yield name, fate

    def quarantine(self, files: pa.RecordBatch) -> None:
        """Write the plan of one part, and move its files. Raises OSError if the fate of a file is unknown."""
        if self.folder is None:
            self.folder = folder_of(self.table_files, self.run)
            earlier = parts(self._storage, self.folder)
            self.numbers = count(earlier[-1].number + 1 if earlier else 0)
        part, since = QuarantinePart(self.folder, next(self.numbers), planned=False, marks=frozenset()), self.clock()
        self.at = part.plan
        planned = write_plan(self._storage, part, self.run, files=files, now_ms=since)
        moves = [(file, planned_move.to) for file, planned_move in zip(_listed(files), planned, strict=True)]
        answers = move_listed(self._storage, moves, may_go=lambda: self.clock() <= since + LEASE_MS // 2)
        fates = list(zip(planned, self._fates(planned, answers), strict=True))
        self._count([file for file, _ in moves], [fate for _, (fate, _) in fates])
        self.failed += [(file.path, why) for file, (fate, why) in fates if fate in (_Fate.FAILED, _Fate.UNKNOWN)]
        if any(fate is _Fate.UNKNOWN for _, (fate, _) in fates):
            raise OSError(f"{part.plan}: expected each of its files in one place, found some that may be in two")
        left = [file.path for file, (fate, _) in fates if fate is not _Fate.GONE]
        write_mark(self._storage, part, Mark.DONE, left=left, now_ms=self.run.now_ms)

    def _fates(self, planned: Sequence[PlannedMove], answers: Sequence[MoveAnswer]) -> Iterator[Became]:
        """What became of each file, in order. Failures are looked into, many at a time: each may take a minute."""
        broken = [file for file, answer in zip(planned, answers, strict=True) if answer.end is MoveEnd.BROKEN]
        settled = iter(at_once(self._settled, broken))
        for answer in answers:
            yield (next(settled), answer.why) if answer.end is MoveEnd.BROKEN else _FATES[answer.end]

    def _settled(self, file: PlannedMove) -> _Fate:
        """What became of a file whose move failed."""
        try:
            return _Fate.GONE if reconcile(self._storage, file) is Where.ASIDE else _Fate.FAILED
        except (NightkeepError, OSError):
            return _Fate.UNKNOWN

    def _count(self, files: Sequence[ListedFile], fates: Sequence[_Fate]) -> None:
        together: dict[_Fate, list[int]] = {fate: [] for fate in _Fate}
        for file, fate in zip(files, fates, strict=True):
            together[fate].append(file.bytes)
        totals = {fate: FileTotals(len(sizes), sum(sizes)) for fate, sizes in together.items()}
        self.gone += totals[_Fate.GONE]
        self.left += totals[_Fate.LEFT]
        self.unknown += totals[_Fate.UNKNOWN]


def _listed(files: pa.RecordBatch) -> list[ListedFile]:
    columns = (files[name].to_pylist() for name in ("name", "bytes", "modified_ms"))
    return [ListedFile(*row) for row in zip(*columns, strict=True)]
