"""Airflow's REST API as a user with a password has it. Every wait is bounded."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

_ENDED = ("success", "failed")
_SECONDS = 30.0
_POLL_SECONDS = 1.0


class RestError(RuntimeError):
    """An answer that is no success."""

    def __init__(self, asked: str, status: int, text: str) -> None:
        super().__init__(f"{asked}: expected a success, found {status}: {text[:2000]}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Task:
    """A task instance of a run; `table` is its label, if it has one."""

    task_id: str
    map_index: int
    state: str | None
    tries: int
    table: str | None


@dataclass(slots=True)
class AirflowRest:
    """`base` is the server's address. A token is asked for when there is none."""

    base: str
    user: str
    password: str = field(repr=False)
    _token: str | None = field(default=None, repr=False)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """What the server answers, as JSON. Raises RestError, and OSError where nobody answers."""
        if self._token is None:
            given = {"username": self.user, "password": self.password}
            self._token = str(self._ask("POST", "/auth/token", given, {})["access_token"])
        return self._ask(method, f"/api/v2{path}", body, {"Authorization": f"Bearer {self._token}"})

    def trigger(self, dag_id: str, conf: Mapping[str, object] | None = None) -> str:
        """The id of a new run."""
        started = self.call("POST", f"/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": dict(conf or {})})
        return str(started["dag_run_id"])

    def unpause(self, dag_id: str) -> None:
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": False})

    def state(self, dag_id: str, run_id: str) -> str:
        return str(self.call("GET", _run(dag_id, run_id))["state"])

    def running(self, dag_id: str) -> list[str]:
        """Runs that have not ended."""
        found = self.call("GET", f"/dags/{dag_id}/dagRuns?state=running&state=queued")
        return [str(each["dag_run_id"]) for each in found["dag_runs"]]

    def end(self, dag_id: str, run_id: str) -> None:
        """Mark a run as failed, which ends its tasks."""
        self.call("PATCH", _run(dag_id, run_id), {"state": "failed"})

    def wait(self, dag_id: str, run_id: str, seconds: float) -> str:
        """How the run ended. A server that does not answer meanwhile is asked again."""
        deadline = time.monotonic() + seconds
        found = "unknown"
        while found not in _ENDED:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{dag_id} {run_id}: expected its end within {seconds:g} s, found {found}")
            time.sleep(_POLL_SECONDS)
            try:
                found = self.state(dag_id, run_id)
            except (OSError, HTTPException, RestError) as failure:
                if isinstance(failure, RestError) and failure.status < 500:
                    raise
        return found

    def tasks(self, dag_id: str, run_id: str) -> list[Task]:
        found = self.call("GET", f"{_run(dag_id, run_id)}/taskInstances?limit=100")
        return [
            Task(each["task_id"], each["map_index"], each["state"], each["try_number"], each["rendered_map_index"])
            for each in found["task_instances"]
        ]

    def _ask(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> Any:
        content = None if body is None else json.dumps(body).encode()
        asked = Request(f"{self.base}{path}", content, {"Content-Type": "application/json", **headers}, method=method)
        try:
            with urlopen(asked, timeout=_SECONDS) as answer:
                text = answer.read()
        except HTTPError as failure:
            with failure:
                raise RestError(f"{method} {path}", failure.code, failure.read().decode(errors="replace")) from None
        return json.loads(text) if text else None


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"
