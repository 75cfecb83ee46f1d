"""A dry run of a form -> a page with its plan, and a button that starts a run of exactly that plan.

The page is for those who may read the DAG's runs; the button works for those who may start the DAG, as Airflow's own
does. The run that it starts has the parameters of the dry run and the digests of the plans that it showed: a job that
finds another plan does nothing (`nightkeep.running.plan_digest`). Its id is made of these, so that one plan starts one
run, however often the button is pressed.

A browser sends its cookie with a request of another site's page too. Starting takes a header that such a page cannot
set: the origin, or the token itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Annotated, Final
from urllib.parse import urlsplit

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.exceptions import DagNotFound, DagRunAlreadyExists
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from nightkeep.errors import NightkeepError
from nightkeep.model import Outcome
from nightkeep.nights.run_pages import page_path
from nightkeep.nights.run_tables import run_policy
from nightkeep.pages import plan_text
from nightkeep.records import RunDocument, documents_of_run
from nightkeep.redaction import redact
from nightkeep_airflow.deployed_dags import needs_of_dag
from nightkeep_airflow.links import report_url
from nightkeep_airflow.needs import Needs
from nightkeep_airflow.parameters import TAG
from nightkeep_airflow.pool_listener import given_parameters
from nightkeep_airflow.releases import conf
from nightkeep_airflow.runs import run_prefix

TABLE, DRY_RUN, EXPECT_PLAN = "table", "dry_run", "expect_plan"
"""Fields of the form."""
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")
_SHOWN: Final = 100
"""How many versions and files of a removal the page names. The report has more."""
_LONGEST_ID: Final = 200

_READS: Final = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
_STARTS: Final = Depends(requires_access_dag("POST", DagAccessEntity.RUN))

plans = APIRouter()


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A dry run, and what it planned."""

    dag_id: str
    run_id: str
    given: Mapping[str, object]
    documents: tuple[RunDocument, ...]

    @property
    def digests(self) -> list[str]:
        """Of the plans with work; empty if there is nothing to start."""
        found = [str(each.extra.get("plan_digest")) for each in self.documents if each.outcome is Outcome.SKIPPED]
        return [each for each in found if _DIGEST.fullmatch(each)]

    @property
    def started_id(self) -> str:
        """The id of the run that the button starts."""
        plan = "\n".join([self.run_id, *self.digests])
        return f"{self.run_id[:_LONGEST_ID]}__start-{hashlib.sha256(plan.encode()).hexdigest()[:12]}"


def is_dry_run(dag_id: str, run_id: str) -> bool:
    """Whether the run is of a form of ours, and plans only."""
    return _dry_run(dag_id, run_id) is not None


@plans.get("/dags/{dag_id}/runs/{run_id}/plan", response_model=None, dependencies=[_READS])
def show_plan(dag_id: str, run_id: str) -> Response:
    """The plan of a dry run, and the button."""
    return _page(_rendered(_planned(dag_id, run_id)))


@plans.post("/dags/{dag_id}/runs/{run_id}/plan", response_model=None, dependencies=[_STARTS])
def start_plan(
    dag_id: str, run_id: str, request: Request, user: GetUserDep, origin: Annotated[str | None, Header()] = None
) -> Response:
    """Start the run of exactly this plan, or find that it is started. 403 for a request of another site's page."""
    _require_own_page(request, origin)
    planned = _planned(dag_id, run_id)
    if not planned.digests:
        raise HTTPException(409, f"{run_id}: expected a dry run with a plan of work, found none")
    parameters = {**planned.given, DRY_RUN: False, EXPECT_PLAN: ",".join(planned.digests)}
    try:
        trigger_dag(
            dag_id,
            run_id=planned.started_id,
            conf=parameters,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=user.get_name(),
        )
    except (DagRunAlreadyExists, IntegrityError):
        return _page(_started(planned, "was started before"))
    except DagNotFound as failure:
        raise HTTPException(404, str(failure)) from failure
    return _page(_started(planned, "is started"))


def _require_own_page(request: Request, origin: str | None) -> None:
    """Raise HTTPException 403 unless the request is from a page of this server, or has its token in a header."""
    if request.headers.get("authorization", "").lower().startswith("bearer "):
        return
    site = request.headers.get("sec-fetch-site")
    ours = {request.headers.get("host"), urlsplit(conf.get("api", "base_url", fallback="")).netloc} - {"", None}
    if site not in (None, "same-origin") or origin is None or urlsplit(origin).netloc not in ours:
        raise HTTPException(403, f"Origin: expected that of this server, found {str(origin)[:_SHOWN]!r}")


def _dry_run(dag_id: str, run_id: str) -> tuple[Needs, Mapping[str, object]] | None:
    """What the DAG needs and the run was given; None for what is no dry run of a form of ours."""
    with create_session() as session:
        serialized = SerializedDagModel.get(dag_id, session=session)
        run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        dag = None if serialized is None else serialized.dag
        if run is None or dag is None or TAG not in dag.tags or EXPECT_PLAN not in dag.params:
            return None
        given = given_parameters(run)
        needs = next(iter(needs_of_dag(dag)), None)
        return None if needs is None or given.get(DRY_RUN, True) is not True else (needs, given)


def _planned(dag_id: str, run_id: str) -> ShownPlan:
    """The dry run with its documents. Raises HTTPException."""
    found = _dry_run(dag_id, run_id)
    if found is None:
        raise HTTPException(404, f"no dry run {run_id[:_SHOWN]!r} of {dag_id[:_SHOWN]!r}")
    needs, given = found
    prefix, table = run_prefix(dag_id, run_id), str(given.get(TABLE))
    # The name that reports have for the table. A machine that does not reach the policy has the name that was given.
    with suppress(NightkeepError, OSError):
        table = run_policy(needs.policy, needs.reports, prefix).effective(table).address.name
    try:
        documents = documents_of_run(needs.reports, table, f"{prefix}:{table}").documents
    except OSError as failure:
        raise HTTPException(503, redact(f"the reports cannot be read: {failure}")) from failure
    return ShownPlan(dag_id, run_id, given, tuple(documents.values()))


def _rendered(planned: ShownPlan) -> str:
    parts = [f"<h1>{escape(planned.run_id)}</h1>", _parameters(planned.given)]
    parts += [f"<pre>{escape(redact(_text(each)))}</pre>" for each in planned.documents]
    if not planned.documents:
        parts.append("<p>The plan is not written yet.</p>")
    elif planned.digests:
        parts.append(
            "<p>The run has the parameters above. It does exactly what is shown: if the table has changed so that the "
            "plan is another one, it does nothing.</p>"
            '<form method="post"><button type="submit">Start this plan</button></form>'
        )
    else:
        parts.append("<p>There is nothing to start.</p>")
    report = f"../../files/{page_path(run_prefix(planned.dag_id, planned.run_id))}"
    return "".join([*parts, f'<p><a href="{escape(report)}">Report of the dry run</a></p>'])


def _started(planned: ShownPlan, how: str) -> str:
    # The frame that Airflow shows this page in may not leave it for a page of Airflow's own.
    report = escape(report_url(planned.dag_id, planned.started_id))
    run = escape(planned.started_id)
    return f'<h1>Run {run} {how}</h1><p><a href="{report}">Its report, once it is written</a></p>'


def _parameters(given: Mapping[str, object]) -> str:
    rows = [f"<dt>{escape(name)}</dt><dd>{escape(redact(str(value)))}</dd>" for name, value in _stated(given)]
    return f"<dl>{''.join(rows)}</dl>"


def _stated(given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    return ((name, value) for name, value in given.items() if value not in (None, "", False) and name != DRY_RUN)


def _text(document: RunDocument) -> str:
    if document.operation.rewrites:
        return plan_text(document)
    versions, files = (_listed(document.extra.get(name)) for name in ("expired", "orphans"))
    names = [f"  version {each}" for each in versions]
    names += [f"  {each.get('path')}, {each.get('bytes')} bytes" for each in files if isinstance(each, Mapping)]
    more = [f"  and {len(names) - _SHOWN} more, see the report"] if len(names) > _SHOWN else []
    return "\n".join([str(document), *names[:_SHOWN], *more])


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}h1{font-size:1.2rem;overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;padding:1rem;border:1px solid GrayText;border-radius:4px}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem}"
    "dt{opacity:.75}dd{margin:0;overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1rem}"
)


def _page(body: str) -> Response:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    html = f'<!doctype html><html lang="en"><head>{head}<title>Plan</title></head><body>{body}</body></html>'
    return Response(html, media_type="text/html", headers=HEADERS)
