"""Whether an Airflow is set up here, and what its DAGs then need. The library knows this module by its name.

To import Airflow makes a folder for one: nothing of it is imported before there is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nightkeep.readiness.finding import Finding


def find_deployment(environ: Mapping[str, str], schemes: Iterable[str]) -> tuple[Finding, ...] | None:
    """The rows of this Airflow; None where none is set up here."""
    if not is_set_up(environ):
        return None
    from nightkeep_airflow.deployed_dags import find_deployed  # noqa: PLC0415 -- Airflow's models take seconds

    return find_deployed(environ, tuple(schemes))


def is_set_up(environ: Mapping[str, str]) -> bool:
    """Whether the folder of an Airflow is here: named by AIRFLOW_HOME, or the usual one with its settings."""
    named = environ.get("AIRFLOW_HOME")
    home = named or os.path.expanduser("~/airflow")
    return os.path.isdir(home) if named else os.path.isfile(os.path.join(home, "airflow.cfg"))
