"""A quarantine, a folder that no engine reads -> its files restored byte for byte, or purged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable, UsageError
from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import TableFiles, refuse_changes
from nightkeep.retention.orphans.classify import own_folder
from nightkeep.retention.orphans.guards import CLOCK
from nightkeep.retention.orphans.lease import LEASE_MS, may_be_at_work, wall_ms
from nightkeep.retention.orphans.quarantine_manifest import (
    Mark,
    PlannedMove,
    QuarantinePart,
    folders_of,
    home_of,
    iso,
    parts,
    quarantines,
    read_mark,
    read_plan,
    read_restoring,
    write_mark,
    write_restoring,
)
from nightkeep.retention.orphans.reconcile import Where, reconcile
from nightkeep.retention.orphans.sets import NO_FILES, FileTotals
from nightkeep.retention.orphans.sweep_request import RestoreResult
from nightkeep.storage import Storage, within

_LOST = "neither at home nor in quarantine any more"
_PURGED = "the list of these files is gone, and they with it: they were purged"
_REMOVED_SINCE = "this run was restored before, and the file was removed since"
_QUARANTINED_SINCE = "in quarantine of run "


def restore(table_files: TableFiles, run_id: str, *, now_ms: int, vouched: Sequence[str] = ()) -> RestoreResult:
    """Move the run's quarantined files back to their places. Overwrites nothing. May be called again.

    `vouched` are quarantines that the run's documents name; they are elsewhere if the table has moved since. A purge
    skips a quarantine that is being restored. A file that an earlier purge deleted is reported as lost.

    Raises UsageError if the run has no files in quarantine, RefusedTable while the run may still be at work and for a
    table that may not be changed, and CorruptMetadata for a damaged quarantine manifest.
    """
    refuse_changes(table_files)
    table_files, planned = _planned_parts(table_files, run_id, vouched)
    for part in planned:
        _refuse_busy(table_files, part)
    folders = dict.fromkeys(part.folder for part in planned)
    for folder in folders:
        write_restoring(table_files.storage, folder, now_ms=now_ms)
    back, conflicts = NO_FILES, list[tuple[str, str]]()
    for part in planned:
        moved, in_the_way = _restore_part(table_files, part, now_ms)
        back, conflicts = back + moved, conflicts + in_the_way
    return _restored(back, tuple(_of_later_runs(table_files, [*folders], conflicts)))


@dataclass(frozen=True, slots=True)
class Restorable:
    """The files that a run moved to quarantine and no purge deleted, and those that a restore would move back now."""

    moved: list[PlannedMove] = field(default_factory=list)
    left: list[PlannedMove] = field(default_factory=list)


def restorable(table_files: TableFiles, run_id: str, *, vouched: Sequence[str] = ()) -> Restorable:
    """What there is to restore of a run. Changes nothing.

    Raises what `restore` raises for a run without files and for a damaged manifest."""
    table_files, planned = _planned_parts(table_files, run_id, vouched)
    storage, found = table_files.storage, Restorable()
    for part in planned:
        # A plan that is gone was purged, with its files.
        with suppress(MissingFile):
            moved = read_plan(table_files, part)[1]
            found.moved.extend(moved)
            found.left.extend(
                file for file in moved if storage.stat(file.to) is not None and storage.stat(file.path) is None
            )
    return found


def _planned_parts(
    table_files: TableFiles, run_id: str, vouched: Sequence[str]
) -> tuple[TableFiles, list[QuarantinePart]]:
    """The parts of the run's quarantines that were not restored, and the table with the stores that they are in."""
    folders = folders_of(table_files, run_id, vouched=vouched)
    table_files = replace(table_files, storage=within(table_files.storage, *map(home_of, folders), more=True))
    planned = [part for folder in folders for part in parts(table_files.storage, folder)]
    planned = [part for part in planned if part.planned or Mark.RESTORED not in part.marks]
    if not any(part.planned for part in planned):
        runs = ", ".join(dict.fromkeys(_run_ids(table_files))) or "nothing"
        raise UsageError(f"{table_files.table.name}: nothing of run {run_id} is in quarantine; there is {runs}")
    return table_files, planned


def purge(table_files: TableFiles, *, now_ms: int, older_than_ms: int) -> FileTotals:
    """Delete quarantines whose last part was closed more than `older_than_ms` ago, oldest first.

    Skips a quarantine with an open part, and one whose last restore began within that time or within a day: the restore
    may be at work. Files that cannot be deleted stay in the manifest, for the next purge.
    """
    storage, purged = table_files.storage, NO_FILES
    restored_before_ms = now_ms - max(older_than_ms, DAY_MS)
    aged = [(since, folder) for folder in quarantines(table_files) if (since := _since(storage, folder)) is not None]
    for since, folder in sorted(aged):
        if since < now_ms - older_than_ms:
            purged += _purge_folder(storage, folder, restored_before_ms=restored_before_ms)
    for stored in storage.list(own_folder(table_files)):
        if stored.name.rpartition("/")[2].startswith(CLOCK) and stored.modified_ms < now_ms - DAY_MS:
            storage.delete(stored.name)
    return purged


def close(table_files: TableFiles, run: Run) -> tuple[str, ...]:
    """Close every open part, so that each of its files is in exactly one place. Returns the ids of the runs.

    Raises RefusedTable if another process may still be at work on a part.
    """
    storage = table_files.storage
    open_parts = [part for folder in quarantines(table_files) for part in parts(storage, folder) if part.cut_short]
    for part in open_parts:
        _refuse_busy(table_files, part)
    closed = {_close_part(table_files, part, run.now_ms): None for part in open_parts}
    return tuple(closed)


def _close_part(table_files: TableFiles, part: QuarantinePart, now_ms: int) -> str:
    storage, (header, planned) = table_files.storage, read_plan(table_files, part)
    left = [file.path for file in planned if reconcile(storage, file) is Where.HOME]
    write_mark(storage, part, Mark.DONE, left=left, now_ms=now_ms)
    return header.run_id


def _refuse_busy(table_files: TableFiles, part: QuarantinePart) -> None:
    if not part.cut_short:
        return
    header, _ = read_plan(table_files, part)
    if may_be_at_work(header.owner, header.planned_ms, now_ms=wall_ms()):
        who = f"process {header.owner.pid} on {header.owner.host}"
        since = f"run {header.run_id} moving files to quarantine since {iso(header.planned_ms)} ({who})"
        raise RefusedTable(
            table_files.table.name, since, f"wait until it is done, {LEASE_MS // 60_000} minutes at most"
        )


def _restore_part(
    table_files: TableFiles, part: QuarantinePart, now_ms: int
) -> tuple[FileTotals, list[tuple[str, str]]]:
    storage = table_files.storage
    try:
        _, planned = read_plan(table_files, part)
        left = read_mark(storage, part, Mark.DONE)[1] if Mark.DONE in part.marks else None
    except MissingFile:
        return NO_FILES, [(part.plan, _PURGED)]
    back, conflicts = NO_FILES, list[tuple[str, str]]()
    for file in planned:
        where, moved = _brought_home(storage, file)
        back += FileTotals(1, file.bytes) if moved else NO_FILES
        if why := where if isinstance(where, str) else _conflict(where, file, left, part):
            conflicts.append((file.path, why))
    if not conflicts:
        write_mark(storage, part, Mark.RESTORED, left=(), now_ms=now_ms)
    elif left is None:
        _close_part(table_files, part, now_ms)
    return back, conflicts


def _brought_home(storage: Storage, file: PlannedMove) -> tuple[Where | str, bool]:
    """Where the file is now, or why that is unknown; and whether this call moved it there."""
    try:
        was = reconcile(storage, file)
        if was is not Where.ASIDE:
            return was, False
        moved = storage.move(file.to, file.path)
        return (Where.HOME if moved else Where.IN_THE_WAY), moved
    except (MissingFile, RefusedTable, OSError) as failure:
        return str(failure), False


def _conflict(where: Where, file: PlannedMove, left: frozenset[str] | None, part: QuarantinePart) -> str | None:
    """Why the file is not restored, or None. A file that was never moved (in `left`) is no conflict if it is gone."""
    if where is Where.IN_THE_WAY:
        return f"another file has its name now; its copy is kept as {file.to}"
    if where is Where.NOWHERE and file.path not in (left or ()):
        return _REMOVED_SINCE if Mark.RESTORED in part.marks else _LOST
    return None


def _of_later_runs(
    table_files: TableFiles, own: Sequence[str], conflicts: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """The conflicts. A file that is nowhere may be in the quarantine of another run, whose restore brings it back."""
    missing = {path for path, why in conflicts if why in (_LOST, _REMOVED_SINCE)}
    held = dict(_held_elsewhere(table_files, own, missing)) if missing else {}
    for path, why in conflicts:
        yield path, f"{_QUARANTINED_SINCE}{held[path]}, which restores it" if path in held else why


def _held_elsewhere(table_files: TableFiles, own: Sequence[str], paths: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """Those of the paths that another quarantine has a file of, and the run's id."""
    storage = table_files.storage
    for part in (part for folder in quarantines(table_files) if folder not in own for part in parts(storage, folder)):
        # A plan that is purged or damaged hides no file of the run that is restored.
        with suppress(MissingFile, CorruptMetadata):
            header, planned = read_plan(table_files, part)
            there = (file for file in planned if file.path in paths and storage.stat(file.to) is not None)
            yield from ((file.path, header.run_id) for file in there)


def _restored(back: FileTotals, conflicts: tuple[tuple[str, str], ...]) -> RestoreResult:
    if conflicts:
        reason = f"{back.files} files restored, {len(conflicts)} could not be"
        kinds = [f"{count} {what}" for what, count in _kinds(why for _, why in conflicts) if count]
        reason += f", of which {' and '.join(kinds)}" if kinds else ""
        return RestoreResult(Outcome.FAILED, reason, back.files, back.bytes, conflicts)
    if not back.files:
        return RestoreResult(Outcome.UNCHANGED, "every file was at home already")
    return RestoreResult(Outcome.VERIFIED, f"{back.files} files of {back.bytes:,} bytes restored", *_of(back))


def _kinds(reasons: Iterable[str]) -> Iterator[tuple[str, int]]:
    every = list(reasons)
    yield "are lost", sum(why in (_LOST, _PURGED) for why in every)
    yield "were restored before and removed since", every.count(_REMOVED_SINCE)
    yield "are in quarantine of another run", sum(why.startswith(_QUARANTINED_SINCE) for why in every)


def _of(tally: FileTotals) -> tuple[int, int]:
    return tally.files, tally.bytes


def _run_ids(table_files: TableFiles) -> Iterator[str]:
    for folder in quarantines(table_files):
        for part in [part for part in parts(table_files.storage, folder) if part.planned][:1]:
            yield read_plan(table_files, part)[0].run_id


def _since(storage: Storage, folder: str) -> int | None:
    """When the last part of a quarantine was closed or restored, in epoch milliseconds; None if a part is open."""
    quarantined = parts(storage, folder)
    if any(part.cut_short for part in quarantined):
        return None
    marks = [read_mark(storage, part, mark)[0] for part in quarantined for mark in part.marks]
    # A quarantine without marks: its run died before the first plan was whole, or a purge did. Only the store knows its
    # age.
    return max(marks or [stored.modified_ms for stored in storage.list(folder)], default=None)


def _purge_folder(storage: Storage, folder: str, *, restored_before_ms: int) -> FileTotals:
    """Delete the files of all parts, then the plans, then the marks. In this order a plan or a mark always names what
    is left or lost. Stops if a restore began meanwhile.
    """
    purged, quarantined = NO_FILES, parts(storage, folder)
    for part in quarantined:
        for batch in storage.walk(part.files):
            if _is_wanted_back(storage, folder, restored_before_ms):
                return purged
            failed = {name for name, _ in storage.delete_all([stored.name for stored in batch])}
            purged += FileTotals(len(batch) - len(failed), sum(s.bytes for s in batch if s.name not in failed))
            if failed:
                return purged
    if _is_wanted_back(storage, folder, restored_before_ms):
        return purged
    for part in quarantined:
        storage.delete(part.plan)
    for stored in storage.list(folder):
        storage.delete(stored.name)
    return purged


def _is_wanted_back(storage: Storage, folder: str, before_ms: int) -> bool:
    begun_ms = read_restoring(storage, folder)
    return begun_ms is not None and begun_ms >= before_ms
