"""Commits since the last run -> those that show deleted rows again -> a hold on the table.

Such commits of other writers cannot be prevented, only detected. The version that was examined last is stored beside
the holds, so that each commit is judged once, and not again after a release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from nightkeep.model import Outcome
from nightkeep.protocol import OpenTable, Seen, Snapshot, Undone, Watch
from nightkeep.records import HistoryMark, RunDocument, hold, keep_look, last_look

_REPORTED: Final = 100
"""How many reported commits are remembered, for tables whose last examined version no longer exists."""
_DETAILS: Final = 20


def find_undone_deletes(table: OpenTable, base: Snapshot, reports: str, *, now_ms: int) -> Watch | None:
    """The commits up to `base` that were not reported yet; None for a format without such commits."""
    if table.watch is None:
        return None
    last = last_look(reports, table.address.name)
    watch = table.watch(base, None if last is None else Seen(last.version, last.identity), now_ms=now_ms)
    if watch is None or last is None:
        return watch
    return replace(watch, undone=tuple(undone for undone in watch.undone if _name(undone.commit) not in last.reported))


def undone_facts(table: OpenTable, watch: Watch, *, dry_run: bool) -> dict[str, Any]:
    """The document's facts about `watch.undone`. The way back leads to before the first of these commits."""
    first = watch.undone[0]
    parent = first.commit.version - 1
    undone = [_undone_fields(commit) for commit in watch.undone]
    more = "" if len(undone) == 1 else f"; so do {len(undone) - 1} later versions"
    end = "a run puts the table on hold" if dry_run else "on hold"
    return {
        "outcome": Outcome.MISMATCH,
        "reason": (
            f"version {first.commit.version}, a compaction by {first.author!r:.80}, shows rows again which version "
            f"{parent} hides: {first.details[0]}{more}; {end}; going back drops what was committed since"
        ),
        "base_version": parent,
        "go_back": table.commits.rollback(parent),
        "extra": {"undone": undone},
    }


def hold_if_undone(watch: Watch, document: RunDocument | None, *, reports: str, table: str) -> None:
    """Put the table on hold because of `document`, if there is one, and store up to which version it was examined."""
    if document is not None:
        hold(reports, table, document)
    last = last_look(reports, table)
    names = [*(() if last is None else last.reported), *(_name(undone.commit) for undone in watch.undone)]
    keep_look(
        reports,
        HistoryMark(
            table=table, version=watch.head.version, identity=watch.head.identity, reported=tuple(names[-_REPORTED:])
        ),
    )


def _undone_fields(undone: Undone) -> dict[str, object]:
    version = undone.commit.version
    return {
        "version": version,
        "parent_version": version - 1,
        "commit_user": f"{undone.author:.80}",
        "details": list(undone.details[:_DETAILS]),
        "details_total": len(undone.details),
    }


def _name(seen: Seen) -> str:
    return f"{seen.version} {seen.identity}"
