"""Work around a published version -> its result, or what stands for it if the work fails in any way.

A version is published by one small write. No failure after it may hide that version or the difference that a check has
found. No list of exceptions has all of them: Spark's and those of clients have no common root, and bugs have none.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TypeVar

from nightkeep.causes import failure_text
from nightkeep.errors import DEBUG, NightkeepError

R = TypeVar("R")

_log = logging.getLogger(__name__)


def guarded(work: Callable[[], R], otherwise: Callable[[Exception], R], subject: str) -> R:
    """The result of `work`, or what `otherwise` makes of its failure, which it may raise again.

    The traceback of a failure that is not raised again is in the log, which job scripts write at this level.
    """
    try:
        return work()
    except Exception as failure:  # noqa: BLE001 -- see above
        result = otherwise(failure)
        if not isinstance(failure, NightkeepError):
            _log.info("%s: the traceback", subject, exc_info=True)
        return result


def log_failure(failure: Exception, subject: str) -> None:
    """Log the failure as an error in one sentence; with its traceback only on request (`--debug`)."""
    _log.error("%s: %s", subject, failure_text(failure), exc_info=failure if os.environ.get(DEBUG) else None)


def sentence(failure: Exception) -> str:
    """A failure of this package as it is worded; of any other, its innermost cause."""
    return str(failure) if isinstance(failure, NightkeepError) else failure_text(failure)
