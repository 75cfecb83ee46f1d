"""The policy -> documents, pages and results of long ago removed, once a day, behind whoever wrote a page.

It hinders no night: where it fails, the reason is a line in the log, and another day does it.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from nightkeep.errors import NightkeepError, UsageError
from nightkeep.model.counted import counted
from nightkeep.policy import PolicyFile
from nightkeep.records.forget_documents import forget_documents
from nightkeep.records.needed_documents import TableNeeds
from nightkeep.redaction import redact

_log = logging.getLogger(__name__)


def remove_old_reports(policy: PolicyFile, reports: str, now: datetime) -> str | None:
    """Remove what the policy keeps no longer. Returns a sentence on what was removed, None if nothing was."""
    if policy.reports.keep is None:
        return None
    keep = timedelta(milliseconds=policy.reports.keep)

    def needs_of(table: str) -> TableNeeds:
        try:
            settings = policy.effective(table).settings
        except UsageError:
            # It has left the policy, or cannot be used now. In doubt its documents are needed.
            return TableNeeds()
        return TableNeeds(is_checked=settings.check.enabled, purge_after_ms=settings.sweep.purge_after)

    try:
        done = forget_documents(reports, keep=keep, needs_of=needs_of, now=now)
    except (NightkeepError, OSError) as failure:
        _log.warning("old reports are not removed: %s", redact(str(failure)))
        return None
    if done is None or not (done.documents or done.files):
        return None
    removed = f"{counted(done.documents, 'document')} and {counted(done.files, 'other file')}"
    return f"{removed} of runs before {now - keep:%Y-%m-%d} removed"
