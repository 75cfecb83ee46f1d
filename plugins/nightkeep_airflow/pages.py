"""Reports folder -> pages under /nightkeep, for those who may read the nightly DAG.

Every route, files included, requires the application's dependency, and every path stays in the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.providers.common.compat.sdk import conf
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse, RedirectResponse

from nightkeep_airflow.run_pages import INDEX, page_name
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.settings import from_environment

# A page is one self-contained document: it may style itself and draw, and nothing else.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# How many characters of an unknown name a message shows.
_TOLD = 200
SERVED = {".html": "text/html", ".json": "application/json"}

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
    return RedirectResponse(f"files/{page_name(name)}", headers=HEADERS)


@app.get("/files/{name:path}", response_model=None)
def serve(name: str) -> FileResponse:
    """One page or document; 404 for whatever else there is, links that lead out of the folder included."""
    path = _stored_page(name)
    if path is None:
        raise HTTPException(404, f"no report {name[:_TOLD]!r}; a run's page is written when its checks are done")
    return FileResponse(path, media_type=SERVED[path.suffix], headers=HEADERS)


def _stored_page(name: str) -> Path | None:
    """The file with that name; None if it is no page or document of the folder."""
    folder = _folder()
    try:
        path = (folder / name).resolve()
        served = path.is_relative_to(folder) and path.suffix in SERVED and path.is_file()
    except (OSError, ValueError, RuntimeError):
        # A name that is too long, a folder that may not be read, a NUL, text that is no file name, links in a circle.
        return None
    return path if served else None


def _folder() -> Path:
    dags = Path(conf.get_mandatory_value("core", "dags_folder"))
    return Path(from_environment(os.environ, dags).reports).resolve()
