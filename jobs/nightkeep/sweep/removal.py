"""Files that are to go -> gone, or put aside: in bounded parts, each file after one more look at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import pyarrow as pa

from nightkeep.errors import MissingFile, NightkeepError
from nightkeep.model import Run
from nightkeep.storage import Storage
from nightkeep.sweep.order import Acted, Mode
from nightkeep.sweep.owner import LEASE_MS, Clock, wall_ms
from nightkeep.sweep.sets import NO_FILES, Tally
from nightkeep.sweep.settle import Where, settled
from nightkeep.sweep.shelf import PART, Mark, Part, Planned, folder_of, parts, write_mark, write_plan
from nightkeep.territory import Announces, Removal, Territory

_ENOUGH: Final = 1_000
"""So many failures, and the store is not one to try the next million files on."""


def remove(
    territory: Territory,
    batches: Iterator[pa.RecordBatch],
    run: Run,
    *,
    mode: Mode,
    total: Tally,
    older_than_ms: int,
    recheck: bool = True,
    announce: Announces | None = None,
) -> Acted:
    """Remove the files of `batches` (ORPHANS), of which there are `total`, or put them aside.

    With `recheck` a file goes only while it has the size and time that were listed. The table's history tells of it
    before the first file goes and after the last. Whatever fails on the way is among what failed, and ends it where
    the next file could not be removed safely either. Raises what the announcement raises, and touches nothing then.
    """
    work = _Work(territory, run, recheck=recheck)
    if announce is not None:
        announce.announce(Removal(total.files, total.bytes, older_than_ms), run)
    act = {Mode.DELETE: work.delete, Mode.QUARANTINE: work.put_aside}[mode]
    try:
        for files in _parts_of(batches):
            act(files)
            if len(work.failed) >= _ENOUGH:
                raise OSError(f"{len(work.failed)} files could not be removed: the rest is left")
    except (NightkeepError, OSError) as failure:
        work.failed.append((territory.table.name, str(failure)))
    finally:
        if announce is not None:
            done = Removal(work.gone.files, work.gone.bytes, older_than_ms, failed=len(work.failed))
            announce.conclude(done, run)
    return Acted(work.gone, work.left, tuple(work.failed), work.folder)


def _parts_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, PART):
            yield batch.slice(start, PART)


@dataclass
class _Work:
    """What was done so far."""

    territory: Territory
    run: Run
    recheck: bool
    clock: Clock = wall_ms
    gone: Tally = NO_FILES
    left: Tally = NO_FILES
    failed: list[tuple[str, str]] = field(default_factory=list)
    folder: str | None = None
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def _storage(self) -> Storage:
        return self.territory.storage

    def delete(self, files: pa.RecordBatch) -> None:
        """Delete one part."""
        listed = [Planned(row["name"], "", row["bytes"], row["modified_ms"], row["kind"]) for row in files.to_pylist()]
        unchanged = [file for file in listed if self._is_unchanged(file)]
        failed = dict(self._storage.delete_all([file.path for file in unchanged])) if unchanged else {}
        # A store may fail after it deleted: what is gone did not fail.
        failed = {name: why for name, why in failed.items() if self._storage.stat(name) is not None}
        self.gone += _tally([file for file in unchanged if file.path not in failed])
        self.failed += failed.items()

    def put_aside(self, files: pa.RecordBatch) -> None:
        """Move one part to the quarantine, after its list."""
        if self.folder is None:
            self.folder = folder_of(self.territory, self.run.run_id)
            earlier = parts(self._storage, self.folder)
            self.numbers = count(earlier[-1].number + 1 if earlier else 0)
        part, since = Part(self.folder, next(self.numbers), planned=False, marks=frozenset()), self.clock()
        planned = write_plan(self._storage, part, self.run, files=files, now_ms=since)
        left: list[str] = []
        for file in planned:
            if self.clock() - since > LEASE_MS // 2:
                raise OSError(f"{part.plan}: expected its files to be moved within {LEASE_MS // 120_000} minutes")
            if not self._moved(file):
                left.append(file.path)
        write_mark(self._storage, part, Mark.DONE, left=left, now_ms=self.run.now_ms)

    def _moved(self, file: Planned) -> bool:
        """Whether the file is in quarantine now. Raises OSError where it may be under both names."""
        if not self._is_unchanged(file):
            return False
        try:
            moved = self._storage.move(file.path, file.to)
            why = "its place in quarantine is taken"
        except MissingFile:
            self.left += Tally(1, file.bytes)
            return False
        except OSError as failure:
            moved, why = settled(self._storage, file) in (Where.ASIDE, Where.IN_THE_WAY), str(failure)
        if moved:
            self.gone += Tally(1, file.bytes)
        else:
            self.failed.append((file.path, why))
        return moved

    def _is_unchanged(self, file: Planned) -> bool:
        """Whether the file is still what was listed; counted as left where it is not."""
        if not self.recheck:
            return True
        found = self._storage.stat(file.path)
        same = found is not None and (found.bytes, found.modified_ms) == (file.bytes, file.modified_ms)
        if not same:
            self.left += Tally(1, file.bytes)
        return same


def _tally(files: Sequence[Planned]) -> Tally:
    return Tally(len(files), sum(file.bytes for file in files))
