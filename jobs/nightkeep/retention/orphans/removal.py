"""Orphan files -> deleted or moved to quarantine, in bounded parts. Each file is checked once more before that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import count
from typing import Final, TypeVar

import pyarrow as pa

from nightkeep.errors import MissingFile, NightkeepError
from nightkeep.model import Run
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
from nightkeep.retention.orphans.sweep_request import FilesRemoved, SweepMode
from nightkeep.storage import LocalStorage, Storage

T = TypeVar("T")

_THREADS: Final = 16
_MANY: Final = 64
"""From so many files on, threads move those of a disk: 6,000 took 16 s in one thread and 5 s in 16."""
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
    recheck: bool = True,
    entries: RemovalEntries | None = None,
) -> FilesRemoved:
    """Delete the files of `batches` (schema ORPHANS), `total` in all, or move them to quarantine.

    With `recheck` a file is removed only if it still has the listed size and time. `entries` are written to the table's
    history before the first file and after the last; with no files, nothing is written. Failures on the way are in the
    result, and one of them ends the removal if the next file could not be removed safely either. Raises what the first
    announcement raises; no file is removed then.
    """
    if not total.files:
        return FilesRemoved()
    work = _Work(table_files, run, recheck=recheck, at=_table_folder(table_files))
    if entries is not None:
        entries.announce(Removal(total.files, total.bytes, older_than_ms), run)
    act = {SweepMode.DELETE: work.delete, SweepMode.QUARANTINE: work.put_aside}[mode]
    try:
        for files in _parts_of(batches):
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


def _conclude(entries: RemovalEntries, work: _Work, older_than_ms: int | None) -> None:
    done = Removal(work.gone.files, work.gone.bytes, older_than_ms, failed=len(work.failed))
    try:
        entries.conclude(done, work.run)
    except (NightkeepError, OSError) as failure:
        # The result must still report the files that were removed.
        work.failed.append(
            (_table_folder(work.table_files), f"the table's history does not tell of the end: {failure}")
        )


def _table_folder(table_files: TableFiles) -> str:
    """The name that is given for a failure of no particular file."""
    return table_files.home or "."


def _parts_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, PART):
            yield batch.slice(start, PART)


class _Fate(Enum):
    GONE = "gone"
    LEFT = "left"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Perhaps gone, perhaps under both names. Its part stays open, and the next run settles it."""


Became = tuple[PlannedMove, _Fate, str]


@dataclass
class _Work:
    """What was done so far. `at` is the next file, or a plan or folder: the name that a failure is reported with."""

    table_files: TableFiles
    run: Run
    recheck: bool
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
        listed = [
            PlannedMove(row["name"], "", row["bytes"], row["modified_ms"], row["kind"]) for row in files.to_pylist()
        ]
        same = self._each(self._is_unchanged, listed, waits=_is_remote(self._storage))
        going = [file for file, unchanged in zip(listed, same, strict=True) if unchanged]
        failed = dict(self._storage.delete_all([file.path for file in going])) if going else {}
        fates = dict(self._looked_after(failed))
        self.left += _tally([file for file, unchanged in zip(listed, same, strict=True) if not unchanged])
        self.gone += _tally([file for file in going if fates.get(file.path, _Fate.GONE) is _Fate.GONE])
        self.unknown += _tally([file for file in going if fates.get(file.path) is _Fate.UNKNOWN])
        self.failed += [(name, why) for name, why in failed.items() if fates[name] is not _Fate.GONE]

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

    def put_aside(self, files: pa.RecordBatch) -> None:
        """Write the plan of one part, and move its files. Raises OSError if the fate of a file is unknown."""
        if self.folder is None:
            self.folder = folder_of(self.table_files, self.run)
            earlier = parts(self._storage, self.folder)
            self.numbers = count(earlier[-1].number + 1 if earlier else 0)
        part, since = QuarantinePart(self.folder, next(self.numbers), planned=False, marks=frozenset()), self.clock()
        self.at = part.plan
        planned = write_plan(self._storage, part, self.run, files=files, now_ms=since)
        # On a disk each move waits for a sync of the quarantine's folder, and one write serves several that wait.
        waits = _is_remote(self._storage) or len(planned) >= _MANY
        fates = self._each(partial(self._moved, until_ms=since + LEASE_MS // 2), planned, waits=waits)
        self.gone += _tally([file for file, fate, _ in fates if fate is _Fate.GONE])
        self.left += _tally([file for file, fate, _ in fates if fate is _Fate.LEFT])
        self.failed += [(file.path, why) for file, fate, why in fates if fate in (_Fate.FAILED, _Fate.UNKNOWN)]
        self.unknown += _tally([file for file, fate, _ in fates if fate is _Fate.UNKNOWN])
        if any(fate is _Fate.UNKNOWN for _, fate, _ in fates):
            raise OSError(f"{part.plan}: expected each of its files in one place, found some that may be in two")
        left = [file.path for file, fate, _ in fates if fate is not _Fate.GONE]
        write_mark(self._storage, part, Mark.DONE, left=left, now_ms=self.run.now_ms)

    def _each(self, work: Callable[[PlannedMove], T], files: Sequence[PlannedMove], *, waits: bool) -> list[T]:
        """The results of `work`, in order. In threads if the work `waits` for most of its time."""
        if not waits:
            return [work(file) for file in files]
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(work, files))

    def _moved(self, file: PlannedMove, *, until_ms: int) -> Became:
        """Move a file; returns what became of it. Returns failures too, so that the fates of other files are kept."""
        if self.clock() > until_ms:
            return file, _Fate.FAILED, "its part took too long: another run may settle it by now"
        try:
            if not self._is_unchanged(file):
                return file, _Fate.LEFT, ""
            moved = self._storage.move(file.path, file.to, may_go=lambda: self.clock() <= until_ms)
            return file, _Fate.GONE if moved else _Fate.FAILED, "its place in quarantine is taken"
        except MissingFile:
            return file, _Fate.LEFT, ""
        except (NightkeepError, OSError) as failure:
            return file, self._settled(file), str(failure)

    def _settled(self, file: PlannedMove) -> _Fate:
        """What became of a file whose move failed."""
        try:
            return _Fate.GONE if reconcile(self._storage, file) is Where.ASIDE else _Fate.FAILED
        except (NightkeepError, OSError):
            return _Fate.UNKNOWN

    def _is_unchanged(self, file: PlannedMove) -> bool:
        """Whether the file is still what was listed."""
        if not self.recheck:
            return True
        stored = self._storage.stat(file.path)
        # Buckets give milliseconds in a listing, but whole seconds for a single file.
        listed = file.bytes, file.modified_ms // 1000
        return stored is not None and (stored.bytes, stored.modified_ms // 1000) == listed


def _is_remote(storage: Storage) -> bool:
    return not isinstance(storage, LocalStorage)


def _tally(files: Sequence[PlannedMove]) -> FileTotals:
    return FileTotals(len(files), sum(file.bytes for file in files))
