"""Documents of a table -> the facts of its health that only they tell."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from nightkeep.model import Operation, Outcome
from nightkeep.reports import RunDocument

PAST: Final = frozenset({"days_since_run", "nights_waited", "orphans"})
BUDGET: Final = "budget: "
"""How the reason of a document begins if a night had no budget left for its table."""
_DONE: Final = (Outcome.VERIFIED, Outcome.UNCHANGED)


def past_metrics(documents: Sequence[RunDocument], now: datetime) -> Mapping[str, int | float | None]:
    """What documents tell of a table: days since a run published or found nothing to do, and `orphans`, the files that
    the last sweep left in place; None if no document tells. `nights_waited`: for how many nights a budget left it out.
    """
    ended = [each.finished_at for each in documents if each.operation.rewrites and each.outcome in _DONE]
    swept = [each for each in documents if each.operation is Operation.SWEEP and "orphans_total" in each.extra]
    found = swept[-1].extra if swept else {}
    stays = found.get("mode") == "dry-run"
    orphans = found.get("orphans_total")
    days = (now - max(ended)).total_seconds() / 86_400 if ended else None
    runs = [each for each in documents if each.operation.rewrites]
    waited = itertools.takewhile(_is_left_out, reversed(runs))
    return {
        "nights_waited": len({each.run_id for each in waited}),
        "days_since_run": None if days is None else round(days, 2),
        "orphans": orphans if stays and isinstance(orphans, int) else 0 if swept else None,
    }


def _is_left_out(document: RunDocument) -> bool:
    return document.outcome is Outcome.SKIPPED and (document.reason or "").startswith(BUDGET)
