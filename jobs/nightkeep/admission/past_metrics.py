"""Documents of a table -> the facts of its health that only they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, TableDocuments

PAST: Final = frozenset({"days_since_run", "nights_waited", "orphans"})
BUDGET: Final = "budget: "
"""How the reason of a document begins if a night had no budget left for its table."""
REWRITES: Final = tuple(each for each in Operation if each.rewrites)
DONE: Final = (Outcome.VERIFIED, Outcome.UNCHANGED)
"""How a run ends that did its work."""


def past_metrics(documents: TableDocuments, now: datetime) -> Mapping[str, int | float | None]:
    """What documents report of a table: days since a run published or found nothing to do, and `orphans`, the files
    that the last sweep left in place; None if no document has it. `nights_waited`: for how many nights a budget left it
    out.

    Reads the newest documents, back to the last run that ended well and to the last sweep.
    """
    left_out, ended = _waited(documents.newest_first(*REWRITES))
    listed = (each for each in documents.newest_first(Operation.SWEEP) if "orphans_total" in each.extra)
    swept = next(listed, None)
    days = None if ended is None else (now - ended).total_seconds() / 86_400
    return {
        "nights_waited": left_out,
        "days_since_run": None if days is None else round(days, 2),
        "orphans": None if swept is None else _left(swept),
    }


def _waited(runs: Iterator[RunDocument]) -> tuple[int, datetime | None]:
    """How many of the newest runs were left out, and when the last one ended that did its work."""
    waited, left_out = set[str](), True
    for each in runs:
        left_out = left_out and _is_left_out(each)
        waited |= {each.run_id} if left_out else set()
        if each.outcome in DONE:
            return len(waited), each.finished_at
    return len(waited), None


def _left(swept: RunDocument) -> int:
    orphans = swept.extra["orphans_total"]
    return orphans if swept.extra.get("mode") == "dry-run" and isinstance(orphans, int) else 0


def _is_left_out(document: RunDocument) -> bool:
    return document.outcome is Outcome.SKIPPED and (document.reason or "").startswith(BUDGET)
