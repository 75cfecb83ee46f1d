"""An operator within the task of another one: it is executed as Airflow's task runner does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator
from airflow.sdk.bases.operator import ExecutorSafeguard

from nightkeep.causes import failure_text
from nightkeep_airflow.releases import AirflowException, AirflowFailException, TaskDeferred

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


def execute_within(operator: BaseOperator, context: Context) -> None:
    """Execute the operator, whose templates are rendered already.

    Raises AirflowException for whatever it raises, and AirflowFailException for one that hands its waiting over to the
    triggerer, as this task reads what the job reports.
    """
    # Without it Airflow logs that only its task runner may call `execute`.
    runner = {f"{type(operator).__name__}__sentinel": ExecutorSafeguard.sentinel_value}
    try:
        operator.execute(context, **runner)
    except TaskDeferred as deferred:
        raise AirflowFailException(
            f"submit: expected an operator that waits for the end of its job, found {type(operator).__name__}, which "
            "defers; give it deferrable=False"
        ) from deferred
    except AirflowException:
        raise
    except Exception as failure:
        raise AirflowException(f"{type(operator).__name__}: {failure_text(failure)}") from failure
