"""The releases of Spark and Airflow that the wheels run with: an environment of each, made by ordinary commands.

Run by `make test-versions` (VERSIONS="spark 3.5" for a part). For each release of Spark: `nightkeep[spark]` with that
pyspark, and the tour of `tour.py`. For each release of Airflow: Airflow with packages of the release's time, then one
resolver run of `nightkeep[airflow]` and the Spark provider with packages of today. The DAG files are parsed, the form
plans, the page of the plan starts one run however often its button is pressed, and the form runs an operation on a
table with the Spark of another environment. Prints the table of docs/versions.md.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[2]
UV: Final = os.environ.get("NIGHTKEEP_UV", str(ROOT / ".uv" / "bin" / "uv"))
SPARKS: Final = ("3.5.8", "4.0.2", "4.1.4", "4.2.0", "4.3.0")
AIRFLOWS: Final = (("3.1.8", "2026-03-20"), ("3.2.2", "2026-06-20"), ("3.3.2", "2026-11-25"))
"""A release, and the day whose packages it was released with."""
BUILT_WITH: Final = "4.1.4"
_SECONDS: Final = 1800
_OURS: Final = ("PYTHON", "PYSPARK", "NIGHTKEEP", "VIRTUAL", "AIRFLOW", "SPARK")

FORM: Final = {"table": "delta:{table}", "operation": "optimize", "dry_run": False}
DAG_FILE: Final = """from datetime import timedelta

from nightkeep_airflow.dags import nightly, on_demand

nightly(policy={policy!r}, reports={reports!r}, deadlines=[timedelta(hours=1)])
on_demand(policy={policy!r}, reports={reports!r})
"""
PLAN_PAGE: Final = """
import json, sys
from urllib.parse import quote
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from sqlalchemy import select
def runs():
    with create_session() as session:
        return {each.run_id: each.conf for each in session.scalars(select(DagRun).where(DagRun.dag_id == "on_demand"))}
(planned,) = runs()
page = f"/nightkeep/dags/on_demand/runs/{quote(planned, safe='')}/plan"
own = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
    client.cookies = {"_token": get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="op", role="op"))}
    answers = [client.get(page), client.post(page, headers=own), client.post(page, headers=own)]
started = {run_id: conf for run_id, conf in runs().items() if run_id != planned}
print(json.dumps([[each.status_code for each in answers], 'method="post"' in answers[0].text, [*started.values()]]))
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `fault` is empty where all went well."""

    what: str
    release: str
    brings: str
    seconds: float
    fault: str = ""


class Failed(Exception):
    """A command of an environment that ended with another status than 0."""


def call(folder: Path, *command: str, **variables: str) -> str:
    """What a command prints. It sees no variable of this environment. Raises Failed with the end of its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environment |= {"GX_ANALYTICS_ENABLED": "false", "SPARK_LOCAL_IP": "127.0.0.1", **variables}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if ended.returncode:
        raise Failed(f"{' '.join(command)[:200]}: status {ended.returncode}\n{(ended.stdout + ended.stderr)[-3000:]}")
    return ended.stdout


def installed(folder: Path, *wants: str, at: str | None = None) -> Path:
    """The interpreter of the environment in `folder`, made if it is not there, with more packages in it."""
    python = folder / "bin" / "python"
    if not python.exists():
        call(folder.parent, UV, "venv", "-q", "-p", sys.executable, str(folder))
    when = ["--exclude-newer", at] if at else []
    call(folder.parent, UV, "pip", "install", "-q", "-p", str(python), *when, *wants)
    return python


def versions_of(python: Path, *names: str) -> str:
    script = f"from importlib.metadata import version as v; print(', '.join(f'{{n}} {{v(n)}}' for n in {names!r}))"
    return call(python.parent, str(python), "-c", script).strip()


def tour(work: Path, library: str, spark: str) -> str:
    """All operations on the sample tables with one release of Spark."""
    python = installed(work / f"spark-{spark}", f"{library}[spark]", f"pyspark=={spark}")
    copy = work / f"tables-{spark}"
    call(ROOT, str(python), "-m", "samples.working_copy", str(copy), PYTHONPATH=str(ROOT))
    variables = dict(
        line.split("=", 1) for line in call(copy, "bash", "-c", ". ./env && env").splitlines() if "=" in line
    )
    chosen = {
        name: value for name, value in variables.items() if name.startswith(("NIGHTKEEP", "PYICEBERG", "PYSPARK"))
    }
    print(call(copy, str(python), str(ROOT / "tests/versions/tour.py"), **chosen), end="", flush=True)
    return versions_of(python, "pyspark", "pandas", "numpy", "pyarrow", "great-expectations")


def form(work: Path, wheels: tuple[str, str], spark: Path, release: str, at: str) -> str:
    """A run of the form with one release of Airflow, whose environment has no pyspark."""
    python = installed(work / f"airflow-{release}", f"apache-airflow=={release}", at=at)
    library, plugin = wheels
    installed(python.parents[1], f"{library}[airflow]", plugin, "apache-airflow-providers-apache-spark")
    place = work / f"deployment-{release}"
    (place / "dags").mkdir(parents=True)
    shutil.copytree(ROOT / "samples" / "delta" / "shop.db" / "clicks", place / "clicks")
    (place / "tables.yaml").write_text("version: 1\n", encoding="utf-8")
    text = DAG_FILE.format(policy=str(place / "tables.yaml"), reports=str(place / "reports"))
    (place / "dags" / "lake.py").write_text(text, encoding="utf-8")
    variables = {
        "AIRFLOW_HOME": str(place / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(place / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW_CONN_NIGHTKEEP_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "PYSPARK_DRIVER_PYTHON": str(spark),
        "PYSPARK_PYTHON": str(spark),
    }
    airflow = str(python.parent / "airflow")
    call(place, airflow, "db", "migrate", **variables)
    call(place, airflow, "pools", "set", "nightkeep_spark", "1", "Spark", **variables)
    conf = {**FORM, "table": f"delta:{place}/clicks"}
    call(place, airflow, "dags", "reserialize", **variables)
    call(place, airflow, "dags", "test", "on_demand", "--conf", json.dumps({**conf, "dry_run": True}), **variables)
    # Folders that begin with `~` have no documents.
    (shown,) = (each for each in place.glob("reports/*/*.json") if not each.parent.name.startswith("~"))
    answers, has_button, started = json.loads(call(place, str(python), "-c", PLAN_PAGE, **variables).splitlines()[-1])
    digest = json.loads(shown.read_text(encoding="utf-8"))["plan_digest"]
    if (answers, has_button, started) != ([200] * 3, True, [{**conf, "expect_plan": digest}]):
        raise Failed(f"the page of the plan: expected one run of {digest}, found {answers}, {has_button}, {started}")
    ended = call(place, airflow, "dags", "test", "on_demand", "--conf", json.dumps(conf), **variables)
    (document,) = {each for each in place.glob("reports/*/*.json") if each.parent == shown.parent} - {shown}
    outcome = json.loads(document.read_text(encoding="utf-8"))["outcome"]
    if outcome != "verified":
        raise Failed(f"the form: expected verified, found {outcome}\n{ended[-2000:]}")
    plugins = json.loads(call(place, airflow, "plugins", "-o", "json", **variables))
    if [each["name"] for each in plugins if each["name"] == "nightkeep"] != ["nightkeep"]:
        raise Failed(f"the plugin: expected it once, found {[each['name'] for each in plugins]}")
    return versions_of(python, "apache-airflow-core", "apache-airflow-providers-apache-spark", "pyspark-client")


def results(work: Path, wanted: tuple[str, ...]) -> Iterator[Result]:
    for folder in (ROOT, ROOT / "plugins"):
        call(ROOT, UV, "build", "-q", "--wheel", "--out-dir", str(work / "dist"), str(folder))
    library, plugin = (str(next((work / "dist").glob(f"{name}-*.whl"))) for name in ("nightkeep", "nightkeep_airflow"))

    def asked(what: str, release: str) -> bool:
        return not wanted or f"{what} {release}".startswith(" ".join(wanted))

    for spark in SPARKS:
        if asked("spark", spark):
            yield timed("Spark", spark, lambda spark=spark: tour(work, library, spark))  # type: ignore[misc]
    airflows = [each for each in AIRFLOWS if asked("airflow", each[0])]
    if airflows:
        python = installed(work / f"spark-{BUILT_WITH}", f"{library}[spark]", f"pyspark=={BUILT_WITH}")
        for release, at in airflows:
            run = lambda release=release, at=at: form(work, (library, plugin), python, release, at)  # noqa: E731
            yield timed("Airflow", release, run)


def timed(what: str, release: str, run: Callable[[], str]) -> Result:
    print(f"--- {what} {release}", flush=True)
    started = time.monotonic()
    try:
        return Result(what, release, run(), time.monotonic() - started)
    except (Failed, subprocess.TimeoutExpired) as failure:
        print(failure, flush=True)
        return Result(what, release, "", time.monotonic() - started, str(failure).splitlines()[0])


def main() -> int:
    with TemporaryDirectory(prefix="nightkeep-versions-") as folder:
        found = list(results(Path(folder), tuple(sys.argv[1:])))
    print("\n| | release | brings | result | s |\n|---|---|---|---|---|")
    for each in found:
        print(f"| {each.what} | {each.release} | {each.brings} | {each.fault or 'passed'} | {each.seconds:.0f} |")
    return 1 if not found or any(each.fault for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
