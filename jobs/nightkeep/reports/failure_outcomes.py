"""What ended the work on a table -> how its document tells of it."""

from __future__ import annotations

from nightkeep.errors import BeingCreated, NightkeepError, RefusedTable
from nightkeep.model import Outcome


def failure_outcome(failure: NightkeepError | OSError, table: str) -> tuple[Outcome, str]:
    """Outcome and reason; a document of `table` need not name it again."""
    if isinstance(failure, BeingCreated):
        return Outcome.CONFLICTED, f"{failure}; run again"
    if not isinstance(failure, RefusedTable):
        return Outcome.FAILED, f"{type(failure).__name__}: {failure}"
    subject = "" if failure.table == table else f"{failure.table}: "
    return Outcome.REFUSED, f"{subject}{failure.feature}; {failure.advice}"
