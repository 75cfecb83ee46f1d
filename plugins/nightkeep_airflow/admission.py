"""A DAG run -> whether it may begin: only with parameters that its DAG knows, and not hours after its time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from nightkeep_airflow.parameters import unknown
from nightkeep_airflow.releases import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk.types import DagRunProtocol

SCHEDULED = "scheduled"


def require_known(conf: Mapping[str, object] | None, known: Collection[str]) -> None:
    """Raise AirflowFailException for a parameter that is not `known`. Requests to the API are refused earlier."""
    why = unknown(conf, known)
    if why is not None:
        raise AirflowFailException(why)


def too_late(run: DagRunProtocol, *, now: datetime, within: timedelta) -> str | None:
    """Why a DAG run should do nothing; None for one that is in time, or that was started or cleared by hand."""
    run_after: datetime = run.run_after
    if run.run_type != SCHEDULED or run.clear_number or now - run_after <= within:
        return None
    return (
        f"scheduled for {run_after:%Y-%m-%d %H:%M}: expected to start within {within}, found {now:%Y-%m-%d %H:%M}; "
        "the next run does its work, trigger one by hand to have it now"
    )
