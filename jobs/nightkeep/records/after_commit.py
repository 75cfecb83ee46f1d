"""What went wrong after a version was published -> the reason in its document, which a later check takes out again."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from nightkeep.model import Outcome
from nightkeep.records.document import UNJUDGED, RunDocument

AFTER_COMMIT: Final = "published, but then: "
"""How the part of a reason begins that an unexpected failure between commit and check left."""
CHECK_UNFINISHED: Final = "published, but its check did not finish: "
"""How the part of a reason begins that a check left which ended by an unexpected failure."""
_SURPRISE: Final = re.compile(f"(?:; )?(?:{re.escape(AFTER_COMMIT)}|{re.escape(CHECK_UNFINISHED)})")


def unjudged(document: RunDocument) -> bool:
    """Whether the run published a version or removed files, and no check has judged the table since."""
    removed = bool(document.extra.get("changed")) and document.expectations.status in UNJUDGED
    return document.awaits_check or removed


def without_surprise(reason: str | None) -> str | None:
    """The reason without such a part, as a finished check has an answer of its own."""
    return _SURPRISE.split(reason, maxsplit=1)[0] or None if reason else None


def with_surprise(reason: str | None, kind: str, failure: str) -> str:
    """The reason with such a part at its end."""
    return "; ".join(filter(None, [without_surprise(reason), f"{kind}{failure}"]))


def unfinished_check(document: RunDocument, failure: str) -> RunDocument:
    """The document of a published version whose check this failure ended."""
    reason = with_surprise(document.reason, CHECK_UNFINISHED, failure)
    return replace(document, outcome=Outcome.FAILED, reason=reason)
