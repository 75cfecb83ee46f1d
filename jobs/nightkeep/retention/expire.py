"""A table -> old versions, and files that only they need, removed -> a document that names both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from nightkeep.admission.owner_settings import longest
from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest, OpenExpiry, OpenFiles, Retention
from nightkeep.records import RunDocument
from nightkeep.retention.check_afterwards import remember_content
from nightkeep.retention.expire_versions import ExpireOrder, ExpiryResult, expire_versions
from nightkeep.retention.kept_versions import unchecked_versions
from nightkeep.retention.log_files import LogEnd, LogWork, list_log, planned_log, tend_log
from nightkeep.retention.orphan_list import OrphanList, counted
from nightkeep.retention.orphans.growing_sets import TimedSets, sets_of
from nightkeep.retention.orphans.sets import SetCounts, Sets
from nightkeep.retention.resume import end_resumed, resume_expiry
from nightkeep.retention.sweep import failures, file_counts, full, list_orphans
from nightkeep.running.ended_early import store_unfinished
from nightkeep.running.plan_digest import digest_of_removal, require_expected
from nightkeep.running.run_log import RunLog
from nightkeep.spark.engine import Engine

_WENT_WELL: Final = (Outcome.UNCHANGED, Outcome.SKIPPED, Outcome.VERIFIED)


def expire_table(log: RunLog, table: OpenFiles, run: Run, engine: Engine) -> RunDocument:
    """Expire versions by the order. Raises what `expire_versions` raises."""
    mode = log.order.mode_for(log.policy)
    with ExitStack() as opened:
        surveys = _Surveys(log, table, run.now_ms, opened, partial(sets_of, engine))

        order = expire_order(log, mode, run.now_ms)
        work = planned_log(log, table, order.request, removes=mode is not SweepMode.QUARANTINE)
        going = [] if work is None else work.names

        def before(expiry: OpenExpiry) -> None:
            if log.order.expected_plan is not None:
                require_expected(log, digest_of_removal(log, surveys.write(), [*_names(expiry), *going]))
            remember_content(log, engine)
            log.extra |= {**_versions(expiry), "changed": True, "finished": False}
            store_unfinished(log)

        def listed(_: SetCounts) -> None:
            surveys.write()

        with log.stage("expire"):
            outcome = expire_versions(table, order, run, sets=surveys.open, before=before, removing=listed)
        log.extra |= expiry_facts(outcome, root=table.table_files().storage.root)
        if mode is SweepMode.DRY_RUN and (outcome.counted is not None or going):
            has_files = outcome.counted is not None and outcome.counted.orphans.files
            files = surveys.write() if has_files else OrphanList().digest
            require_expected(log, digest_of_removal(log, files, [*_names(outcome.expiry), *going]))
        ended = _tended(log, work, run, outcome, engine) if outcome.outcome in _WENT_WELL else LogEnd()
        end, reason = ended.after(outcome.outcome, outcome.reason)
        if log.earlier is not None and end in (Outcome.UNCHANGED, Outcome.VERIFIED):
            remember_content(log, engine)
            resume_expiry(log)
            return end_resumed(log, end, reason)
    return log.document(end, reason)


def _tended(log: RunLog, work: LogWork | None, run: Run, expired: ExpiryResult, engine: Engine) -> LogEnd:
    """Tend the log after the files, as it names files that only its commits name."""
    if log.order.mode_for(log.policy) is SweepMode.DRY_RUN:
        return list_log(log, work)
    if expired.counted is None and work is not None and work.names and log.order.expected_plan is not None:
        # Nothing was compared yet: there was no file to remove.
        require_expected(log, digest_of_removal(log, OrphanList().digest, [*_names(expired.expiry), *work.names]))

    def remember() -> None:
        if "units" not in log.facts:
            remember_content(log, engine)

    with log.stage("expire"):
        return tend_log(log, work, run, remember=remember)


def expire_order(log: RunLog, mode: SweepMode, now_ms: int) -> ExpireOrder:
    """The policy's settings, overridden by the order. Versions that a check may still need are kept."""
    asked, settings = log.order.removal, log.policy.settings
    keep = unchecked_versions(log.policy, log.order.reports, now_ms=now_ms)
    older_than = settings.expire.older_than if asked.older_than_ms is None else asked.older_than_ms
    older_than = longest(older_than, log.owner.expire_older_than)
    retain_last = settings.expire.retain_last if asked.retain_last is None else asked.retain_last
    retain_last = longest(retain_last, log.owner.expire_retain_last)
    return ExpireOrder(
        mode,
        ExpireRequest(now_ms, keep, older_than_ms=older_than, retain_last=retain_last),
        # Files follow the table's own expiry rules. A sweep's retention would keep the files of expired versions.
        Retention(now_ms, older_than or 0, keep),
        outside=settings.sweep.outside,
    )


def expiry_facts(expired: ExpiryResult, *, root: str) -> dict[str, object]:
    """The document's facts about an expiry, apart from its outcome."""
    facts: dict[str, object] = {**_versions(expired.expiry), "notes": list(expired.expiry.notes)}
    if expired.counted is None:
        # No version could be removed: none was old enough, or another writer committed first.
        return facts | {"expired": [], "changed": False}
    return facts | {
        **file_counts(None),
        "acted": counted(expired.acted.gone),
        "left": counted(expired.acted.left),
        "failed": failures(expired.acted.failed, root),
        "quarantine": full(root, expired.acted.folder),
        "changed": expired.outcome is not Outcome.SKIPPED,
        "finished": expired.outcome is Outcome.VERIFIED,
    }


def _names(expiry: OpenExpiry) -> list[int | str]:
    return [root.id if root.version is None else root.version for root in expiry.roots]


def _versions(expiry: OpenExpiry) -> dict[str, object]:
    return {"expired": _names(expiry), "kept": [{"version": name, "reason": why} for name, why in expiry.kept]}


@dataclass
class _Surveys:
    """One `Sets` per try. All are closed at the end; `write` writes the orphans of the last."""

    log: RunLog
    table: OpenFiles
    now_ms: int
    opened: ExitStack
    sets: Callable[[], Sets]
    last: Sets | None = None

    def open(self) -> Sets:
        self.last = self.sets()
        self.opened.callback(self.last.close)
        return TimedSets(self.last, self.log.stage)

    def write(self) -> str:
        """Write the list, and return its digest."""
        return "" if self.last is None else list_orphans(self.log, self.table, self.last, self.now_ms)
