"""A whole night whose reports are in a bucket: machines share nothing else, and each sees what another one wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.drivers.memory_engine import MemoryEngine
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import Bucket
from tests.object_store.bucket_tables import SAMPLES, upload
from tests.records.test_report_stores import faults
from tests.records.test_unwritable import Judging, engines, version
from tests.support.commands import said

from nightkeep.commands.job import run_job
from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Operation, Outcome
from nightkeep.nights.run_pages import RunPage, write_run
from nightkeep.nights.settled import awaits_check, parse, refresh_result, settle_results
from nightkeep.places import read_text, write_file
from nightkeep.policy import load
from nightkeep.records import CheckStatus, load_document, load_history
from nightkeep.spark.engine import Engine
from nightkeep_airflow.result_file import result_file, tables_at_death
from nightkeep_airflow.stored_files import StoredFiles

__all__ = ["engines", "faults"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def reports(s3_bucket: Bucket) -> str:
    return f"{s3_bucket.uri}/nights"


@pytest.fixture
def machines(tmp_path: Path, engines: dict[str, MemoryEngine]) -> Iterator[tuple[Path, Path]]:
    """Two working directories, each with a copy of the policy."""
    policy = (tmp_path / "tables.yaml").read_text()
    folders = (tmp_path / "machine-1", tmp_path / "machine-2")
    for folder in folders:
        folder.mkdir()
        (folder / "tables.yaml").write_text(policy)
    before = Path.cwd()
    yield folders
    os.chdir(before)


def night(machine: Path, reports: str, engine: object, run: str = "night-1") -> list[StoredDocument]:
    os.chdir(machine)
    # In turn, so that what the check says is said of the first table first.
    group = TableGroup(
        load("tables.yaml"), ("one", "two"), run, reports, hand=f"{reports}/~results/r.json.hand", one_by_one=True
    )
    return [*run_group(group, (Operation.OPTIMIZE,), cast(Engine, engine))]


def test_a_second_machine_sees_the_hold_of_the_first(
    machines: tuple[Path, Path], reports: str, engines: dict[str, MemoryEngine], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = machines
    one, two = night(first, reports, Judging(first, CheckStatus.FAILED, CheckStatus.PASSED))
    assert (one.document.outcome, two.document.outcome) == (Outcome.MISMATCH, Outcome.VERIFIED)
    assert one.path == f"{reports}/one/night-1~3aone-optimize.json" and load_document(one.path) == one.document
    # What Airflow's tasks make of it, on whichever machine they run.
    entries = [refresh_result(each) for each in parse(json.dumps([each.to_json() for each in (one, two)]))]
    assert not any(map(awaits_check, entries))
    told = settle_results(["one", "two"], entries)
    assert [each.outcome for each in told] == [Outcome.MISMATCH, Outcome.VERIFIED]

    before = version(engines["one"])
    engines["one"].append("2026-11-02", range(100, 110))
    engines["one"].append("2026-11-02", range(110, 120))
    later = night(second, reports, Judging(second), "night-2")
    assert later[0].document.outcome is Outcome.SKIPPED and version(engines["one"]) == before + 2
    assert "on hold since run night-1:one" in str(later[0].document.reason)

    where = ["--policy", "tables.yaml", "--reports", reports]
    past = said(capsys, "history", "--json", *where)
    assert [each["outcome"] for each in past.json if each["table"] == "one"] == ["mismatch", "skipped"]
    listed = {each["name"]: each["last_outcome"] for each in said(capsys, "tables", "--json", *where).json}
    assert listed == {"one": "skipped", "two": "unchanged"}
    pages = said(capsys, "report", *where)
    assert (pages.status, pages.out) == (0, f"{reports}/pages/index.html\n")
    assert said(capsys, "release", "one", *where).out == "one: hold of run night-1:one released\n"
    freed = night(first, reports, Judging(first), "night-3")
    assert freed[0].document.outcome is Outcome.VERIFIED
    assert sorted(each.name for each in (*first.iterdir(), *second.iterdir())) == ["tables.yaml"] * 2

    page = write_run(reports, RunPage("night-2", "night-2", one.document.finished_at), told, policy=load("tables.yaml"))
    assert page == f"{reports}/pages/night-2.html" and "night-2.html" in str(read_text(f"{reports}/pages/index.html"))


def test_without_an_answer_about_holds_nothing_is_done(
    machines: tuple[Path, Path], reports: str, engines: dict[str, MemoryEngine], faults: S3Faults
) -> None:
    before = version(engines["one"])
    faults.fail(403, request="GET .*/holds/one.json")
    one, two = night(machines[0], reports, Judging(machines[0]))
    assert (one.document.outcome, version(engines["one"])) == (Outcome.FAILED, before)
    assert str(one.document.reason).startswith(f"Unreachable: {reports}/holds/one.json: expected a hold, or none")
    assert two.document.outcome is Outcome.VERIFIED
    assert night(machines[1], reports, Judging(machines[1]))[0].document.outcome is Outcome.VERIFIED


def test_a_job_hands_its_outcomes_over_in_the_bucket(
    machines: tuple[Path, Path], reports: str, s3_bucket: Bucket
) -> None:
    os.chdir(machines[0])
    for name, days in (("killed.json.hand", 40), ("running.json", 1)):
        address = write_file(f"{reports}/~results/{name}", "")
        os.utime(s3_bucket.folder / address.removeprefix(f"{s3_bucket.uri}/"), (time.time() - days * 86_400,) * 2)
    arguments = [
        "--policy",
        "tables.yaml",
        "--tables",
        "one",
        "--run-id-prefix",
        "n",
        "--reports",
        reports,
        "--dry-run",
    ]
    with result_file(reports) as result:
        assert result.startswith(f"{reports}/~results/") and read_text(result) is None
        assert run_job([*arguments, "--result", result], operations=(Operation.OPTIMIZE,)) == 0
        (entry,) = parse(str(read_text(result)))
        assert (entry.table, entry.outcome, tables_at_death(result)) == ("one", Outcome.SKIPPED, ())
    left = [path.name for path in (s3_bucket.folder / "nights").rglob("*") if path.is_file()]
    documents = sorted(name for name in left if not name.endswith(".bundle"))
    assert documents == [f"n~3aone-{Operation.OPTIMIZE}.json", "running.json"] and load_history(reports)
    assert len(left) == len(documents) + 1


def test_pages_come_from_the_bucket_and_nothing_else_does(
    reports: str, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = s3_bucket.folder / "nights" / "pages"
    pages.mkdir(parents=True)
    (pages / "index.html").write_text("index")
    (s3_bucket.folder / "outside.html").write_text("outside")
    (s3_bucket.folder / "nights" / "other.txt").write_text("other")
    files = StoredFiles(reports)
    assert files.read("pages/index.html") == b"index"
    wrong = ("../outside.html", "pages/../../outside.html", "other.txt", "pages", "", "/etc/x.html", "a//b.html")
    for name in (*wrong, "pages/none.html", "pages/\0.html", "\ud800.html", f"{'n' * 5000}.html"):
        assert files.read(name) is None, name
    # For some seconds without a request, and not for ever.
    (pages / "index.html").write_text("newer")
    assert files.read("pages/index.html") == b"index"
    monkeypatch.setattr("nightkeep_airflow.stored_files._KEPT_SECONDS", 0)
    assert files.read("pages/index.html") == b"newer"
    with pytest.raises(OSError, match="no such bucket"):
        StoredFiles("s3://nowhere/reports").read("pages/index.html")


@pytest.mark.extended
def test_two_machines_care_for_one_table_by_the_command(s3_bucket: Bucket, reports: str, tmp_path: Path) -> None:
    location = upload(SAMPLES / "delta" / "shop.db" / "clicks", s3_bucket, "clicks")

    def command(machine: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / machine).mkdir(exist_ok=True)
        environment = {**os.environ, "NIGHTKEEP_REPORTS": reports, "PYTHONPATH": str(ROOT / "jobs")}
        return subprocess.run(
            [sys.executable, "-m", "nightkeep", *arguments],
            cwd=tmp_path / machine,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    policy = f"version: 1\ntables: [{{name: clicks, table: 'delta:{location}', writers: conditional}}]\n"
    for machine in ("a", "b"):
        (tmp_path / machine).mkdir()
        (tmp_path / machine / "tables.yaml").write_text(policy)
    done = command("a", "run", "clicks", "--no-check", "--run-id", "night", "--json")
    assert done.returncode == 0, done.stderr
    again = command("b", "run", "clicks", "--no-check", "--run-id", "night", "--json")
    assert json.loads(again.stdout)["committed_version"] == json.loads(done.stdout)["committed_version"]
    past = json.loads(command("b", "history", "clicks", "--json").stdout)
    assert [each["run_id"] for each in past] == ["night"]
