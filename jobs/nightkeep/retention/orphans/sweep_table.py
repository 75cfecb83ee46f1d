"""A table -> its orphan files listed, moved to quarantine or deleted. In doubt nothing is removed.

Order is what makes a sweep safe. First the listing, or what the table's log names as removed. Then the roots (versions,
tags, branches, log entries, metadata files) and all that they name, read again until no new root appears. A file that
is written meanwhile is no candidate; one that is committed meanwhile is named by a root. An orphan is a candidate,
older than the age, and named by no root. Just before a part of them is removed, the roots are read once more, and each
file must still be the one that was found.

Invariant: no file that a retained version names is moved or deleted. Evidence that is incomplete or contradicts itself
(a manifest that cannot be read, two with the same bytes, clocks that disagree, too large a share of the files) removes
nothing.

What a crash leaves, and who mends it:

- before the first removal: nothing. The document of the run, stored before, states that it did not finish.
- while files move to quarantine: each part has its plan in the store before its first file moves, and a mark after its
  last one. A file is in its place, in quarantine, or in both. A retry, or the next sweep, closes the part
  (`quarantine.close`), once the lease of the dead process has run out.
- while files are deleted: a part of the orphans is gone. The others are orphans still, and a retry goes on.
- after the removal, before its point in the log is remembered: the next sweep from the log reads the same commits
  again, and finds their files gone.
- a version that was published beside the sweep and names a file of its listing: `still_orphans` finds it; a file that
  went all the same is found by the check after the removal, which holds the table and names the command that restores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from nightkeep.errors import NightkeepError, RefusedTable, UsageError
from nightkeep.model import Operation, Outcome, Run, run_token
from nightkeep.model.counted import counted
from nightkeep.model.sweep_rules import FoundBy, SweepMode
from nightkeep.protocol.table_files import LogPoint, OpenFiles, Retention, TableFiles, refuse_changes
from nightkeep.retention.orphans.classify import own_folder, vouched
from nightkeep.retention.orphans.guards import (
    check_age,
    check_evidence,
    clocks_apart,
    not_proven,
    store_ahead_ms,
    too_many,
)
from nightkeep.retention.orphans.lease import Clock, wall_ms
from nightkeep.retention.orphans.quarantine import close, purge
from nightkeep.retention.orphans.removal import remove
from nightkeep.retention.orphans.sets import NO_FILES, SetCounts, Sets
from nightkeep.retention.orphans.survey import FileSurvey, still_orphans
from nightkeep.retention.orphans.sweep_request import FilesRemoved, SweepOrder, SweepResult

__all__ = ["SweepOrder", "SweepResult", "sweep_table"]


def sweep_table(
    table: OpenFiles,
    order: SweepOrder,
    run: Run,
    *,
    sets: Sets,
    clock: Clock = wall_ms,
    before: Callable[[], None] = lambda: None,
) -> SweepResult:
    """Sweep a table. The orphans stay readable through `sets` until it is closed. A dry run writes nothing.

    `before` is called once, if there are orphans to remove, before anything is written for that; it may raise to keep
    them.

    Raises UsageError for an age below the format's floor, EvidenceError if metadata and folder contradict each other or
    cannot be read, and RefusedTable for a table that is not handled or while another run moves its files to quarantine.
    No file of the table was removed then.
    """
    whole = table.table_files()
    table_files = vouched(whole, outside=order.outside)
    _require_own_place(whole, table_files)
    check_age(order, table_files)
    closed: tuple[str, ...] = ()
    if order.mode is not SweepMode.DRY_RUN:
        refuse_changes(whole)
        ahead_ms = store_ahead_ms(table_files, run, clock)
        run = replace(run, now_ms=run.now_ms + min(ahead_ms, 0))
        if reason := clocks_apart(ahead_ms):
            return SweepResult(Outcome.REFUSED, reason, None, run.now_ms - order.older_than_ms)
        closed = close(whole, run)
    cutoff_ms = run.now_ms - order.older_than_ms
    retention = Retention(run.now_ms, order.older_than_ms, order.keep)
    survey = FileSurvey(table, retention, sets)
    through = _begin(survey, table, table_files, order, retention=retention, sets=sets)
    settle = partial(sets.settle, cutoff_ms=cutoff_ms, named=_names(order.of_run))
    counted = settle()
    check_evidence(counted, table_files)
    result = replace(_nothing_found(whole, table_files, counted, cutoff_ms), closed=closed)
    if order.mode is SweepMode.DRY_RUN:
        return _dry_run_result(result, counted, order)
    if reason := not_proven(counted, order.mode) or too_many(counted, order):
        return replace(result, outcome=Outcome.REFUSED, reason=reason)
    acted = FilesRemoved()
    if counted.orphans.files:
        before()
        acted = remove(
            table_files,
            still_orphans(survey, sets, settle, order.mode),
            run,
            mode=order.mode,
            total=counted.orphans,
            older_than_ms=order.older_than_ms,
            entries=table.removals,
        )
    end = _final_result(result, acted, table_files, order=order, now_ms=run.now_ms)
    return replace(end, through=through if _nothing_left(end, counted, order) else None)


def _begin(
    survey: FileSurvey,
    table: OpenFiles,
    table_files: TableFiles,
    order: SweepOrder,
    *,
    retention: Retention,
    sets: Sets,
) -> LogPoint | None:
    """Find candidates, then read the roots. Returns the point that the sweep will have reached if no file is left."""
    log = table.by_log
    if order.found_by is FoundBy.LISTING:
        # Before the listing: what was removed up to the point is in it, unless it is gone.
        through = None if log is None else log.settled(retention)
        survey.begin(lambda: sets.list(table_files))
        return through
    if log is None:
        raise UsageError(f"{table_files.table.name}: {_NO_LOG}")
    named = log.removals(order.since, retention)
    survey.begin(lambda: sets.reached(table, named.roots))
    return named.through


_NO_LOG: Final = "expected a table of Delta Lake, whose log names the files that it removed; sweep by a listing"


def _nothing_left(end: SweepResult, counted: SetCounts, order: SweepOrder) -> bool:
    """Whether no file is left that the log names as removed by the commits that were considered.

    A file that is young stays, although it was removed long ago: the next sweep from the log reads of it again. A
    listing also counts files of writers at work, so its young files mean nothing.
    """
    is_whole = end.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED) and order.of_run is None
    young = counted.young.files if order.found_by is FoundBy.LOG else 0
    return is_whole and not (young or counted.doubted.files or end.left.files or end.unknown.files)


def _require_own_place(whole: TableFiles, table_files: TableFiles) -> None:
    """Raises RefusedTable if every place that metadata names may be another table's."""
    if any(place.kinds for place in whole.places) and not any(place.kinds for place in table_files.places):
        folders = ", ".join(sorted({place.folder for place in whole.places}))
        feature = f"its metadata states that its files are in {folders}, and its own metadata file is not there"
        raise RefusedTable(whole.table.name, feature, "set sweep.outside to true if no other table has files there")


def _nothing_found(whole: TableFiles, table_files: TableFiles, counted: SetCounts, cutoff_ms: int) -> SweepResult:
    unseen = tuple(place.folder for place in whole.places if place not in table_files.places)
    return SweepResult(Outcome.UNCHANGED, "no orphans", counted, cutoff_ms, unseen=unseen, unreadable=whole.unreadable)


def _names(run_id: str | None) -> tuple[str, ...]:
    """The tokens in the names of files that this run wrote, one for each operation."""
    return () if run_id is None else tuple(run_token(run_id, operation) for operation in Operation)


def _dry_run_result(result: SweepResult, found: SetCounts, order: SweepOrder) -> SweepResult:
    if not found.orphans.files and not found.doubted.files:
        return result
    reason = f"dry run: {counted(found.orphans.files, 'orphan')} of {found.orphans.bytes:,} bytes, nothing was touched"
    if refusal := too_many(found, order):
        reason += f"; acting would be refused: {refusal}"
    if unproven := not_proven(found, SweepMode.DELETE):
        reason += f"; deleting would be refused: {unproven}"
    return replace(result, outcome=Outcome.SKIPPED, reason=reason)


def _final_result(
    result: SweepResult, acted: FilesRemoved, table_files: TableFiles, *, order: SweepOrder, now_ms: int
) -> SweepResult:
    purged, failed = NO_FILES, acted.failed
    try:
        if order.purge_after_ms is not None:
            purged = purge(table_files, now_ms=now_ms, older_than_ms=order.purge_after_ms)
    except (NightkeepError, OSError) as failure:
        # The result must still report the files that were removed.
        failed += ((own_folder(table_files), f"old quarantines could not be purged: {failure}"),)
    verb = "deleted" if order.mode is SweepMode.DELETE else "quarantined"
    sentences = (
        [f"{counted(acted.gone.files, 'orphan')} of {acted.gone.bytes:,} bytes {verb}"] if acted.gone.files else []
    )
    sentences += [f"{acted.left.files} left, as they had changed"] if acted.left.files else []
    sentences += [f"{len(failed)} could not be removed"] if failed else []
    sentences += [f"{acted.unknown.files} of them may be gone"] if acted.unknown.files else []
    sentences += [f"{counted(purged.files, 'file')} purged from quarantine"] if purged.files else []
    done = acted.gone.files or purged.files
    outcome = Outcome.FAILED if failed else Outcome.VERIFIED if done else Outcome.UNCHANGED
    return replace(
        result,
        outcome=outcome,
        reason="; ".join(sentences) or result.reason,
        acted=acted.gone,
        left=acted.left,
        failed=failed,
        folder=acted.folder,
        purged=purged,
        unknown=acted.unknown,
    )
