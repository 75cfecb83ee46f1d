"""A run, or a task of it -> the address of its report page. `pages` serves that page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.sdk import BaseOperatorLink

from nightkeep_airflow.releases import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

URL_PREFIX = "/nightkeep"


class ReportLink(BaseOperatorLink):
    """The button on a task's details that opens the report of its run."""

    name = "Nightkeep report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return report_url(ti_key.dag_id, ti_key.run_id)


def report_url(dag_id: str, run_id: str) -> str:
    """The address of the report page of a run."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}{URL_PREFIX}/?{urlencode({'dag_id': dag_id, 'run_id': run_id})}"
