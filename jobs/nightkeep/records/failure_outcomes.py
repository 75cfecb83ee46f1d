"""The failure that ended the work on a table -> the outcome and reason in its document."""

from __future__ import annotations

from nightkeep.causes import failure_text
from nightkeep.errors import BeingCreated, NightkeepError, RefusedTable
from nightkeep.model import Outcome


def failure_outcome(failure: NightkeepError | OSError, table: str) -> tuple[Outcome, str]:
    """Outcome and reason. The reason does not repeat the name of the table."""
    if isinstance(failure, BeingCreated):
        return Outcome.CONFLICTED, f"{failure}; run again"
    if not isinstance(failure, RefusedTable):
        own = isinstance(failure, NightkeepError)
        return Outcome.FAILED, f"{type(failure).__name__}: {failure}" if own else failure_text(failure)
    subject = "" if failure.table == table else f"{failure.table}: "
    return Outcome.REFUSED, f"{subject}{failure.feature}; {failure.advice}"
