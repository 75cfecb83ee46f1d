"""The DAGs run for real: every outcome, what is tried again, what is emitted, and what parsing costs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest
from tests.discovery.warehouses import place_samples
from tests.support.airflow_home import ROOT, Airflow, DagRun, airflow_home, finished, with_database, without_jvm

from nightkeep.discovery import completed, find_tables
from nightkeep.model import RUN_OPERATIONS, Operation
from nightkeep.policy import groups, load

# What care says of each table, try by try, as `airflow_home` has it; three tables are a group.
TABLES = {
    "verified": ["verified"],
    "bad_check": ["mismatch!"],
    "unchanged": ["unchanged"],
    #
    "skipped": ["skipped"],
    "refused": ["refused"],
    "mismatch": ["mismatch"],
    #
    "lost_once": ["conflicted", "verified"],
    "lost_always": ["conflicted"],
    "failed_once": ["failed", "verified"],
    #
    "check_crashes": ["verified?"],
    "beside_check_crash": ["verified"],
    "idle_beside_check_crash": ["unchanged"],
    #
    "crashes": ["crash"],
    "beside_crash": ["verified"],
    "also_beside_crash": ["unchanged"],
    #
    "both": ["unchanged verified"],
    "second_lost": ["verified conflicted", "verified verified"],
    "second_refused": ["verified refused"],
    #
    "check_missing": ["verified?"],
    "check_broke_once": ["failed?"],
    "check_breaks": ["failed?"],
    #
    "denied": ["denied"],
    "beside_denied": ["verified"],
    "idle_beside_denied": ["unchanged"],
}
GROUPS = [[f"t.{name}" for name in list(TABLES)[i : i + 3]] for i in range(0, len(TABLES), 3)]


@pytest.fixture(scope="module")
def airflow(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    home = tmp_path_factory.mktemp("airflow")
    return with_database(airflow_home(home, [f"t.{name}" for name in TABLES]), airflow_database)


Hung = tuple[Airflow, Future[subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def hung(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hung]:
    """A run whose job hangs until its time is up, while the other tests of this file run."""
    home = tmp_path_factory.mktemp("hung")
    airflow = with_database(airflow_home(home, ["t.verified"]), airflow_database)
    airflow.script(care={"t.verified": ["hang"]})
    command = ("airflow", "dags", "test", "on_demand", "--conf", json.dumps({"table": "t.verified", "dry_run": False}))
    with airflow.started(*command, NIGHTKEEP_TASK_TIMEOUT_MINUTES="1") as done:
        yield airflow, done


@pytest.fixture(scope="module")
def night(hung: Hung, airflow: Airflow) -> DagRun:
    """One nightly run over every outcome there is."""
    airflow.script(
        care={f"t.{name}": outcomes for name, outcomes in TABLES.items()},
        check={
            "t.check_crashes": ["crash"],
            "t.check_broke_once": ["failed?", "verified"],
            "t.check_breaks": ["failed?"],
            # The job died after one of its group was published.
            "t.crashes": [""],
            "t.beside_crash": ["verified"],
            "t.also_beside_crash": [""],
        },
    )
    done = without_jvm(airflow).call("airflow", "dags", "test", "nightly", "2026-11-20")
    assert done.returncode == 1, done.stdout
    return finished(airflow, "nightly", done.stdout + done.stderr)


STATES = {
    "verified": "success",
    "bad_check": "failed",
    "skipped": "skipped",
    "refused": "skipped",
    "mismatch": "failed",
    "lost_once": "success",
    "lost_always": "failed",
    "failed_once": "success",
    "check_crashes": "failed",
    "beside_check_crash": "success",
    "crashes": "failed",
    "beside_crash": "success",
    "also_beside_crash": "failed",
    "both": "success",
    "second_lost": "success",
    "second_refused": "skipped",
    "check_missing": "success",
    "check_broke_once": "success",
    "check_breaks": "failed",
    "denied": "failed",
    "beside_denied": "success",
}


def test_each_table_ends_as_its_outcome_states_at_the_first_try(night: DagRun) -> None:
    outcomes = {key: found for (task, key), found in night.tasks.items() if task == "outcome"}
    assert outcomes == {f"t.{name}": (state, 1) for name, state in STATES.items()}
    assert night.tasks["unchanged", -1] == ("success", 1)
    assert night.state == "failed"


def test_verified_tables_and_no_others_emit_their_asset(night: DagRun) -> None:
    verified = {
        *("verified", "lost_once", "failed_once", "both", "second_lost"),
        *("beside_check_crash", "check_missing", "check_broke_once", "beside_crash", "beside_denied"),
    }
    assert set(night.assets) == {f"nightkeep/t.{name}" for name in verified}
    (document,) = night.assets["nightkeep/t.verified"]["documents"]
    assert json.loads(Path(document).read_text())["outcome"] == "verified"


def test_care_is_what_is_tried_again_and_under_the_same_run(night: DagRun) -> None:
    tries = {("group.care", i): n for i, n in enumerate((1, 1, 3, 1, 3, 2, 1, 1))}
    assert {key: night.tasks[key][1] for key in tries} == tries
    states = [night.tasks["group.care", i][0] for i in range(len(GROUPS))]
    assert states == [*["success"] * 4, "failed", *["success"] * 3]
    assert {call["job"] for call in night.care} == {"care"}
    assert sorted(call["tables"] for call in night.care) == sorted(
        ",".join(group) for group, n in zip(GROUPS, tries.values(), strict=True) for _ in range(n)
    )
    assert len({call["run_id_prefix"] for call in (*night.care, *night.check)}) == 1
    assert len({call["result"] for call in (*night.care, *night.check)}) == len(night.care) + len(night.check)


def test_groups_and_their_applications_are_called_by_their_tables(night: DagRun) -> None:
    labels = [f"{first} and {len(more)} more" if more else first for first, *more in GROUPS]
    assert [night.labels["group.care", i] for i in range(len(GROUPS))] == labels
    assert {f"--name nightkeep nightly group.care: {label}" in night.log for label in labels} == {True}


def test_only_what_care_left_unchecked_is_checked(night: DagRun) -> None:
    assert sorted(call["tables"] for call in night.check) == sorted(
        [
            *["t.check_crashes"] * 3,
            "t.crashes,t.beside_crash,t.also_beside_crash",
            "t.check_missing,t.check_broke_once,t.check_breaks",
            "t.check_broke_once,t.check_breaks",
            "t.check_breaks",
        ]
    )
    states = [night.tasks["group.check", i] for i in range(len(GROUPS))]
    # What is checked waits for no slot of the pool.
    assert states == [
        ("skipped", 0),
        ("skipped", 0),
        ("skipped", 0),
        ("failed", 3),
        ("success", 1),
        ("skipped", 0),
        ("success", 3),
        ("skipped", 0),
    ]
    assert {night.tasks["group.checked", i] for i in range(len(GROUPS))} == {("success", 1)}


def test_a_night_over_the_samples_is_one_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTKEEP_WAREHOUSE", str(place_samples(tmp_path, monkeypatch) / "warehouse"))
    loaded = load(ROOT / "dags/tables.yaml")
    policy = completed(loaded, find_tables(loaded.discoveries))
    formats = [{policy.effective(name).address.format for name in group} for group in groups(policy)]
    assert formats == [{"paimon", "delta", "iceberg"}] and len(policy.tables) == 17
    assert not any(policy.of_table(table).uncovered for table in policy.tables)


def test_the_page_has_every_table_and_its_settled_outcome(airflow: Airflow, night: DagRun) -> None:
    prefix = night.care[0]["run_id_prefix"]
    page = (airflow.home / f"reports/pages/{prefix}.html").read_text().replace("<wbr>", "")
    assert {name for name in TABLES if f"t.{name}" not in page} == set()
    assert "published, but its check did not report" in page
    assert "no job reported on this table" in page
    assert f"{prefix}.html" in (airflow.home / "reports/pages/index.html").read_text()
    assert f"reports/pages/{prefix}.html" in night.log


def test_a_table_of_several_operations_has_all_of_them_on_the_page(airflow: Airflow, night: DagRun) -> None:
    page = (airflow.home / f"reports/pages/{night.care[0]['run_id_prefix']}.html").read_text().replace("<wbr>", "")
    for name in ("second_lost", "second_refused"):
        assert page.count(f">t.{name}</a></h2>") == 2
    # Of the operation that had nothing to do, the line that is shared has the name.
    assert page.count(">t.both</a></h2>") == 1 and re.search(r'>t.both</a></span> <span class="soft">\w+', page)
    assert "refused on purpose" in page


SWEPT = {
    "told": ["skipped"],
    "acted": ["verified"],
    "crashes": ["crash"],
    #
    "both": ["verified unchanged"],
    "expired_and_told": ["verified skipped"],
    "aborted_once": ["failed", "unchanged"],
    #
    "guarded": ["refused"],
    "reads_otherwise": ["mismatch"],
    "told_only": ["skipped"],
}
SWEPT_STATES = {
    # Documents state how these two ended, whatever became of their job.
    "told": "skipped",
    "acted": "success",
    "crashes": "failed",
    "both": "success",
    "expired_and_told": "success",
    "aborted_once": "success",
    "guarded": "skipped",
    "reads_otherwise": "failed",
    "told_only": "skipped",
}


@pytest.fixture(scope="module")
def week(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Airflow, DagRun]:
    home = tmp_path_factory.mktemp("weekly")
    airflow = with_database(airflow_home(home, [f"t.{name}" for name in SWEPT]), airflow_database)
    airflow.script(sweep_orphans={f"t.{name}": outcomes for name, outcomes in SWEPT.items()})
    # Nine tables of which five may be mapped over: a chunk of four and one of five.
    few = {"AIRFLOW__CORE__MAX_MAP_LENGTH": "5"}
    done = without_jvm(airflow).call("airflow", "dags", "test", "orphan_sweep", "2026-11-22", **few)
    assert done.returncode == 1, done.stdout
    return airflow, finished(airflow, "orphan_sweep", done.stdout + done.stderr)


@pytest.mark.extended
def test_a_sweep_ends_for_each_table_as_its_outcome_states(week: tuple[Airflow, DagRun]) -> None:
    _, run = week
    outcomes = {key: found for (task, key), found in run.tasks.items() if task == "swept"}
    nobodys = [key for key in outcomes if isinstance(key, int)]
    assert [outcomes.pop(key) for key in nobodys] == [("skipped", 1)]
    assert outcomes == {f"t.{name}": (state, 1) for name, state in SWEPT_STATES.items()}
    tries = [run.tasks["group.sweep", i] for i in range(3)]
    assert tries == [("failed", 3), ("success", 2), ("success", 1)]
    assert {call["job"] for call in run.care} == {"sweep_orphans"}
    assert run.check == ()
    assert len({call["run_id_prefix"] for call in run.care}) == 1


@pytest.mark.extended
def test_a_sweep_wakes_nobody_who_waits_for_rows(week: tuple[Airflow, DagRun]) -> None:
    assert week[1].assets == {}


@pytest.mark.extended
def test_the_page_of_a_sweep_has_every_table_and_operation(week: tuple[Airflow, DagRun]) -> None:
    airflow, run = week
    page = (airflow.home / f"reports/pages/{run.care[0]['run_id_prefix']}.html").read_text().replace("<wbr>", "")
    assert {name for name in SWEPT if f"t.{name}" not in page} == set()
    assert page.count(">t.both</a></h2>") == 2
    assert "no job reported on this table" in page
    assert "upgrade" not in page
    assert "Rows proven" not in page


def on_demand(airflow: Airflow, **form: object) -> DagRun:
    done = without_jvm(airflow).call("airflow", "dags", "test", "on_demand", "--conf", json.dumps(form))
    run = finished(airflow, "on_demand", done.stdout)
    assert (done.returncode, run.state) == (0, "success"), done.stdout
    return run


@pytest.mark.extended
def test_on_demand_is_a_dry_run_of_the_table_the_address_names(airflow: Airflow) -> None:
    airflow.script(care={"t.skipped": ["skipped"]})
    run = on_demand(airflow, table=f"paimon:{airflow.home}/t.skipped", where="day >= '2026-11-01'")
    (call,) = run.care
    assert (call["job"], call["tables"]) == ("care", "t.skipped")
    assert (call["dry_run"], call["full"], call["where"]) == (True, False, "day >= '2026-11-01'")
    assert (call["zorder"], call["hilbert"], call["target_size"]) == (None, None, None)
    assert run.tasks["group.check", 0][0] == run.tasks["outcome", "t.skipped"][0] == "skipped"


@pytest.mark.extended
def test_on_demand_states_what_the_form_states(airflow: Airflow) -> None:
    airflow.script()
    form = {"operation": "optimize", "zorder": "a, s.b", "target_size": "64 MB", "dry_run": False}
    (call,) = on_demand(airflow, table="t.verified", **form).care
    assert (call["job"], call["operation"], call["dry_run"]) == ("care", "optimize", False)
    assert (call["zorder"], call["hilbert"], call["target_size"]) == ("a, s.b", None, "64 MB")


@pytest.mark.extended
def test_a_parameter_that_the_form_does_not_know_is_refused_by_name(airflow: Airflow) -> None:
    airflow.script()
    done = airflow.call("airflow", "dags", "test", "on_demand", "--conf", '{"table": "t.verified", "dryrun": false}')
    run = finished(airflow, "on_demand", done.stdout + done.stderr)
    assert (done.returncode, run.state, run.tasks["asked", -1]) == (1, "failed", ("failed", 1))
    assert "found 'dryrun'; did you mean dry_run?" in run.log
    assert not (airflow.home / "jobs/calls.jsonl").exists()


FORMS: dict[str, dict[str, object]] = {
    "good": {"table": "t.verified"},
    "all": {
        "table": "paimon:/a b",
        "operation": "persist-deletes",
        "where": "a = 1",
        "dry_run": False,
        "full": True,
        "zorder": "a",
        "hilbert": None,
        "target_size": "1GB",
    },
    "empty": {},
    "a name with a comma": {"table": "a,b"},
    "unknown operation": {"table": "a", "operation": "drop"},
    "text for a switch": {"table": "a", "dry_run": "no"},
    "a size without unit": {"table": "a", "target_size": "3"},
    **{each: {"table": "a", "operation": each} for each in Operation},
}


def test_dag_files_import_serialise_and_check_their_form(airflow: Airflow) -> None:
    found = airflow.python(
        f"""
import copy, json, pathlib, types
import pendulum
from airflow.timetables.base import DagRunInfo
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization
bag = DagBag(dag_folder={str(ROOT / "dags")!r}, known_pools={{"nightkeep_spark", "default_pool"}})
dags = {{name: DagSerialization.to_dict(dag)["dag"] for name, dag in bag.dags.items()}}
nightly, weekly = bag.dags["nightly"], bag.dags["orphan_sweep"]
def accepts(form):
    params = copy.deepcopy(bag.dags["on_demand"].params)
    try:
        params.update(form)
        return bool(params.validate())
    except ParamValidationError:
        return False
serialized = DagSerialization.from_dict(DagSerialization.to_dict(nightly))
def next_run(last):
    info = last and DagRunInfo.interval(last, last)
    return serialized.next_dagrun_info(last_automated_run_info=info).run_after
now = pendulum.now("UTC")
from nightkeep_airflow.tasks import chunks, policy_groups
many = [f"  - {{{{name: t{{n}}, table: 'paimon:/t{{n}}'}}}}" for n in range(1100)]
policy = pathlib.Path("many.yaml")
policy.write_text("\\n".join(["version: 1", "defaults: {{tables_per_session: 1}}", "tables:", *many]))
run = types.SimpleNamespace(dag_id="nightly", run_id="one")
grouped = policy_groups.function(str(policy), "reports", dag_run=run)
chunked = chunks([*range(1100)], 1024)
print(json.dumps({{
    "first_is_ahead": next_run(None) > now, "timeouts": [str(nightly.dagrun_timeout), str(weekly.dagrun_timeout)],
    "after_a_pause": str(now - next_run(now.subtract(days=9)) < pendulum.duration(days=1)),
    "task_timeouts": sorted({{str(task.execution_timeout) for task in nightly.tasks if task.pool != "default_pool"}}),
    "paused": [dag.is_paused_upon_creation for dag in (nightly, weekly, bag.dags["on_demand"])],
    "grouped": [len(grouped), sum(map(len, grouped))], "chunked": [len(chunk) for chunk in chunked],
    "errors": bag.import_errors, "dags": sorted(dags), "active": [nightly.max_active_runs, weekly.max_active_runs],
    "pools": [sorted({{task.pool for task in dag.tasks}}) for dag in (nightly, weekly)],
    "weekly": weekly.timetable.expression, "deadline": bool(nightly.deadline),
    "forms": [name for name, form in json.loads({json.dumps(FORMS)!r}).items() if accepts(form)],
}}))""",
        NIGHTKEEP_DEADLINE_MINUTES="90",
    )
    assert found == {
        "first_is_ahead": True,
        # Airflow makes the run of the last 02:00 at once: that is what the first task is there for.
        "after_a_pause": "True",
        "timeouts": ["20:00:00", "20:00:00"],
        "task_timeouts": ["6:00:00"],
        "paused": [None, None, False],
        "grouped": [550, 1100],
        "chunked": [550, 550],
        "errors": {},
        "dags": ["audit", "change_rows", "nightly", "on_demand", "orphan_sweep", "undo"],
        "active": [1, 1],
        "pools": [["default_pool", "nightkeep_spark"]] * 2,
        "weekly": "0 4 * * 0",
        "deadline": True,
        "forms": ["good", "all", "a name with a comma", *RUN_OPERATIONS, "expire", "sweep"],
    }


def test_parsing_imports_nothing_heavy(airflow: Airflow) -> None:
    dags = ["dags/audit.py", "dags/nightly.py", "dags/on_demand.py", "dags/orphan_sweep.py"]
    files = [*dags, "plugins/nightkeep_airflow/plugin.py"]
    found = airflow.python(
        f"""
import json, runpy, sys, time
import airflow.sdk
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
heavy = ("pyspark", "pyarrow", "pandas", "polars", "numpy", "great_expectations", "fastapi")
found = {{}}
for name in {files!r}:
    start = time.perf_counter()
    runpy.run_path({str(ROOT)!r} + "/" + name)
    found[name] = [time.perf_counter() - start, [m for m in heavy if m in sys.modules]]
print(json.dumps(found))"""
    )
    for name, (seconds, heavy) in found.items():
        print(f"{name}: parsed in {seconds:.3f} s after Airflow's own imports")
        assert heavy == [], name


# The last one: all others run while the job hangs.
def test_a_hung_job_is_ended_with_all_its_processes_and_what_it_published_is_checked(hung: Hung) -> None:
    airflow, done = hung[0], hung[1].result()
    pids = [int(line) for line in (airflow.home / "jobs/pids").read_text().split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]
    jobs = [process.cmdline() for process in psutil.process_iter() if str(airflow.home / "jobs") in _line(process)]
    assert jobs == []
    lines = (airflow.home / "jobs/calls.jsonl").read_text().splitlines()
    assert [json.loads(line)["job"] for line in lines] == ["care", "check"]
    run = finished_states(airflow, "on_demand")
    assert {task: run[task] for task in ("group.care", "group.check", "outcome")} == {
        "group.care": "failed",
        "group.check": "success",
        "outcome": "success",
    }, done.stdout


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def finished_states(airflow: Airflow, dag_id: str) -> dict[str, str]:
    """States of the tasks of the latest run of a DAG, each task mapped once at most."""
    latest = "select run_id from dag_run where dag_id = ? order by id desc limit 1"
    return dict(airflow.query(f"select task_id, state from task_instance where run_id = ({latest})", dag_id))
