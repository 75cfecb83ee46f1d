"""An interrupted attempt and the attempt that continues it -> one document of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import TableFiles
from nightkeep.records import RunDocument
from nightkeep.retention.orphan_list import counted
from nightkeep.retention.orphans.quarantine_manifest import Mark, folder_of, parts, read_mark, read_plan
from nightkeep.retention.orphans.sets import NO_FILES, FileTotals
from nightkeep.running.run_log import RunLog

_LIST = ("orphans", "orphans_total", "orphans_bytes", "orphans_file", "by_kind", "by_age")


def resume_sweep(log: RunLog, table_files: TableFiles, run: Run) -> None:
    """Record what both attempts of a sweep did. Moved files are counted from the quarantine; otherwise the counts of
    the earlier attempt are kept.

    Raises CorruptMetadata for a damaged quarantine manifest.
    """
    earlier = _earlier(log)
    counts = {name: earlier.extra[name] for name in _LIST if name in earlier.extra}
    if log.extra.get("orphans_file") is None:
        log.extra |= counts
    else:
        log.extra["earlier"] = counts
    log.extra |= {"changed": True, "finished": True}
    if log.order.mode_for(log.policy) is SweepMode.QUARANTINE:
        folder = folder_of(table_files, run)
        log.extra |= {
            "acted": counted(quarantined_files(table_files, folder)),
            "quarantine": f"{table_files.storage.root.rstrip('/')}/{folder}",
        }


def resume_expiry(log: RunLog) -> None:
    """Record the versions that both attempts of an expiry removed."""
    earlier = _earlier(log).extra.get("expired")
    before = earlier if isinstance(earlier, Sequence) else ()
    both = dict.fromkeys([*before, *cast(Sequence[object], log.extra["expired"])])
    log.extra |= {"expired": list(both), "changed": True, "finished": True}


def end_resumed(log: RunLog, outcome: Outcome, reason: str | None) -> RunDocument:
    """The document of an attempt that continued an earlier one. At best `verified`, as one of the two removed files."""
    prefix = "" if reason is None else f"{reason}; "
    return log.document(
        Outcome.worst([outcome, Outcome.VERIFIED]), f"{prefix}went on where an earlier attempt had ended"
    )


def quarantined_files(table_files: TableFiles, folder: str) -> FileTotals:
    """Totals of the files that the run moved, in all closed parts of its quarantine, wherever those files are now."""
    moved_files = NO_FILES
    for part in parts(table_files.storage, folder):
        if part.planned and Mark.DONE in part.marks:
            _, left = read_mark(table_files.storage, part, Mark.DONE)
            moved = [file.bytes for file in read_plan(table_files, part)[1] if file.path not in left]
            moved_files += FileTotals(len(moved), sum(moved))
    return moved_files


def _earlier(log: RunLog) -> RunDocument:
    if log.earlier is None:
        raise ValueError("no earlier attempt, expected the document of one")
    return log.earlier
