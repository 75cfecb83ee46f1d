"""An auth manager of Airflow whose users may read the DAGs that their name lists, as `nightly+nightly-eu`."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


class AuthPerDag(SimpleAuthManager):
    """Everything else is as its base has it."""

    def is_authorized_dag(self, *, user: Any, details: Any = None, **more: Any) -> bool:
        named = user.get_name().split("+")
        return bool(named) if details is None or details.id is None else details.id in named
