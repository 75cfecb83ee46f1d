"""Missed deadline -> one line in the log, where alerting on logs can pick it up."""

from __future__ import annotations

import logging
from collections.abc import Mapping

_log = logging.getLogger(__name__)


def late(context: Mapping[str, object]) -> None:
    """Called by Airflow, with a context that holds only `dag_run` and `deadline`."""
    _log.error("nightkeep: the nightly run missed its deadline: %s", context.get("deadline"))
