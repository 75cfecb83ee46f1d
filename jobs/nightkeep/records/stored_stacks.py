"""A stored document -> the same with a sentence in place of each stack, as earlier releases stored stacks as reasons.

Pages, tables and mails then show one line for a failure. Stacks of this release are in the log only.
"""

from __future__ import annotations

from dataclasses import replace

from nightkeep.causes import one_sentence
from nightkeep.records.after_commit import CHECK_UNFINISHED
from nightkeep.records.document import RunDocument


def without_stacks(document: RunDocument) -> RunDocument:
    """The document in which reasons, faults and details are sentences."""
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
