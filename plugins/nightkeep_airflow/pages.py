"""Places of reports -> pages under /nightkeep, for those who may read the DAG whose run they are of.

A place is that of a DAG's reports, or of the environment. The index of a place, and what no DAG's run has written, is
for those who may read all DAGs of ours. Values of rows need a right of their own besides (`value_rights`). Every name
stays below its place.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from nightkeep.nights.overview import INDEX
from nightkeep.nights.run_pages import page_path
from nightkeep.records.row_values import shows_values
from nightkeep.redaction import redact
from nightkeep_airflow.page_rights import our_dags, owners_of, reports_of
from nightkeep_airflow.plan_pages import is_dry_run, plans
from nightkeep_airflow.releases import conf
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.settings import from_environment
from nightkeep_airflow.stored_files import SERVED, StoredFiles
from nightkeep_airflow.value_rights import require_values

# A page is one self-contained document: it may style itself and draw, and nothing else.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# How many characters of an unknown name a message shows.
_SHOWN = 200
_UNKNOWN = "nightly"
"""Where Airflow knows no DAG of ours, reports are of commands: for who may read a DAG of this name, and all others."""

app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(requires_access_dag("GET"))])
app.include_router(plans)


@app.get("/", response_model=None)
def index(dag_id: str | None = None, run_id: str | None = None) -> RedirectResponse:
    """To the page of one DAG run, of a dry run to its plan, or to the index.

    A page's links are relative to the folder it is in.
    """
    if dag_id is None:
        return RedirectResponse(f"files/{page_path(INDEX)}", headers=HEADERS)
    if run_id and is_dry_run(dag_id, run_id):
        return RedirectResponse(f"dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}/plan", headers=HEADERS)
    name = run_prefix(dag_id, run_id) if run_id else INDEX
    return RedirectResponse(f"dags/{quote(dag_id, safe='')}/files/{page_path(name)}", headers=HEADERS)


@app.get("/files/{name:path}", response_model=None)
def serve(name: str, request: Request, user: GetUserDep) -> Response:
    """One page or document of the environment's place; 404 for whatever else there is, links that lead out included."""
    _require_rights(name, request, user)
    return _answer(_place(), name)


@app.get("/dags/{dag_id}/files/{name:path}", response_model=None)
def serve_of_dag(dag_id: str, name: str, request: Request, user: GetUserDep) -> Response:
    """One page or document of the place of this DAG's reports."""
    _require_rights(name, request, user)
    return _answer(reports_of(dag_id) or _place(), name)


def _require_rights(name: str, request: Request, user: Any) -> None:
    """Raise HTTPException 403 for who may not read the DAG that wrote the file, or the values of rows in it."""
    for dag_id in owners_of(name, our_dags()) or {_UNKNOWN}:
        requires_access_dag("GET", param_dag_id=dag_id)(request, user)
        if shows_values(name):
            require_values(dag_id, request, user)


def _answer(place: str, name: str) -> Response:
    try:
        found = _files(place).read(name)
    except OSError as failure:
        raise HTTPException(503, redact(f"the reports cannot be read: {failure}")) from failure
    if found is None:
        raise HTTPException(404, f"no report {name[:_SHOWN]!r}; a run's page is written when its checks are done")
    return Response(found, media_type=SERVED[PurePosixPath(name).suffix], headers=HEADERS)


@lru_cache(maxsize=16)
def _files(place: str) -> StoredFiles:
    return StoredFiles(place)


def _place() -> str:
    dags = Path(conf.get_mandatory_value("core", "dags_folder"))
    return from_environment(os.environ, dags).reports
