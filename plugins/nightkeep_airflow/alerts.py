"""Missed deadline -> one line in the log, where alerting on logs can pick it up."""

from __future__ import annotations

import logging
from typing import Any

_log = logging.getLogger(__name__)


def late(context: dict[str, Any]) -> None:
    """Called by Airflow, with a context that holds only `dag_run` and `deadline`."""
    _log.error("nightkeep: the nightly run missed its deadline: %s", context.get("deadline"))
