"""Names that Airflow 3.1, 3.2 and 3.3 have in different places. Nothing else in this package asks for the release."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    AirflowTaskTimeout,
    BaseHook,
    BaseNotifier,
    DownstreamTasksSkipped,
    Stats,
    TaskDeferred,
    conf,
    mask_secret,
)
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

try:
    from airflow.sdk import CronTriggerTimetable
    from airflow.sdk.definitions.callback import SyncCallback as DeadlineCallback

    DEADLINES_ARE_AWAITED = False
except ImportError:
    # Airflow 3.1, whose deadlines take what its triggerer can await, and nothing else.
    from airflow.sdk.definitions.deadline import AsyncCallback as DeadlineCallback  # type: ignore[assignment, no-redef, attr-defined, unused-ignore]
    from airflow.timetables.trigger import CronTriggerTimetable  # type: ignore[assignment, unused-ignore]

    DEADLINES_ARE_AWAITED = True

__all__ = [
    "DEADLINES_ARE_AWAITED",
    "AirflowException",
    "AirflowFailException",
    "AirflowSkipException",
    "AirflowTaskTimeout",
    "BaseHook",
    "BaseNotifier",
    "CronTriggerTimetable",
    "DeadlineAlert",
    "DeadlineCallback",
    "DeadlineReference",
    "DownstreamTasksSkipped",
    "Stats",
    "TaskDeferred",
    "conf",
    "mask_secret",
]
