"""Missed deadline -> a line in the log, for alerting on logs, and messages to whom the policy names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from nightkeep.errors import NightkeepError
from nightkeep.policy import load_usable
from nightkeep.redaction import redact
from nightkeep_airflow.links import report_url
from nightkeep_airflow.notices import notify_of_late
from nightkeep_airflow.releases import DEADLINES_ARE_AWAITED, DeadlineCallback
from nightkeep_airflow.runs import run_prefix

_log = logging.getLogger(__name__)


def missed_deadline(policy: str, reports: str) -> DeadlineCallback:
    """What Airflow calls when a run misses a deadline."""
    call = late_awaited if DEADLINES_ARE_AWAITED else late
    return DeadlineCallback(call, kwargs={"policy": policy, "reports": reports})


async def late_awaited(**kwargs: Any) -> None:
    """As `late`, for a triggerer, whose other work goes on meanwhile."""
    await asyncio.to_thread(late, **kwargs)


def late(context: Mapping[str, Any], policy: str | None = None, reports: str | None = None) -> None:
    """Called by Airflow, with a context that holds only `dag_run` and `deadline`.

    A run has one message for each of its deadlines, whatever Airflow repeats.
    """
    deadline, dag_run = context.get("deadline"), context.get("dag_run")
    _log.error("nightkeep: the nightly run missed its deadline: %s", deadline)
    if policy is None or reports is None or not isinstance(dag_run, Mapping):
        return
    dag_id, run_id = str(dag_run["dag_id"]), str(dag_run["run_id"])
    due = deadline.get("deadline_time") if isinstance(deadline, Mapping) else deadline
    try:
        loaded = load_usable(policy)
        notify_of_late(
            loaded,
            f"run {run_id} of {dag_id} has not ended by {due}",
            reports=reports,
            run_id=f"{run_prefix(dag_id, run_id)} {due}",
            link=report_url(dag_id, run_id),
        )
    except (NightkeepError, OSError) as failure:
        _log.error("nightkeep: nobody is sent a message about it: %s", redact(str(failure)))
