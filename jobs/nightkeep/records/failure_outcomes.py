"""The failure that ended the work on a table, or came after a commit -> the outcome and reason in its document.

What a reason states of the time after a commit, a later check takes out again. A version without a check is failed.

A reason is a sentence. Earlier releases stored stacks as reasons, which are sentences once they are read: pages, tables
and mails then show one line for a failure. Stacks of this release are in the log only.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from nightkeep.causes import failure_text, one_sentence
from nightkeep.errors import BeingCreated, NightkeepError, OtherPlan, RefusedTable
from nightkeep.model import Outcome
from nightkeep.records.document import UNJUDGED, CheckStatus, Expectations, ExpectationSummary, RunDocument

AFTER_COMMIT: Final = "published, but then: "
"""How the part of a reason begins that an unexpected failure between commit and check left."""
CHECK_UNFINISHED: Final = "published, but its check did not finish: "
"""How the part of a reason begins that a check left which ended by an unexpected failure."""
AFTERWARDS_UNFINISHED: Final = "the check of what is left did not finish: "
"""The same, for the check that follows on a removal."""
UNFINISHED: Final = "ended before it was done"
"""How the reason begins of a document that is stored before any work."""
UNKNOWN: Final = "whether a version was published is not known; the same run, started again, looks for it"
"""How the reason ends of a run whose commit had no answer."""
UNREPORTED: Final = "published, but its check did not report"
"""The part of a reason of a published version that no check has judged yet."""
_SURPRISE: Final = re.compile(
    f"(?:; )?(?:{'|'.join(map(re.escape, (AFTER_COMMIT, CHECK_UNFINISHED, AFTERWARDS_UNFINISHED, UNREPORTED)))})"
)
_WORSE: Final = frozenset({Outcome.FAILED, Outcome.MISMATCH})
"""Outcomes that a missing check does not change."""


def unjudged(document: RunDocument) -> bool:
    """Whether the run published a version or removed files, and no check has judged the table since."""
    removed = bool(document.extra.get("changed")) and document.expectations.status in UNJUDGED
    return document.awaits_check or removed


def may_be_published(document: RunDocument) -> bool:
    """Whether the table may have a commit of this run that its document does not name."""
    reason = document.reason or ""
    unknown = reason.startswith(UNFINISHED) or reason.endswith(UNKNOWN)
    return document.operation.rewrites and document.committed_version is None and unknown


def was_left(document: RunDocument) -> bool:
    """Whether the run of a document has left a check, or may have left a commit without one."""
    return document.awaits_check or may_be_published(document)


def without_surprise(reason: str | None) -> str | None:
    """The reason without such a part, as a finished check has an answer of its own."""
    return _SURPRISE.split(reason, maxsplit=1)[0] or None if reason else None


def with_surprise(reason: str | None, kind: str, failure: str) -> str:
    """The reason with such a part at its end."""
    return "; ".join(filter(None, [without_surprise(reason), f"{kind}{failure}"]))


def published_outcome(document: RunDocument) -> Outcome:
    """The outcome without the result of an earlier check: a check that failed to run may be repeated."""
    return Outcome.worst([Outcome.VERIFIED, *(unit.outcome for unit in document.units)])


def unreported_as_failed(document: RunDocument) -> RunDocument:
    """The document as it is stored before the check: a published version without a check counts as failed.

    So the document is right if the process ends before the check reports, and nobody stores another one."""
    if not document.awaits_check or document.outcome in _WORSE:
        return document
    return replace(document, outcome=Outcome.FAILED, reason=with_surprise(document.reason, UNREPORTED, ""))


def without_check(document: RunDocument, why: str) -> RunDocument:
    """The document of a published version that no check will judge, for the reason `why`."""
    expectations = Expectations(CheckStatus.SKIPPED, reason=why)
    if UNREPORTED not in (document.reason or ""):
        return replace(document, expectations=expectations)
    reason = without_surprise(document.reason)
    return replace(document, outcome=published_outcome(document), reason=reason, expectations=expectations)


def with_reason(expectations: Expectations) -> Expectations:
    """The result of a check, which states why it errored: its own reason, else that of an expectation that errored."""
    if expectations.status is not CheckStatus.ERRORED or expectations.reason:
        return expectations
    details = (f"{each.expectation}: {each.detail}" for each in expectations.results if _errored(each))
    return replace(expectations, reason=next(details, "it has no result"))


def _errored(result: ExpectationSummary) -> bool:
    return result.status is CheckStatus.ERRORED and bool(result.detail)


def unfinished_check(document: RunDocument, failure: str) -> RunDocument:
    """The document of a published version whose check this failure ended."""
    reason = with_surprise(document.reason, CHECK_UNFINISHED, failure)
    return replace(document, outcome=Outcome.FAILED, reason=reason)


def failure_outcome(failure: NightkeepError | OSError, table: str) -> tuple[Outcome, str]:
    """Outcome and reason. The reason does not repeat the name of the table."""
    if isinstance(failure, BeingCreated):
        return Outcome.CONFLICTED, f"{failure}; run again"
    if isinstance(failure, OtherPlan):
        return Outcome.SKIPPED, str(failure)
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
