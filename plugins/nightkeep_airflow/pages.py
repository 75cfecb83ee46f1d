"""Place of reports -> pages under /nightkeep, for those who may read the nightly DAG.

Every route, files included, requires the application's dependency, and every name stays below the place.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path, PurePosixPath

from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Response
from fastapi.responses import RedirectResponse

from nightkeep.redaction import redact
from nightkeep_airflow.releases import conf
from nightkeep_airflow.run_pages import INDEX, page_path
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.settings import from_environment
from nightkeep_airflow.stored_files import SERVED, StoredFiles

# A page is one self-contained document: it may style itself and draw, and nothing else.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# How many characters of an unknown name a message shows.
_SHOWN = 200

# The DAG is fixed here and not taken from the request: otherwise access to any DAG would open every report.
app = FastAPI(
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(requires_access_dag("GET", param_dag_id="nightly"))],
)


@app.get("/", response_model=None)
def index(dag_id: str | None = None, run_id: str | None = None) -> RedirectResponse:
    """To the page of one DAG run, or to the index; a page's links are relative to the folder it is in."""
    name = run_prefix(dag_id, run_id) if dag_id and run_id else INDEX
    return RedirectResponse(f"files/{page_path(name)}", headers=HEADERS)


@app.get("/files/{name:path}", response_model=None)
def serve(name: str) -> Response:
    """One page or document; 404 for whatever else there is, links that lead out of the folder included."""
    try:
        found = _files(_place()).read(name)
    except OSError as failure:
        raise HTTPException(503, redact(f"the reports cannot be read: {failure}")) from failure
    if found is None:
        raise HTTPException(404, f"no report {name[:_SHOWN]!r}; a run's page is written when its checks are done")
    return Response(found, media_type=SERVED[PurePosixPath(name).suffix], headers=HEADERS)


@lru_cache(maxsize=2)
def _files(place: str) -> StoredFiles:
    return StoredFiles(place)


def _place() -> str:
    dags = Path(conf.get_mandatory_value("core", "dags_folder"))
    return from_environment(os.environ, dags).reports
