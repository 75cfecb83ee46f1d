"""What a DAG needs -> what of it is missing, before any Spark starts: for the first task of a run, and for
`nightkeep doctor`.

A task sees the connection, the policy, the reports, the scripts and the interpreter of its driver. Pools are in
Airflow's database, which no task sees: the scheduler looks for them when a run begins (`pool_listener`).
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from nightkeep.model.version import __version__, works_with
from nightkeep.places import is_address
from nightkeep.policy import PolicyFile
from nightkeep.readiness.finding import Finding, Readiness
from nightkeep.readiness.places_side import find_places, schemes_of
from nightkeep.readiness.policy_side import read_policy
from nightkeep.readiness.reports_side import try_reports
from nightkeep_airflow.driver_side import Cluster, DriverSide, submitting_environment
from nightkeep_airflow.needs import Needs
from nightkeep_airflow.operators import CARE_JOB, CHECK_JOB, SWEEP_JOB
from nightkeep_airflow.releases import AirflowException, AirflowFailException, BaseHook

_log = logging.getLogger(__name__)

_DRIVER_SECONDS: Final = 60.0
"""A Python that imports the library, and a Java that prints its release, take a second on an idle machine."""
_TYPES: Final = ("spark", "generic", "")
_ASK: Final = """
import json, os, sys
from nightkeep.model.version import __version__
print(json.dumps(__version__), flush=True)
from nightkeep.readiness.spark_side import find_spark
print(json.dumps([each.to_json() for each in find_spark(os.environ, sys.argv[1:], submitted=True)]))
"""


def require_ready(needs: Needs, *, missing: str | None = None, places: bool = True) -> None:
    """Raise AirflowFailException with a sentence for each thing without which every task of the run would fail, and
    AirflowException where a later try may find it. What only some tables need is logged: they fail by name.

    `missing`: what the scheduler found of the pool. `places`: ask the policy's catalogs and buckets, too.
    """
    loaded, of_policy = read_policy(needs.policy)
    of_places = find_places(loaded, writes=False) if loaded is not None and places else ()
    rows = (*of_policy, *of_places, try_reports(needs.reports), *find_submitting(needs, _schemes(loaded)))
    lacking = [each for each in rows if each.hinders]
    for each in lacking:
        _log.warning("%s", each)
    stops = [each for each in lacking if each.stops_every_run]
    sentences = [*([missing] if missing else []), *map(str, stops)]
    if sentences:
        passing = not missing and all(each.may_pass for each in stops)
        raise (AirflowException if passing else AirflowFailException)("\n".join(sentences))


def _schemes(loaded: PolicyFile | None) -> tuple[str, ...]:
    return () if loaded is None else schemes_of(loaded)


def find_submitting(needs: Needs, schemes: Iterable[str]) -> tuple[Finding, ...]:
    """Rows of what submits a job: the connection, the scripts, and the interpreter of the driver with its Spark."""
    if not needs.connection:
        return (*_find_scripts(needs.jobs), _driver_row(Readiness.NOT_APPLICABLE, "the driver", "a way of your own"))
    connection, mode, binary = _find_connection(needs.connection)
    rows = (*connection, *_find_scripts(needs.jobs))
    if mode != "client":
        return (*rows, _driver_row(Readiness.NOT_APPLICABLE, "the driver", f"deploy mode {mode}: it runs elsewhere"))
    of_driver = ask_driver(needs.jobs, schemes)
    return (*rows, *(each for each in of_driver if each.check != "spark-submit" or binary == "spark-submit"))


def _find_connection(name: str) -> tuple[tuple[Finding, ...], str, str]:
    """Its row, its deploy mode, and the name of its spark-submit."""
    found = _connection(name)
    extra = {} if found is None else dict(found.extra_dejson)
    binary = str(extra.get("spark-binary") or "spark-submit")
    return (_connection_row(name, found),), str(extra.get("deploy-mode") or "client"), binary


def _connection(name: str) -> Any:
    try:
        return BaseHook.get_connection(name)
    except AirflowException:
        # Of a release and a way to run alike: the connection is defined nowhere.
        return None


def _connection_row(name: str, connection: Any) -> Finding:
    expected = "a connection of type spark with a master"
    status, remedy = Readiness.PASSED, None
    if connection is None:
        status, found = Readiness.MISSING, "none"
        remedy = f"airflow connections add {name} --conn-type spark --conn-host spark://HOST --conn-port 7077"
    else:
        kind, host = connection.conn_type or "", connection.host or ""
        found = f"type {kind or 'none'}, master {host or 'none'}"
        if kind not in _TYPES or not host:
            status, remedy = Readiness.FAILED, "name Spark's master as its host, such as spark://HOST, yarn or local[4]"
    return Finding(
        check="connection", status=status, subject=f"connection {name}", expected=expected, found=found, remedy=remedy
    )


def _find_scripts(jobs: str) -> Iterator[Finding]:
    expected = "the scripts of the jobs"
    if is_address(jobs):
        yield _scripts_row(Readiness.NOT_APPLICABLE, jobs, expected, "an address, which spark-submit reads")
        return
    named = (CARE_JOB, CHECK_JOB, SWEEP_JOB)
    missing = [name for name in named if not Path(jobs, name).is_file()]
    if missing:
        remedy = "install the wheel, or name the folder of the scripts in NIGHTKEEP_JOBS"
        yield _scripts_row(Readiness.MISSING, jobs, expected, f"no {', '.join(missing)}", remedy)
    else:
        yield _scripts_row(Readiness.PASSED, jobs, expected, f"{len(named)} scripts")


def _scripts_row(status: Readiness, jobs: str, expected: str, found: str, remedy: str | None = None) -> Finding:
    return Finding(check="jobs", status=status, subject=jobs, expected=expected, found=found, remedy=remedy)


def ask_driver(jobs: str, schemes: Iterable[str]) -> tuple[Finding, ...]:
    """Rows of the interpreter that a driver on this machine has: its Nightkeep against this one, and what it lacks to
    start Spark. It is asked by a process, within a bound."""
    environment = submitting_environment(DriverSide(Cluster.LOCAL, remote=False), os.environ, jobs)
    python = environment["PYSPARK_DRIVER_PYTHON"]
    try:
        done = subprocess.run(
            [python, "-c", _ASK, *schemes],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DRIVER_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return (_driver_row(Readiness.MISSING, python, "no such interpreter", _ADVICE),)
    except OSError as failure:
        return (_driver_row(Readiness.FAILED, python, failure.strerror or str(failure), _ADVICE),)
    except subprocess.TimeoutExpired:
        found = f"no answer within {_DRIVER_SECONDS:.0f} seconds"
        return (_driver_row(Readiness.FAILED, python, found, "look at the load of this machine", may_pass=True),)
    return tuple(_answered(python, done))


_ADVICE: Final = (
    "name an interpreter in PYSPARK_DRIVER_PYTHON whose environment has Nightkeep, as by "
    f'pip install "nightkeep[spark]=={__version__}"'
)


def _answered(python: str, done: subprocess.CompletedProcess[str]) -> Iterator[Finding]:
    """An older release answers its version alone."""
    version, *rows = done.stdout.splitlines()[-2:] if done.returncode == 0 else done.stdout.splitlines()[:1] or [""]
    found = _version_of(version)
    if found is None:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        yield _driver_row(Readiness.MISSING, python, f"none that can be imported ({last})", _ADVICE)
        return
    fits = works_with(found)
    remedy = None if fits else _ADVICE
    yield _driver_row(Readiness.PASSED if fits else Readiness.FAILED, python, f"Nightkeep {found}", remedy)
    if fits and rows:
        yield from (Finding.from_json(each) for each in json.loads(rows[0]))


def _version_of(line: str) -> str | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _driver_row(
    status: Readiness, python: str, found: str, remedy: str | None = None, *, may_pass: bool = False
) -> Finding:
    return Finding(
        check="driver",
        status=status,
        subject=f"driver {python}",
        expected=f"Nightkeep {'.'.join(__version__.split('.')[:2])}, as here ({__version__})",
        found=found,
        remedy=remedy,
        may_pass=may_pass,
    )


def pool_rows(names: Sequence[str], known: Iterable[str]) -> tuple[Finding, ...]:
    """A row for each pool. Airflow leaves a task waiting for ever whose pool does not exist."""
    there = set(known)
    return tuple(_pool_row(name, is_there=name in there) for name in dict.fromkeys(names))


def _pool_row(name: str, *, is_there: bool) -> Finding:
    return Finding(
        check="pool",
        status=Readiness.PASSED if is_there else Readiness.MISSING,
        subject=f"pool {name}",
        expected="a pool of this name, whose slots are the Spark jobs at a time",
        found="one" if is_there else "none",
        remedy=None if is_there else f'airflow pools set {name} 1 "Spark jobs at a time"',
    )
