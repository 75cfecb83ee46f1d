"""A real Airflow on SQLite in a folder of its own, and a job that says what a script tells it to."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
JOBS = ("care.py", "l0_upgrade.py", "persist_deletes.py", "optimize.py", "sweep_orphans.py", "audit.py", "check.py")

# Says of each table what its script says for this try ("crash" ends the process; "die" does so at this table, which is
# noted, with others that are at work in "die+other", and is "failed" once `--died` names the table), and notes how it
# was called. What is said is an outcome, or several, one for each operation in turn: "unchanged verified". What is
# verified was published and passed its check; a mark tells of others that they were published and failed their check
# ("!"), and of any that no check has judged ("?"). A sweep publishes nothing; of two outcomes the first is an expiry's.
# "denied" is a failure for good, "" is a table of which nothing is said, and "hang" a job that only SIGKILL ends.
SCRIPTED_JOB = """
import argparse, json, os, pathlib, signal, sys, time
from datetime import UTC, datetime
from nightkeep.model import Operation, Outcome
from nightkeep.records import CheckStatus, Expectations, RunDocument, store
from nightkeep.places import write_file

parser = argparse.ArgumentParser()
options = "policy reports tables run-id-prefix result where zorder hilbert target-size expects operation files"
for name in options.split():
    parser.add_argument(f"--{name}")
parser.add_argument("--died", action="append", default=[])
for name in ("dry-run", "full", "one-by-one", "without-session"):
    parser.add_argument(f"--{name}", action="store_true")
args, here, job = parser.parse_args(), pathlib.Path(__file__).parent, pathlib.Path(__file__).stem
if args.without_session:
    # Every table is left for a session.
    write_file(args.result, "[]")
    sys.exit(0)
calls = here / "calls.jsonl"
before = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
with calls.open("a") as sink:
    sink.write(json.dumps({"job": job, **vars(args)}) + "\\n")
script = json.loads((here / "script.json").read_text())[job]
entries, now = [], datetime.now(UTC)
for table in args.tables.split(","):
    outcomes = script.get(table, ["verified"])
    tries = sum(call["job"] == job and table in call["tables"].split(",") for call in before)
    said = outcomes[min(tries, len(outcomes) - 1)]
    if table in args.died:
        said = said.replace("die", "failed")
    if said == "crash":
        sys.exit(3)
    if said == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        below = os.fork()
        with (here / "pids").open("a") as sink:
            sink.write(f"{os.getpid()}\\n")
        time.sleep(900)
    kinds = {"sweep_orphans": (Operation.EXPIRE, Operation.SWEEP)[-len(said.split()):]}
    for operation, marked in zip(kinds.get(job, (Operation.UPGRADE, Operation.OPTIMIZE)), said.split()):
        if marked.startswith("die"):
            write_file(args.result, json.dumps(entries))
            write_file(args.result + ".hand", "\\n".join([table, *marked.split("+")[1:]]))
            os.kill(os.getpid(), signal.SIGKILL)
        one, denied = marked.rstrip("?!").replace("denied", "failed"), marked == "denied"
        check = {"?": CheckStatus.NOT_RUN, "!": CheckStatus.FAILED}.get(marked[-1], CheckStatus.PASSED)
        published = 7 if operation.rewrites and (one == "verified" or marked[-1] in "?!") else None
        document = RunDocument(
            run_id=f"{args.run_id_prefix}:{table}", table=table, format="paimon", operation=operation,
            outcome=Outcome(one), reason=f"{one} on purpose", started_at=now, finished_at=now,
            committed_version=published, expectations=Expectations(check if published else CheckStatus.NOT_RUN),
        )
        path = store(document, args.reports)
        entries.append({
            "table": table, "operation": operation, "outcome": one, "reason": document.reason,
            "committed_version": published, "document": str(path), "permanent": denied,
        })
write_file(args.result, json.dumps(entries))
"""


@dataclass(frozen=True, slots=True)
class Airflow:
    """An AIRFLOW_HOME of its own, a policy of tables that are not there, and the scripted job."""

    home: Path
    environ: Mapping[str, str] = field(repr=False)

    @contextmanager
    def started(self, *command: str, **variables: str) -> Iterator[Future[subprocess.CompletedProcess[str]]]:
        """A command that runs beside the tests; what `call` returns is there when it has ended."""
        with ThreadPoolExecutor(1) as thread:
            yield thread.submit(self.call, *command, **variables)

    def call(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment; its exit status is the caller's to look at."""
        executable = str(Path(sys.executable).with_name(command[0]))
        return subprocess.run(
            [executable, *command[1:]],
            env={**self.environ, **variables},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def python(self, script: str, **variables: str) -> Any:
        """What `script` prints as its last line, as JSON."""
        done = self.call("python", "-c", script, **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def script(self, **outcomes: Mapping[str, Sequence[str]]) -> None:
        """What the jobs are to say: by job, table and try; every other table is verified."""
        jobs = self.home / "jobs"
        (jobs / "calls.jsonl").unlink(missing_ok=True)
        (jobs / "script.json").write_text(json.dumps({Path(name).stem: {} for name in JOBS} | outcomes))

    def calls(self, job: str) -> list[dict[str, Any]]:
        noted = self.home / "jobs/calls.jsonl"
        lines = noted.read_text().splitlines() if noted.exists() else []
        return [call for call in map(json.loads, lines) if call["job"] == job]

    def query(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.home / "airflow.db") as database:
            return database.execute(sql, values).fetchall()


@dataclass(frozen=True, slots=True)
class DagRun:
    """What Airflow's database and the job's notes say of one finished run; `labels` are those of mapped groups."""

    state: str
    log: str
    tasks: Mapping[tuple[str, str | int], tuple[str, int]]
    care: tuple[dict[str, Any], ...]
    check: tuple[dict[str, Any], ...]
    assets: Mapping[str, dict[str, Any]]
    labels: Mapping[tuple[str, int], str]


def finished(airflow: Airflow, dag_id: str, log: str) -> DagRun:
    """The latest run of a DAG; tasks by id and table or map index, with their state and number of tries."""
    ((run_id, state),) = airflow.query(
        "select run_id, state from dag_run where dag_id = ? order by id desc limit 1", dag_id
    )
    tasks = airflow.query(
        "select task_id, map_index, rendered_map_index, state, try_number from task_instance where run_id = ?", run_id
    )
    events = airflow.query(
        "select a.name, e.extra from asset_event e join asset a on a.id = e.asset_id where e.source_run_id = ?", run_id
    )
    return DagRun(
        state=state,
        log=log,
        tasks={
            (task, label if label and task in ("outcome", "swept") else i): (s, tries)
            for task, i, label, s, tries in tasks
        },
        care=tuple(call for name in JOBS[:-1] for call in airflow.calls(Path(name).stem)),
        check=tuple(airflow.calls("check")),
        assets={name: json.loads(extra) for name, extra in events},
        labels={(task, i): label for task, i, label, _, _ in tasks if label and task.startswith("group.")},
    )


def airflow_home(home: Path, tables: Iterable[str], *, delta: Iterable[str] = ()) -> Airflow:
    """An Airflow in the empty folder `home`, without a database yet, whose policy has `tables`, three a group.

    `tables` are said to be Paimon's; those of `delta` come after them.
    """
    (home / "jobs").mkdir()
    for name in JOBS:
        (home / "jobs" / name).write_text(SCRIPTED_JOB)
    formats = {**dict.fromkeys(tables, "paimon"), **dict.fromkeys(delta, "delta")}
    entries = [f"  - name: {name}\n    table: {kind}:{home}/{name}" for name, kind in formats.items()]
    policy = ["version: 1", "defaults: {tables_per_session: 3}", "tables:", *entries]
    (home / "tables.yaml").write_text("\n".join(policy))
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "NIGHTKEEP"))}
    ours = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW_CONN_NIGHTKEEP_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "NIGHTKEEP_POLICY": str(home / "tables.yaml"),
        "NIGHTKEEP_REPORTS": str(home / "reports"),
        "NIGHTKEEP_JOBS": str(home / "jobs"),
        "NIGHTKEEP_RETRY_DELAY_SECONDS": "0",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "jobs", ROOT / "plugins"))),
    }
    return Airflow(home, {**outside, **ours})


@pytest.fixture(scope="session")
def airflow_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of Airflow's as it makes it, with the pool of the Spark tasks; to be copied."""
    airflow = airflow_home(tmp_path_factory.mktemp("database"), ())
    for command in (("db", "migrate"), ("pools", "set", "nightkeep_spark", "1", "Spark")):
        done = airflow.call("airflow", *command)
        assert done.returncode == 0, done.stderr
    return airflow.home / "airflow.db"


def with_database(airflow: Airflow, database: Path) -> Airflow:
    """The same, with a copy of the database."""
    shutil.copy(database, airflow.home / "airflow.db")
    return airflow


SUBMIT = """#!/bin/sh
while :; do case "$1" in *.py) break ;; *) shift ;; esac; done
exec "{python}" "$@"
"""


def without_jvm(airflow: Airflow) -> Airflow:
    """The same, whose connection names a program that runs the job's script without the JVM, which scripted jobs never
    use. It is one of the three names that the provider allows, and no other program here has it."""
    folder = airflow.home / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "spark3-submit").write_text(SUBMIT.format(python=sys.executable))
    (folder / "spark3-submit").chmod(0o755)
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"spark-binary": "spark3-submit"}}
    ours = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "AIRFLOW_CONN_NIGHTKEEP_SPARK": json.dumps(connection)}
    return replace(airflow, environ={**airflow.environ, **ours})
