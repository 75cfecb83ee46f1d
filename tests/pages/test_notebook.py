"""What a notebook and a prompt show of runs, plans and their history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from nightkeep.api.results import RunHistory, Runs
from nightkeep.model import Operation, Outcome
from nightkeep.records.document import Metrics, PlanSection, PlanUnit, RunDocument

DONE = RunDocument(
    run_id="nightly:db.t",
    table="db.t",
    format="delta",
    operation=Operation.OPTIMIZE,
    outcome=Outcome.VERIFIED,
    base_version=7,
    parent_version=8,
    committed_version=9,
    metrics=Metrics(seconds={"rewrite": 12.0}),
    started_at=datetime(2026, 11, 27, 3, 4, tzinfo=UTC),
    finished_at=datetime(2026, 11, 27, 3, 5, tzinfo=UTC),
)
PLANNED = replace(
    DONE,
    outcome=Outcome.SKIPPED,
    reason="dry run: this is the plan, nothing was changed",
    committed_version=None,
    plan=PlanSection(
        version=7,
        units=tuple(PlanUnit(f"day={day}", None, "5 small files", ("a", "b"), 2048) for day in (1, 2)),
        notes=("4 files stay as they are",),
    ),
)


def test_a_plan_shows_its_units_and_not_that_nothing_was_done() -> None:
    html = Runs((PLANNED,), is_plan=True)._repr_html_()
    for text in ("optimize of version 7, 2 units", "day=1", "day=2", "5 small files", "2.0 KB", "4 files stay"):
        assert text in html
    assert "skipped" not in html


def test_a_prompt_shows_what_a_plan_would_do() -> None:
    assert repr(Runs((PLANNED,), is_plan=True)) == "<1 plan>\n  db.t: optimize of version 7, 2 units"


def test_a_history_has_dates_runs_and_versions_newest_first() -> None:
    older = replace(DONE, run_id="first:db.t", started_at=datetime(2026, 11, 26, 3, 4, tzinfo=UTC))
    html = RunHistory((older, DONE), ())._repr_html_()
    assert html.index("2026-11-27 03:04") < html.index("2026-11-26 03:04")
    for text in ("<td>nightly</td>", "<td>8 -&gt; 9</td>", "<td>12.0 s</td>"):
        assert text in html, html


@pytest.mark.parametrize("count", [1, 3, 90])
def test_a_prompt_shows_a_few_lines(count: int) -> None:
    for shown in (Runs((DONE,) * count), RunHistory((DONE,) * count, ())):
        lines = repr(shown).splitlines()
        assert len(lines) <= 7 and str(count) in lines[0]
        assert "db.t: optimize: verified, version 9" in lines[1]
    assert repr(DONE) == "<run nightly:db.t db.t: optimize: verified, version 9>"


def test_a_prompt_shows_no_credentials() -> None:
    document = replace(DONE, table="delta:s3://user:hunter2@host/t")
    assert "hunter2" not in repr(document) + repr(Runs((document,))) + repr(RunHistory((document,), ()))
