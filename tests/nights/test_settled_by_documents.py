"""What a run stored of a table is what its tasks, its page and its history state, whatever its tasks returned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.airflow_home import Airflow, airflow_home

from nightkeep import history
from nightkeep.model import Operation, Outcome
from nightkeep.nights.run_pages import RunPage, store_unreported, write_run
from nightkeep.nights.settled import NOT_REPORTED, JobResult, Settled, settle_run
from nightkeep.policy import load
from nightkeep.records import CheckStatus, Expectations, RunDocument, store
from nightkeep_airflow.runs import run_prefix

NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)
LEFT = "published, but its check did not report"
RUN = RunPage("nightly-1", "nightly, 2026-11-27", NOW)
STATES = {
    **dict.fromkeys((Outcome.UNCHANGED, Outcome.VERIFIED), None),
    **dict.fromkeys((Outcome.SKIPPED, Outcome.REFUSED), "AirflowSkipException"),
    **dict.fromkeys((Outcome.CONFLICTED, Outcome.MISMATCH, Outcome.FAILED), "AirflowFailException"),
}


def document(table: str, outcome: Outcome, *, prefix: str = RUN.prefix, version: int | None = None) -> RunDocument:
    return RunDocument(
        run_id=f"{prefix}:{table}",
        table=table,
        format="paimon",
        operation=Operation.OPTIMIZE,
        outcome=outcome,
        reason=f"{outcome} because",
        committed_version=version,
        expectations=Expectations(CheckStatus.PASSED if outcome is Outcome.VERIFIED else CheckStatus.NOT_RUN),
        started_at=NOW,
        finished_at=NOW,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = [f"t.{outcome}" for outcome in Outcome] + ["t.left", "t.nothing"]
    tables = "".join(f"\n  - {{name: {name}, table: 'paimon:{tmp_path}/{name}'}}" for name in names)
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:{tables}\n")
    return tmp_path


def settled(folder: Path, *tables: str, arrived: tuple[JobResult, ...] = ()) -> list[Settled]:
    reports = str(folder / "reports")
    found = settle_run(reports, RUN.prefix, tables, arrived)
    return [store_unreported(reports, RUN, each, load(folder / "tables.yaml")) for each in found]


def shown(folder: Path, found: list[Settled]) -> tuple[dict[str, Outcome], str]:
    """The outcomes in the history, and the page."""
    reports = str(folder / "reports")
    page = write_run(reports, RUN, found, policy=load(folder / "tables.yaml"))
    past = history(policy=folder / "tables.yaml", reports=reports)
    return {each.table: each.outcome for each in past}, Path(page).read_text()


@pytest.mark.parametrize("outcome", Outcome)
def test_a_table_whose_task_returned_nothing_ends_as_its_document_does(folder: Path, outcome: Outcome) -> None:
    table = f"t.{outcome}"
    path = store(document(table, outcome, version=7 if outcome is Outcome.VERIFIED else None), folder / "reports")
    (found,) = settled(folder, table)
    published = outcome is Outcome.VERIFIED
    assert found == Settled(table, outcome, f"optimize: {outcome} because", (path,), published=published)
    past, page = shown(folder, [found])
    assert past == {table: outcome}
    assert f"{outcome} because" in page and NOT_REPORTED not in page


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.MISMATCH])
def test_a_version_without_a_check_is_failed(folder: Path, outcome: Outcome) -> None:
    """Releases before this one stored the outcome of the work."""
    left = replace(document("t.left", outcome, version=7), expectations=Expectations())
    store(left, folder / "reports")
    (found,) = settled(folder, "t.left")
    assert found.outcome is Outcome.FAILED and (LEFT in found.reason or outcome is Outcome.FAILED)
    _, page = shown(folder, [found])
    assert found.reason.removeprefix("optimize: ") in page


def test_a_table_of_which_nothing_is_known_gets_a_document(folder: Path) -> None:
    (found,) = settled(folder, "t.nothing")
    assert (found.outcome, found.reason, len(found.documents)) == (Outcome.FAILED, NOT_REPORTED, 1)
    past, page = shown(folder, [found])
    assert past == {"t.nothing": Outcome.FAILED} and NOT_REPORTED in page
    # Whoever settles again finds it, and no other.
    assert settled(folder, "t.nothing") == [replace(found, reason=f"upgrade: {NOT_REPORTED}")]


def test_what_a_job_reported_is_not_looked_up_again_and_other_runs_are_not_this_one(folder: Path) -> None:
    path = store(document("t.left", Outcome.VERIFIED, version=7), folder / "reports")
    store(document("t.left", Outcome.FAILED, prefix="nightly-0"), folder / "reports")
    arrived = JobResult("t.left", "optimize", Outcome.VERIFIED, "", path, 7, checked=True)
    assert settled(folder, "t.left", arrived=(arrived,)) == settled(folder, "t.left")
    assert settled(folder, "t.left")[0].documents == (path,)


def test_a_damaged_document_is_a_failure_that_names_it(folder: Path) -> None:
    path = Path(store(document("t.left", Outcome.VERIFIED, version=7), folder / "reports"))
    path.write_text("{")
    (found,) = settled(folder, "t.left")
    assert (found.outcome, found.documents) == (Outcome.FAILED, (str(path),))
    assert str(path) in found.reason and path.read_text() == "{"


def test_reports_that_cannot_be_listed_are_the_reason(folder: Path) -> None:
    (folder / "reports").write_text("")
    (found,) = settled(folder, "t.left")
    assert found.outcome is Outcome.FAILED


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    return airflow_home(tmp_path, [f"t.{outcome}" for outcome in Outcome] + ["t.nothing"])


@pytest.mark.slow
def test_the_tasks_of_a_run_whose_care_returned_nothing(airflow: Airflow) -> None:
    reports, prefix = airflow.home / "reports", run_prefix("nightly", "manual")
    for outcome in Outcome:
        version = 7 if outcome is Outcome.VERIFIED else None
        store(document(f"t.{outcome}", outcome, prefix=prefix, version=version), reports)
    tables = [[f"t.{outcome}" for outcome in Outcome], ["t.nothing"]]
    found = airflow.python(
        f"""
import json, types
from datetime import UTC, datetime
from nightkeep_airflow.tasks import unless_raised, page, settle
run = types.SimpleNamespace(dag_id="nightly", run_id="manual", run_after=datetime.now(UTC))
ti = types.SimpleNamespace(xcom_pull=lambda task_ids, key: [None, None])
where = ({str(airflow.home / "tables.yaml")!r}, {str(reports)!r})
chunks = settle.function({tables!r}, ["group.care", "group.check"], *where, ti=ti, dag_run=run)
ended = {{}}
for chunk in chunks:
    for place, entry in enumerate(chunk):
        try:
            ended[entry["table"]] = (str(unless_raised(chunk, place).outcome), None)
        except Exception as failure:
            ended[entry["table"]] = (entry["outcome"], type(failure).__name__)
print(json.dumps([ended, page.function(chunks, *where, dag_run=run)]))"""
    )
    ended, page = found
    expected = {f"t.{outcome}": [outcome, STATES[outcome]] for outcome in Outcome}
    assert ended == {**expected, "t.nothing": ["failed", "AirflowFailException"]}
    past = history(policy=airflow.home / "tables.yaml", reports=reports)
    assert {each.table: each.outcome for each in past} == {table: outcome for table, (outcome, _) in ended.items()}
    assert Path(page).read_text().count(NOT_REPORTED) >= 1
