"""A table -> its orphan files listed, quarantined or deleted -> a document, and a file that lists all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.places import absolute
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.records import RunDocument, document_path
from nightkeep.retention.check_afterwards import remember_content
from nightkeep.retention.kept_versions import unchecked_versions
from nightkeep.retention.orphan_list import SHOWN, counted, iso, write_orphans
from nightkeep.retention.orphans.growing_sets import TimedSets, sets_of
from nightkeep.retention.orphans.sets import SetCounts, Sets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table
from nightkeep.retention.resume import end_resumed, resume_sweep
from nightkeep.retention.search import remember_search, search_facts, search_of
from nightkeep.running.ended_early import store_unfinished
from nightkeep.running.plan_digest import digest_of_removal, require_expected
from nightkeep.running.run_log import RunLog
from nightkeep.spark.engine import Engine

_UNSEEN: Final = "was not looked into: other tables may have files there under the same names, see sweep.outside"
_UNREADABLE: Final = "was left out: it cannot be read, and the catalog names another metadata file"


def sweep_orphans(log: RunLog, table: OpenFiles, run: Run, engine: Engine) -> RunDocument:
    """Sweep the table by the order. Raises what `sweep_table` raises."""
    mode = log.order.mode_for(log.policy)
    search = search_of(log, table, now_ms=run.now_ms)

    def before() -> None:
        require_expected(log, digest_of_removal(log, list_orphans(log, table, watched.sets, run.now_ms)))
        remember_content(log, engine)
        log.extra |= {"changed": True, "finished": False}
        store_unfinished(log)

    watched = TimedSets(sets_of(engine), log.stage)
    with closing(watched):
        with log.stage("sweep" if mode is SweepMode.DRY_RUN else "act"):
            order = replace(sweep_order(log, mode, run.now_ms), found_by=search.found_by, since=search.since)
            result = sweep_table(table, order, run, sets=watched, before=before)
        remember_search(log, search, result, now_ms=run.now_ms)
        log.extra |= sweep_facts(result, root=table.table_files().storage.root, notes=search.notes)
        log.extra |= search_facts(search, result)
        if result.counted is not None and result.counted.orphans.files and log.extra.get("orphans_file") is None:
            require_expected(log, digest_of_removal(log, list_orphans(log, table, watched.sets, run.now_ms)))
        if log.earlier is not None and result.outcome in (Outcome.UNCHANGED, Outcome.VERIFIED):
            remember_content(log, engine)
            resume_sweep(log, table.table_files(), run)
            return end_resumed(log, result.outcome, result.reason)
    return log.document(result.outcome, result.reason)


def sweep_order(log: RunLog, mode: SweepMode, now_ms: int) -> SweepOrder:
    """The policy's settings, overridden by the order."""
    asked, settings = log.order.removal, log.policy.settings.sweep
    return SweepOrder(
        mode=mode,
        older_than_ms=max(
            settings.older_than if asked.older_than_ms is None else asked.older_than_ms, log.owner.sweep_older_than or 0
        ),
        below_floor=asked.below_floor,
        max_share=settings.max_share if asked.max_share is None else asked.max_share,
        of_run=asked.of_run,
        keep=unchecked_versions(log.policy, log.order.reports, now_ms=now_ms),
        purge_after_ms=settings.purge_after,
        outside=settings.outside,
    )


def sweep_facts(result: SweepResult, *, root: str, notes: Sequence[str] = ()) -> dict[str, object]:
    """The document's facts about a sweep, apart from its outcome."""
    return {
        "cutoff": iso(result.cutoff_ms),
        **file_counts(result.counted),
        **evidence_facts(result.counted),
        "acted": counted(result.acted),
        "left": counted(result.left),
        "purged": counted(result.purged),
        "failed": failures(result.failed, root),
        "quarantine": full(root, result.folder),
        "closed": list(result.closed),
        "notes": [
            *(f"{full(root, folder)} {_UNSEEN}" for folder in result.unseen),
            *(f"{full(root, name)} {_UNREADABLE}" for name in result.unreadable),
            *notes,
        ],
        "changed": result.changed,
        "finished": result.outcome is Outcome.VERIFIED,
    }


def file_counts(counted: SetCounts | None) -> dict[str, object]:
    """Counts of listed files; None if nothing was listed."""
    names = ("listed", "live", "young", "unknown", "doubted")
    return {f"{name}_files": None if counted is None else getattr(counted, name).files for name in names}


def evidence_facts(counted: SetCounts | None) -> dict[str, object]:
    """Whether other metadata proves that the lists of live files are complete, and if not, why. `evidence` is None if
    nothing was read."""
    if counted is None:
        return {"evidence": None, "unproven": [], "needed_files": None}
    why = [str(reason) for reason in counted.unproven[:SHOWN]]
    return {"evidence": "none" if why else "complete", "unproven": why, "needed_files": counted.needed}


def failures(failed: tuple[tuple[str, str], ...], root: str) -> list[dict[str, object]]:
    return [{"path": full(root, name), "reason": why} for name, why in failed]


def full(root: str, name: str | None) -> str | None:
    """A name with its store's root in front."""
    return None if name is None else f"{root.rstrip('/')}/{name}"


def list_orphans(log: RunLog, table: OpenFiles, sets: Sets, now_ms: int) -> str:
    """Write all orphans of the sets to a file, and add a summary to the document. Returns the digest of the list."""
    document = document_path(log.order.reports, log.table, run_id=log.order.run_id, operation=log.order.operation)
    # What an earlier attempt listed and then moved is in its own list only.
    again = "" if log.earlier is None else f"-{now_ms}"
    path = f"{document.removesuffix('.json')}.orphans{again}.jsonl"
    with log.stage("tell"):
        orphans = write_orphans(path, sets.orphans(), root=table.table_files().storage.root, now_ms=now_ms)
    log.extra |= {**orphans.to_json(), "orphans_file": absolute(path)}
    return orphans.digest
