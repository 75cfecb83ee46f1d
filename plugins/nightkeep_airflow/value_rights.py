"""A user and a DAG -> whether values of rows that its runs found may be shown: a right of its own in Airflow.

The right is to read the view `VIEW` of the auth manager, as FAB, Keycloak and others grant it by its name. It is
granted to nobody unless somebody does so. Airflow's simple auth manager knows four roles and no views by name: it would
show every view to every viewer. There the right to start runs of the DAG stands for it.
"""

from __future__ import annotations

from typing import Any, Final

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import HTTPException, Request

VIEW: Final = "Nightkeep Row Values"


def require_values(dag_id: str, request: Request, user: Any) -> None:
    """Raise HTTPException 403 for who may not see values of rows."""
    manager = get_auth_manager()
    if type(manager).is_authorized_custom_view is SimpleAuthManager.is_authorized_custom_view:
        requires_access_dag("POST", DagAccessEntity.RUN, param_dag_id=dag_id)(request, user)
    elif not manager.is_authorized_custom_view(method="GET", resource_name=VIEW, user=user):
        raise HTTPException(403, f"values of rows are for who may read the view {VIEW!r}")
