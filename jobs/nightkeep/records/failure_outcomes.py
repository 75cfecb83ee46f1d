"""The failure that ended the work on a table -> the outcome and reason in its document.

A reason is a sentence. Earlier releases stored stacks as reasons, which are sentences once they are read: pages, tables
and mails then show one line for a failure. Stacks of this release are in the log only.
"""

from __future__ import annotations

from dataclasses import replace

from nightkeep.causes import failure_text, one_sentence
from nightkeep.errors import BeingCreated, NightkeepError, RefusedTable
from nightkeep.model import Outcome
from nightkeep.records.after_commit import CHECK_UNFINISHED
from nightkeep.records.document import RunDocument


def failure_outcome(failure: NightkeepError | OSError, table: str) -> tuple[Outcome, str]:
    """Outcome and reason. The reason does not repeat the name of the table."""
    if isinstance(failure, BeingCreated):
        return Outcome.CONFLICTED, f"{failure}; run again"
    if not isinstance(failure, RefusedTable):
        own = isinstance(failure, NightkeepError)
        return Outcome.FAILED, f"{type(failure).__name__}: {failure}" if own else failure_text(failure)
    subject = "" if failure.table == table else f"{failure.table}: "
    return Outcome.REFUSED, f"{subject}{failure.feature}; {failure.advice}"


def without_stacks(document: RunDocument) -> RunDocument:
    """A stored document in which reasons, faults and details are sentences."""
    units = tuple(
        replace(unit, reason=_sentence(unit.reason), faults=tuple(map(one_sentence, unit.faults)))
        for unit in document.units
    )
    checked = document.expectations
    results = tuple(replace(each, detail=_sentence(each.detail)) for each in checked.results)
    checked = replace(checked, reason=_sentence(checked.reason), results=results)
    return replace(document, reason=_sentence(document.reason), units=units, expectations=checked)


def _sentence(text: str | None) -> str | None:
    if text is None:
        return None
    before, mark, failure = text.partition(CHECK_UNFINISHED)
    return f"{before}{mark}{one_sentence(failure)}" if mark else one_sentence(text)
