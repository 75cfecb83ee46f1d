"""An auth manager of Airflow that grants views by name: who is called `values+...` may read values of rows."""

from __future__ import annotations

from typing import Any

from tests.support.auth_per_dag import AuthPerDag


class AuthPerView(AuthPerDag):
    """Everything else is as its base has it."""

    def is_authorized_custom_view(self, *, method: Any, resource_name: str, user: Any) -> bool:
        return (method, resource_name) == ("GET", "Nightkeep Row Values") and "values" in user.get_name().split("+")
