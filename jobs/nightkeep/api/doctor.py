"""nightkeep.doctor: what is missing here to run, before any Spark starts."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from nightkeep.api.call_context import POLICY_PLACES, find_policy, reports_beside
from nightkeep.card import render_card
from nightkeep.model.counted import counted
from nightkeep.pages.text_table import aligned_lines
from nightkeep.policy import PolicyFile
from nightkeep.readiness.finding import Finding, FindingJson
from nightkeep.readiness.packages import find_packages, find_python
from nightkeep.readiness.places_side import find_places, schemes_of
from nightkeep.readiness.policy_side import no_policy, read_policy
from nightkeep.readiness.reports_side import try_reports
from nightkeep.readiness.spark_side import find_spark

_HEAD: Final = ("check", "status", "subject", "found")
_DEPLOYMENT: Final = "nightkeep_airflow.deployment"
"""The module of Airflow's side that adds what its DAGs need. The library knows it by its name alone."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The rows of all checks, in their order. `is_ready`: nothing is missing that a run needs."""

    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, place: int) -> Finding:
        return self.findings[place]

    @property
    def is_ready(self) -> bool:
        return not any(each.hinders for each in self.findings)

    def to_json(self) -> list[FindingJson]:
        return [each.to_json() for each in self.findings]

    def __str__(self) -> str:
        lines = aligned_lines([_HEAD, *map(_cells, self.findings)])
        hindering = [str(each) for each in self.findings if each.hinders]
        found = f"{len(hindering)} of them found what a run lacks" if hindering else "nothing is missing"
        return "\n".join([*(line.rstrip() for line in lines), *hindering, f"{counted(len(self), 'check')}, {found}"])

    def _repr_html_(self) -> str:
        return render_card("doctor", [str(each) for each in self.findings if each.hinders], _HEAD, [*map(_cells, self)])


def doctor(*, policy: str | Path | None = None, reports: str | Path | None = None) -> Diagnosis:
    """What is missing here to run: Python, packages, Java and Spark, the policy, its places, the place of reports, and
    what DAGs need where Airflow is set up here.

    Writes and removes a small file in the place of reports and in each bucket of tables. Opens no table and starts no
    Spark.
    """
    file = find_policy(policy)
    loaded, of_policy = (None, (no_policy(" or ".join(POLICY_PLACES)),)) if file is None else read_policy(file)
    schemes = () if loaded is None else schemes_of(loaded)
    deployed = _of_deployment(schemes)
    rows = (
        find_python(),
        *find_packages(),
        *of_policy,
        *_of_places(loaded),
        try_reports(reports_beside(file, reports)),
        *(find_spark(os.environ, schemes) if deployed is None else deployed),
    )
    return Diagnosis(tuple(dict.fromkeys(rows)))


def _of_places(loaded: PolicyFile | None) -> tuple[Finding, ...]:
    return () if loaded is None else find_places(loaded, writes=True)


def _of_deployment(schemes: tuple[str, ...]) -> tuple[Finding, ...] | None:
    """What Airflow's side adds, which asks the interpreter of its driver for Spark; None where Airflow is not set up
    here."""
    if find_spec("airflow") is None or find_spec(_DEPLOYMENT.partition(".")[0]) is None:
        return None
    deployment: Any = importlib.import_module(_DEPLOYMENT)
    found: tuple[Finding, ...] | None = deployment.find_deployment(os.environ, schemes)
    return found


def _cells(finding: Finding) -> tuple[str, ...]:
    return (finding.check, finding.status, finding.subject, "see below" if finding.hinders else finding.found)
