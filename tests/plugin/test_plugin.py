"""The plugin: who may see report pages, what killing a task ends, and how results become outcomes."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.airflow_home import ROOT, Airflow, airflow_home, with_database, without_jvm
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome
from nightkeep.nights.settled import JobResult, Settled, awaits_check, refresh_result, reported, settle_results
from nightkeep.records import CheckStatus, Expectations, RunDocument, load_document, store
from nightkeep_airflow.runs import run_prefix


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    return airflow_home(tmp_path, ["t.table"])


NO_ROUTE = ("docs", "openapi.json", "files/pages/%0a.html", "files/pages/../../outside.html")
PATHS = [
    "",
    "?dag_id=nightly&run_id=manual__a%2B01:00",
    "?dag_id=nightly&run_id=never",
    *NO_ROUTE,
    "files/other.txt",
    "files/link.html",
    "files/%2e%2e/outside.html",
    "files/..%2foutside.html",
    "files/%2fetc%2fpasswd",
    "files/pages/%00.html",
    f"files/{'n' * 256}.html",
    f"files/pages/{'n' * 5000}.html",
    f"files/{'d/' * 3000}index.html",
    f"files/{'n' * 300}/index.html",
    "files/pages/index.html/index.html",
    "files/circle.html",
    "files/pages",
    "files/folder.html",
    "files/pipe.html",
    "files/%ff%fe.html",
    "files/%ed%a0%80.html",
    "files/.%00./outside.html",
    "files/%252e%252e/outside.html",
    "files/.../outside.html",
    "files/~/outside.html",
    "files//etc/passwd",
    "files/",
    f"?dag_id=nightly&run_id={'n' * 5000}",
    "?dag_id=%00&run_id=%ed%a0%80",
    "?dag_id=../..&run_id=../../outside",
]


@pytest.mark.extended
def test_pages_are_for_those_who_may_read_the_dag_and_stay_in_their_folder(
    airflow: Airflow, airflow_database: Path
) -> None:
    with_database(airflow, airflow_database)
    reports = airflow.home / "reports"
    (reports / "pages").mkdir(parents=True, exist_ok=True)
    (reports / "pages/index.html").write_text("index")
    (reports / f"pages/{run_prefix('nightly', 'manual__a+01:00')}.html").write_text("page")
    (reports / "other.txt").write_text("other")
    (airflow.home / "outside.html").write_text("outside")
    (reports / "link.html").symlink_to(airflow.home / "outside.html")
    (reports / "circle.html").symlink_to(reports / "circle.html")
    (reports / "folder.html").mkdir()
    os.mkfifo(reports / "pipe.html")
    found = airflow.python(
        f"""
import json
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi.testclient import TestClient
def headers(role):
    user = SimpleAuthManagerUser(username="u", role=role)
    return {{"Authorization": "Bearer " + get_auth_manager().generate_jwt(user)}} if role else {{}}
with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
    def get(path, role):
        answer = client.get("/nightkeep/" + path, headers=headers(role))
        return [answer.status_code, answer.text, answer.headers.get("Content-Security-Policy", "")]
    print(json.dumps({{path: [get(path, role) for role in (None, "viewer")] for path in {PATHS!r}}}))"""
    )
    refused = {path: 404 if path in NO_ROUTE else 401 for path in PATHS}
    assert {path: anonymous[0] for path, (anonymous, _) in found.items()} == refused
    answers = {path: viewer[:2] for path, (_, viewer) in found.items()}
    assert answers[""] == [200, "index"]
    assert answers["?dag_id=nightly&run_id=manual__a%2B01:00"] == [200, "page"]
    assert {path: status for path, (status, _) in answers.items() if status != 404} == dict.fromkeys(PATHS[:2], 200)
    assert found[""][1][2].startswith("default-src 'none'")


def test_killing_the_task_ends_everything_that_was_submitted(airflow: Airflow) -> None:
    sleeper = airflow.home / "sleeper"
    sleeper.mkdir()
    (sleeper / "care.py").write_text(
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    found = airflow.python(
        f"""
import json, pathlib, threading, time, types
import psutil
from airflow.sdk.exceptions import AirflowException
from nightkeep_airflow.operators import CareOperator
where = dict(jobs={str(sleeper)!r}, policy="p", reports="r")
operator = CareOperator(task_id="care", conn_id="nightkeep_spark", tables=["t"], **where)
run = types.SimpleNamespace(dag_id="nightly", run_id="manual")
raised = []
def execute():
    try:
        operator.execute({{"dag_run": run}})
    except AirflowException as error:
        raised.append(str(error))
thread = threading.Thread(target=execute)
thread.start()
note = pathlib.Path({str(sleeper / "pid")!r})
deadline = time.monotonic() + 60
while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
    time.sleep(0.1)
family = [psutil.Process(int(note.read_text())), *psutil.Process().children(recursive=True)]
operator.on_kill()
thread.join(60)
alive = [p.pid for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
print(json.dumps({{"alive": alive, "raised": len(raised), "family": len(family)}}))"""
    )
    assert found["family"] >= 3, "the launcher, its JVM or the job was not found"
    assert (found["alive"], found["raised"]) == ([], 1)


def test_a_tasks_memory_and_the_cores_are_among_what_is_submitted(airflow: Airflow) -> None:
    (airflow.home / "tables.yaml").write_text(
        "version: 1\ntables:\n- {name: a, table: 'paimon:/a', task_memory: 5GB}\n- {name: b, table: 'paimon:/b'}\n"
    )
    (airflow.home / "conf").mkdir()
    (airflow.home / "conf/spark-defaults.conf").write_text("spark.driver.memory 9g\n")
    found = airflow.python(
        f"""
import json, os, types
from nightkeep_airflow.operators import CareOperator
context = dict(dag_run=types.SimpleNamespace(dag_id="nightly", run_id="manual"))
def submitted(tables, host, **more):
    os.environ["AIRFLOW_CONN_NIGHTKEEP_SPARK"] = json.dumps(dict(conn_type="spark", host=host))
    where = dict(conn_id="nightkeep_spark", jobs="/jobs", policy={str(airflow.home / "tables.yaml")!r}, reports="r")
    operator = CareOperator(task_id="care", tables=tables, total_executor_cores=3, **where, **more)
    job = operator.job("care.py", tables, context, result="result.json")
    return operator._spark_submit()(job)._get_hook()._build_spark_submit_command("care.py")
answers = [
    submitted(["a", "b"], "local[2]"), submitted(["b", "gone"], "local[2]"), submitted(["a"], "spark://m:1"),
    submitted(["a"], "local[2]", driver_memory="3g"),
    submitted(["a"], "local[2]", conf={{"spark.driver.memory": "4g"}}),
]
os.environ["SPARK_CONF_DIR"] = {str(airflow.home / "conf")!r}
print(json.dumps([*answers, submitted(["a"], "local[2]")]))"""
    )
    memory = [line[line.index("--driver-memory") + 1] if "--driver-memory" in line else None for line in found]
    assert memory == ["5120m", "2048m", "2048m", "3g", None, None]
    assert {line[line.index("--total-executor-cores") + 1] for line in found} == {"3"}
    assert "spark.driver.memory=4g" in found[4]
    assert not [word for line in found for word in line if "spark.log.level" in word]


@pytest.mark.few(1)
@pytest.mark.parametrize("said_by", ["connection", "argument", "defaults"])
def test_a_driver_in_the_cluster_is_refused(airflow: Airflow, said_by: str) -> None:
    (airflow.home / "conf").mkdir()
    (airflow.home / "conf/spark-defaults.conf").write_text("spark.submit.deployMode cluster\n")
    found = airflow.python(
        f"""
import json, os, types
from airflow.sdk.exceptions import AirflowFailException
context = dict(dag_run=types.SimpleNamespace(dag_id="nightly", run_id="manual"))
from nightkeep_airflow.operators import CareOperator
extra = json.dumps({{"deploy-mode": "cluster"}}) if {said_by!r} == "connection" else "{{}}"
os.environ["AIRFLOW_CONN_NIGHTKEEP_SPARK"] = json.dumps(dict(conn_type="spark", host="spark://m:1", extra=extra))
if {said_by!r} == "defaults":
    os.environ["SPARK_CONF_DIR"] = {str(airflow.home / "conf")!r}
more = dict(deploy_mode="cluster") if {said_by!r} == "argument" else {{}}
where = dict(conn_id="nightkeep_spark", jobs="/jobs", policy={str(airflow.home / "tables.yaml")!r}, reports="r")
operator = CareOperator(task_id="care", tables=["a"], **where, **more)
try:
    operator._spark_submit()(operator.job("care.py", ["a"], context, result="result.json"))
except AirflowFailException as failure:
    print(json.dumps(str(failure)))"""
    )
    assert found.startswith("connection nightkeep_spark: expected deploy mode client, found cluster: the driver must")
    assert "remove deploy-mode from the connection" in found


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("failing", "raised"),
    some_extended(
        [
            ("raise UsageError('no such table')", "AirflowFailException"),
            ("raise PolicyError('tables.yaml:1: no')", "AirflowFailException"),
            ("sys.exit(2)", "AirflowFailException"),
            ("sys.exit(1)", "AirflowException"),
            ("raise KeyError('x')", "AirflowException"),
            ("raise MissingFile('a', 'b', 'c')", "AirflowException"),
        ],
        keep=2,
    ),
)
def test_a_job_that_could_not_be_understood_is_not_tried_again(airflow: Airflow, failing: str, raised: str) -> None:
    (airflow.home / "jobs/care.py").write_text(
        "import sys\nfrom nightkeep.errors import MissingFile, PolicyError, UsageError\n"
        f"from nightkeep.commands.exit_status import one_line\ndef job():\n    {failing}\nsys.exit(one_line(job))\n"
    )
    found = without_jvm(airflow).python(
        f"""{NIGHT}
try:
    night(["t.table"], jobs={str(airflow.home / "jobs")!r}, policy={str(airflow.home / "tables.yaml")!r}, reports="r")
except Exception as failure:
    print(json.dumps(type(failure).__name__))"""
    )
    assert found == raised


NIGHT = """
import json, types
from airflow.sdk.exceptions import AirflowSkipException
from nightkeep.policy import groups, load
from nightkeep_airflow.operators import CareOperator, CheckOperator
context = {
    "dag_run": types.SimpleNamespace(dag_id="nightly", run_id="manual"),
    "ti": types.SimpleNamespace(try_number=1, max_tries=0),
}
def night(tables, options=(), **where):
    where["conn_id"] = "nightkeep_spark"
    cared = CareOperator(task_id="care", tables=tables, options=options, **where).execute(context)
    try:
        return cared, CheckOperator(task_id="check", cared=cared, **where).execute(context)
    except AirflowSkipException:
        return cared, None
"""


@pytest.mark.extended
def test_operators_and_jobs_agree_on_arguments_and_results(airflow: Airflow) -> None:
    # A dry run over the samples starts no session, so what it costs is the launcher.
    policy = airflow.home / "samples.yaml"
    asks = "patterns:\n  - {match: shop.ledger, operations: [upgrade]}\n"
    policy.write_text((ROOT / "dags/tables.yaml").read_text().replace("patterns:\n", asks))
    found = airflow.python(
        f"""{NIGHT}
where = dict(
    jobs={str(ROOT / "jobs")!r}, policy={str(policy)!r}, reports={str(airflow.home / "reports")!r},
)
planned, nothing = night(["shop.orders", "shop.untouched", "shop.ledger"], ["--dry-run", "", "--full"], **where)
where["conn_id"] = "nightkeep_spark"
again = CheckOperator(task_id="again", cared=[], **where).submit("check.py", ["shop.orders"], context)
print(json.dumps([planned, nothing, [entry.outcome for entry in again]]))""",
        NIGHTKEEP_WAREHOUSE=str(ROOT / "samples"),
    )
    planned, nothing, again = [reported(entry) for entry in found[0]], found[1], found[2]
    assert [(entry.table, entry.outcome) for entry in planned] == [
        ("shop.orders", Outcome.SKIPPED),
        ("shop.untouched", Outcome.UNCHANGED),
        ("shop.ledger", Outcome.REFUSED),
    ]
    assert (nothing, again) == (None, ["skipped"])
    assert [load_document(str(entry.document)).outcome for entry in planned] == [e.outcome for e in planned]


def test_a_night_is_one_submit_for_each_group_and_one_more_for_a_missing_check(tmp_path: Path) -> None:
    airflow = without_jvm(airflow_home(tmp_path, ["p.one", "p.two"], delta=["d.one", "d.two"]))
    airflow.script(care={"d.two": ["verified?"]})
    where = {"jobs": str(tmp_path / "jobs"), "policy": str(tmp_path / "tables.yaml"), "reports": "reports"}
    results = airflow.python(
        f"""{NIGHT}
where = {where!r}
print(json.dumps([night(tables, **where) for tables in groups(load(where["policy"]))]))"""
    )
    assert [call["tables"] for call in airflow.calls("care")] == ["p.one,p.two", "d.one,d.two"]
    assert [call["tables"] for call in airflow.calls("check")] == ["d.two"]
    checked = [reported(entry) for _, entries in results for entry in entries]
    assert [(entry.table, entry.outcome) for entry in checked] == [
        (name, Outcome.VERIFIED) for name in ("p.one", "p.two", "d.one", "d.two")
    ]


def test_a_second_submit_of_a_task_is_a_job_of_its_own(tmp_path: Path) -> None:
    airflow = without_jvm(airflow_home(tmp_path, ["p.one", "p.two"]))
    airflow.script(check={"p.two": ["verified?", "verified"]})
    where = {"jobs": str(tmp_path / "jobs"), "policy": str(tmp_path / "tables.yaml"), "reports": "reports"}
    found = airflow.python(
        f"""{NIGHT}
check = CheckOperator(task_id="check", cared=None, tables=["p.one", "p.two"], conn_id="nightkeep_spark", **{where!r})
print(json.dumps(check.execute(context)))"""
    )
    assert [call["tables"] for call in airflow.calls("check")] == ["p.one,p.two", "p.two"]
    checked = {(entry.table, entry.outcome) for entry in map(reported, found)}
    assert checked == {("p.one", Outcome.VERIFIED), ("p.two", Outcome.VERIFIED)}


def test_a_job_that_dies_at_a_table_is_followed_by_one_for_the_rest(tmp_path: Path) -> None:
    names = ["p.one", "p.two", "p.three"]
    airflow = without_jvm(airflow_home(tmp_path, names))
    airflow.script(care={"p.two": ["verified die", "verified die"]})
    where = {"jobs": str(tmp_path / "jobs"), "policy": str(tmp_path / "tables.yaml"), "reports": "reports"}
    found = airflow.python(
        f"""{NIGHT}
care = CareOperator(task_id="care", tables={names!r}, conn_id="nightkeep_spark", **{where!r})
print(json.dumps(care.execute(context)))"""
    )
    assert [(call["tables"], call["died"]) for call in airflow.calls("care")] == [
        ("p.one,p.two,p.three", []),
        ("p.two,p.three", ["p.two"]),
    ]
    assert [(entry.table, entry.outcome) for entry in map(reported, found)] == [
        ("p.one", Outcome.VERIFIED),
        ("p.two", Outcome.VERIFIED),
        ("p.two", Outcome.FAILED),
        ("p.three", Outcome.VERIFIED),
    ]


def test_after_a_job_that_dies_at_several_tables_each_has_a_turn_of_its_own(tmp_path: Path) -> None:
    names = ["p.one", "p.two", "p.three"]
    airflow = without_jvm(airflow_home(tmp_path, names))
    airflow.script(care={"p.two": ["die+p.three", "die", "die"]})
    where = {"jobs": str(tmp_path / "jobs"), "policy": str(tmp_path / "tables.yaml"), "reports": "reports"}
    found = airflow.python(
        f"""{NIGHT}
care = CareOperator(task_id="care", tables={names!r}, conn_id="nightkeep_spark", **{where!r})
print(json.dumps(care.execute(context)))"""
    )
    assert [(call["tables"], call["died"], call["one_by_one"]) for call in airflow.calls("care")] == [
        ("p.one,p.two,p.three", [], False),
        ("p.two,p.three", [], True),
        ("p.two,p.three", ["p.two"], True),
    ]
    assert [(entry.table, entry.outcome) for entry in map(reported, found)] == [
        ("p.one", Outcome.VERIFIED),
        ("p.two", Outcome.FAILED),
        ("p.three", Outcome.VERIFIED),
    ]


def test_no_more_than_a_few_jobs_follow_each_other(tmp_path: Path) -> None:
    names = [f"p.{number}" for number in range(6)]
    airflow = without_jvm(airflow_home(tmp_path, names))
    airflow.script(care={name: ["die"] for name in names})
    where = {"jobs": str(tmp_path / "jobs"), "policy": str(tmp_path / "tables.yaml"), "reports": "reports"}
    found = airflow.python(
        f"""{NIGHT}
try:
    CareOperator(task_id="care", tables={names!r}, conn_id="nightkeep_spark", **{where!r}).execute(context)
except Exception as failure:
    print(json.dumps(type(failure).__name__))"""
    )
    assert found == "AirflowException"
    assert [call["died"] for call in airflow.calls("care")] == [[], ["p.0"], ["p.1"], ["p.2"], ["p.3"]]


def test_run_prefix_is_a_safe_name_that_keeps_runs_apart() -> None:
    ids = ["scheduled__2026-11-20T02:00:00+00:00", "a+01:00", "a-01:00", "A", "a", "x" * 300, "x" * 299]
    prefixes = [run_prefix("nightly", i) for i in ids]
    assert len(set(prefixes)) == len(ids)
    assert all(len(p) <= 100 and set(p) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-") for p in prefixes)
    assert prefixes == [run_prefix("nightly", i) for i in ids]


def test_a_table_is_settled_by_the_worst_of_its_operations() -> None:
    def of(operation: str, outcome: Outcome) -> JobResult:
        return JobResult("t", operation, outcome, f"{outcome} because", f"{operation}.json")

    cared = [of("upgrade", Outcome.VERIFIED), of("optimize", Outcome.CONFLICTED)]
    assert settle_results(["t", "u"], cared) == [
        Settled("t", Outcome.CONFLICTED, "optimize: conflicted because", ("upgrade.json", "optimize.json")),
        Settled("u", Outcome.FAILED, "no job reported on this table; see the log of its group", ()),
    ]


class TestRetold:
    """What an entry is once its document is asked."""

    def stored(self, folder: Path, outcome: Outcome, check: CheckStatus, version: int | None = 7) -> JobResult:
        now = datetime.now(UTC)
        document = RunDocument(
            run_id="r",
            table="t",
            format="paimon",
            operation=Operation.OPTIMIZE,
            outcome=outcome,
            reason="because",
            committed_version=version,
            expectations=Expectations(check),
            started_at=now,
            finished_at=now,
        )
        return JobResult("t", "optimize", Outcome.VERIFIED, "", str(store(document, folder)), 7)

    @pytest.mark.parametrize("check", CheckStatus)
    def test_verified_is_what_a_check_has_judged(self, tmp_path: Path, check: CheckStatus) -> None:
        entry = self.stored(tmp_path, Outcome.VERIFIED, check)
        unjudged = check in (CheckStatus.NOT_RUN, CheckStatus.ERRORED)
        assert awaits_check(entry) is unjudged
        found = refresh_result(entry)
        assert (found.outcome, found.reason) == (
            (Outcome.FAILED, "published, but its check did not report") if unjudged else (Outcome.VERIFIED, "because")
        )

    def test_what_came_after_the_entry_counts(self, tmp_path: Path) -> None:
        entry = self.stored(tmp_path, Outcome.MISMATCH, CheckStatus.FAILED)
        assert not awaits_check(entry)
        assert refresh_result(entry) == replace(entry, outcome=Outcome.MISMATCH, reason="because")

    def test_what_was_not_published_awaits_nothing(self, tmp_path: Path) -> None:
        entry = self.stored(tmp_path, Outcome.UNCHANGED, CheckStatus.NOT_RUN, version=None)
        assert not awaits_check(entry)
        assert refresh_result(entry).outcome is Outcome.UNCHANGED

    @pytest.mark.parametrize("content", [None, b"{"])
    def test_a_document_that_cannot_be_read_leaves_a_version_unchecked(
        self, tmp_path: Path, content: bytes | None
    ) -> None:
        path = tmp_path / "document.json"
        if content is not None:
            path.write_bytes(content)
        entry = JobResult("t", "optimize", Outcome.VERIFIED, "", str(path), 7)
        for each in (entry, replace(entry, document=None)):
            assert awaits_check(each)
            assert refresh_result(each).outcome is Outcome.FAILED
        lost = replace(entry, outcome=Outcome.CONFLICTED, committed_version=None)
        assert (awaits_check(lost), refresh_result(lost)) == (False, lost)
