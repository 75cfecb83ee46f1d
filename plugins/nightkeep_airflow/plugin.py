"""The plugin that Airflow loads at start: the report pages and the links to them. Imports nothing slow.

Airflow finds it by the wheel's entry point, or in its plugins folder, where each file is loaded as a module of its own.
Where both have it, the file in the folder defines no plugin: Airflow would show the second one as a broken plugin.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from airflow.plugins_manager import AirflowPlugin

from nightkeep_airflow import pool_listener
from nightkeep_airflow.links import URL_PREFIX
from nightkeep_airflow.request_filter import KnownParameters

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


_MODULE: Final = "nightkeep_airflow.plugin"


class ReportPages:
    """The pages as an ASGI application, imported by the first request.

    Airflow loads plugins in every one of its processes, and the module that guards the pages takes seconds
    to import; the API server has it already.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from nightkeep_airflow.pages import app  # noqa: PLC0415 -- takes seconds

        await app(scope, receive, send)


class NightkeepPlugin(AirflowPlugin):
    """Report pages, an entry in the navigation, a tab on each DAG run, a check of the parameters of a new one, and a
    look for its pool when it begins."""

    name = "nightkeep"
    fastapi_apps = [{"app": ReportPages(), "url_prefix": URL_PREFIX, "name": "nightkeep"}]  # noqa: RUF012 (as AirflowPlugin declares it)
    fastapi_root_middlewares = [{"middleware": KnownParameters, "name": "nightkeep-parameters"}]  # noqa: RUF012 (as AirflowPlugin declares it)
    listeners = [pool_listener]  # noqa: RUF012 (as AirflowPlugin declares it)
    external_views = [  # noqa: RUF012 (as AirflowPlugin declares it)
        {
            "name": "Nightkeep",
            "href": "nightkeep/",
            "destination": "nav",
            "category": "browse",
            "url_route": "nightkeep-reports",
        },
        {
            "name": "Nightkeep",
            "href": "nightkeep/?dag_id={DAG_ID}&run_id={RUN_ID}",
            "destination": "dag_run",
            "url_route": "nightkeep-run",
        },
    ]


if __name__ != _MODULE and any(each.module == _MODULE for each in entry_points(group="airflow.plugins")):
    del NightkeepPlugin
