"""What a DAG run was started with -> whether it may begin: parameters its DAG knows, and not hours after its time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

SCHEDULED = "scheduled"


def require_known(conf: Mapping[str, Any] | None, known: Collection[str]) -> None:
    """Raise AirflowFailException for a parameter that is not `known`: Airflow accepts any name."""
    unknown = sorted(set(conf or {}) - set(known))
    if unknown:
        expected = ", ".join(known) if known else "none, as this DAG has no parameters"
        raise AirflowFailException(f"parameters: expected {expected}; found {', '.join(map(_told, unknown))}"
                                   + _meant(unknown, known))  # fmt: skip


def too_late(run: Any, *, now: datetime, within: timedelta) -> str | None:
    """Why a DAG run should do nothing; None for one that is in time, or that was started or cleared by hand."""
    run_after: datetime = run.run_after
    if run.run_type != SCHEDULED or run.clear_number or now - run_after <= within:
        return None
    return (
        f"scheduled for {run_after:%Y-%m-%d %H:%M}: expected to start within {within}, found {now:%Y-%m-%d %H:%M}; "
        "the next run does its work, trigger one by hand to have it now"
    )


def _meant(unknown: Collection[str], known: Collection[str]) -> str:
    near = [match for name in unknown for match in get_close_matches(name, known, n=1)]
    return f"; did you mean {', '.join(near)}?" if near else ""


def _told(name: str) -> str:
    return repr(name[:80])
