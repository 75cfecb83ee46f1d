"""The index, the fleet and the pages of tables: order, filters, sums, trends, links, and what they never do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.pages.test_attention import held, run
from tests.pages.test_pages import HOSTILE, LINKS, Page, hostile
from tests.records.test_documents import NIGHT

import nightkeep
from nightkeep.model import Operation, Outcome
from nightkeep.pages import Links, Overview, render_fleet, render_index, render_run, render_table
from nightkeep.pages.expectation_trends import CHECK, expectation_trends
from nightkeep.pages.facts import facts_of
from nightkeep.pages.fleet import fleet_rows, totals_of
from nightkeep.pages.templating import name_in_parts
from nightkeep.pages.trends import trend
from nightkeep.pages.versions import commits_between, version_rows
from nightkeep.records import CheckStatus, Expectations, ExpectationSummary, Metrics, RunDocument, store
from nightkeep.records.audit_marks import AuditedCommit, AuditMark, keep_audit_mark
from nightkeep.records.document import Predicted
from nightkeep.records.index_rows import brief_document, row_of

WORKED = Metrics(
    files_before=40,
    files_after=4,
    bytes_before=4 << 20,
    bytes_after=1 << 20,
    seconds={"plan": 3.0},
    extra={"cpu_seconds": {"rewrite": 1.5, "verify": 0.5}, "session_seconds": 2.0},
)
HISTORY = (
    run(1, Outcome.VERIFIED, "shop.a", metrics=WORKED),
    run(1, Outcome.UNCHANGED, "shop.b"),
    run(2, Outcome.VERIFIED, "shop.a", metrics=replace(WORKED, files_before=10)),
    run(2, Outcome.UNCHANGED, "shop.b"),
    run(2, Outcome.FAILED, "lake.c", format="paimon"),
)
BAD = run(3, Outcome.MISMATCH, "shop.b", committed_version=7)
TABLES = Links(table=lambda table: f"tables/{table}.html", index="index.html", fleet="fleet.html")


def pages(overview: Overview, links: Links = LINKS) -> list[str]:
    made = {"generated_at": NIGHT, "links": links}
    table = overview.history[0].table if overview.history else "t"
    own = replace(overview, history=[each for each in overview.history if each.table == table])
    return [
        render_index(overview, title="Nightkeep", generated_at=NIGHT, links=links),
        render_fleet(overview, generated_at=NIGHT, links=links),
        render_table(table, own, generated_at=NIGHT, links=links),
        render_run(overview.history, title="run", **made),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("overview", [Overview(HISTORY), Overview([hostile()]), Overview(())])
def test_pages_load_nothing_run_nothing_and_escape_everything(overview: Overview) -> None:
    for html in pages(overview):
        assert not re.search(r"(?i)https?:|@import|url\(|<script|<iframe|<img|javascript:", html)
        assert not [name for _, attrs in Page(html).elements for name in attrs if name.startswith("on")]
        assert "49" not in Page(html).text.replace("{{ 7 * 7 }}", "") or HOSTILE not in html


def test_what_needs_a_person_is_the_first_thing_and_rows_are_sorted_by_it() -> None:
    html = render_index(
        Overview((*HISTORY, BAD), {"shop.b": held(BAD)}), title="Nightkeep", generated_at=NIGHT, links=TABLES
    )
    text = Page(html).text
    assert text.startswith("Nightkeep Nightkeep Nightkeep All runs Fleet What needs a person on hold shop.b")
    assert text.index("RESTORE TABLE") < text.index("nightkeep release shop.b") < text.index("6 runs on 3 tables")
    assert re.findall(r"<tr data-of.*?tables/([\w.]+)\.html", html) == ["shop.b", "lake.c", "shop.a"]
    assert 'href="tables/shop.b.html"' in html


def test_one_green_line_where_nothing_needs_a_person() -> None:
    for html in pages(Overview(HISTORY[:4])):
        assert "What needs a person Nothing." in Page(html).text or "Fleet" in html[: html.index("</title>")]


def test_links_filter_by_format_outcome_and_namespace_without_a_script() -> None:
    html = render_fleet(Overview(HISTORY), generated_at=NIGHT, links=TABLES)
    rows, filters = fleet_rows(HISTORY, ())
    assert {(each.kind, each.name, each.rows) for each in filters} == {
        ("format", "delta", 2),
        ("format", "paimon", 1),
        ("outcome", "failed", 1),
        ("outcome", "verified", 1),
        ("outcome", "unchanged", 1),
        ("namespace", "shop", 2),
        ("namespace", "lake", 1),
    }
    ids = {attrs["id"] for attrs in Page(html).all("span") if "id" in attrs}
    assert {each.mark for each in filters} <= ids
    for each in filters:
        assert html.count(f'href="#{each.mark}">') == 1
        assert sum(f"of-{each.mark}" in row.classes.split() for row in rows) == each.rows
        assert f"#{each.mark}:target ~ * [data-of]:not(.of-{each.mark})" in html
    assert fleet_rows(HISTORY[:1], ())[1] == ()


@pytest.mark.parametrize("of_index", [False, True])
def test_sums_are_those_of_documents_and_of_rows_of_the_index(*, of_index: bool) -> None:
    history = [brief_document(row_of(each, 1)) if of_index else each for each in HISTORY]
    found = totals_of(history)
    assert (found.tables, found.runs, found.files_before, found.files_after) == (3, 5, 40, 4)
    assert (found.bytes_before, found.bytes_after, found.bytes_unread) == (4 << 20, 1 << 20, 6 << 20)
    assert (found.cpu_seconds, found.seconds) == (4.0, 4.0)


def test_a_sweep_hides_no_night() -> None:
    swept = run(3, Outcome.VERIFIED, "shop.a", operation=Operation.SWEEP, committed_version=None)
    (row,) = fleet_rows([run(2, Outcome.FAILED, "shop.a"), swept], ())[0]
    assert [each.operation for each in row.by_operation] == [Operation.SWEEP, Operation.OPTIMIZE]
    assert row.state is Outcome.FAILED
    assert row.last.operation is Operation.SWEEP


def test_the_life_of_a_table_folds_quiet_runs_and_names_commits_of_others() -> None:
    quiet = [run(n, Outcome.UNCHANGED, "t", base_version=5) for n in (2, 3, 4)]
    life = [
        run(1, Outcome.VERIFIED, "t", base_version=4, committed_version=5),
        *quiet,
        run(5, Outcome.VERIFIED, "t", base_version=9, committed_version=10),
    ]
    text = Page(render_table("t", Overview(life), generated_at=NIGHT, links=Links())).text
    assert "nothing to do in 3 runs since" in text
    assert "others committed in between: version 5 was ours, this run found 9" in text
    assert text.count("unchanged") == 0


def test_tables_with_nothing_to_do_share_a_line_of_the_run() -> None:
    html = render_run(HISTORY[2:4], title="run", generated_at=NIGHT, links=TABLES)
    text = Page(html).text
    assert "nothing to do on 1 table: shop.b ." in text
    assert [attrs["id"] for attrs in Page(html).all("section") if attrs.get("class") == "table"] == ["t1"]
    assert "It took 9.0 s; the stages of its tables add up to 3.0 s." in text


@pytest.mark.parametrize("name", ["shop.orders", "a_b", "s3://lake/t", "word", "", "..", "a.b:c-d"])
def test_a_name_is_broken_between_its_parts_alone(name: str) -> None:
    parts = str(name_in_parts(name)).split("<wbr>")
    assert "".join(parts) == name
    assert all(part[-1] in "._/:-" for part in parts[:-1])


def test_a_name_with_markup_is_escaped() -> None:
    assert str(name_in_parts("<b>.x")) == "&lt;b&gt;.<wbr>x"


def test_facts_are_sentences_and_what_is_empty_is_none() -> None:
    found = dict(
        facts_of(
            {
                "losing": [],
                "executors": {"vm:25727": 8, "vm:2": 1},
                "cpu_seconds": {"rewrite": 2.25, "verify": 0.5},
                "lag": None,
                "nested": {"a": [1, 2]},
                "flag": True,
                "file_sizes_before": [1],
            }
        )
    )
    assert found == {
        "Where tasks ran": "8 tasks on vm:25727, 1 task on vm:2",
        "CPU seconds of tasks": "2.2 s to rewrite, 0.5 s to verify",
        "Nested": "a 1, 2",
        "Flag": "yes",
    }


@pytest.mark.parametrize("odd", ["much", 3, [1], {"a": "b"}, {"a": None}, 0.5, True])
def test_odd_facts_are_no_reason_to_fail(odd: object) -> None:
    assert len([*facts_of(dict.fromkeys(("executors", "cpu_seconds", "losing", "read_bytes"), odd))]) == 4


def test_a_trend_has_its_ends_and_bounds_and_nothing_of_what_was_not_measured() -> None:
    found = trend("files", [4, None, 40, 8], "{:.0f}".format)
    assert found is not None and found.sentence == "files: 4 to 8 over 3 runs, 4 to 40"
    assert found.points == "2.0,22.0 60.0,2.0 118.0,19.8"
    assert trend("files", [4, None], "{:.0f}".format) is None
    flat = trend("files", [4, 4], "{:.0f}".format)
    assert flat is not None and flat.end == (118.0, 12.0)


def test_gain_is_expected_of_work_that_is_not_published() -> None:
    planned = replace(WORKED, predicted=Predicted(3, 1 << 20, 9.0, "x"))
    published = run(1, Outcome.VERIFIED, "t", metrics=planned)
    lost = run(2, Outcome.CONFLICTED, "t", metrics=planned)
    assert [fleet_rows([each], ())[0][0].gain for each in (published, lost)] == [None, planned.predicted]


def found(night: int, table: str = "t", **health: float) -> RunDocument:
    skipped = {"skipping": {"a": {"before": 0.1, "after": night / 10}, "b": {"before": 0.1, "after": 0.5}}}
    measured = replace(WORKED, health=health, score=1.25, predicted=Predicted(3, 1 << 20, 9.0, "x"), extra=skipped)
    return run(night, Outcome.CONFLICTED if night == 3 else Outcome.VERIFIED, table, metrics=measured)


@pytest.mark.parametrize("of_index", [False, True])
def test_health_and_score_and_their_trends_are_on_the_fleet_and_the_table(*, of_index: bool) -> None:
    history = [
        found(1, files=44, small_files=40, deleted_ratio=0.25, level0_files=6, level0_age_ms=7_200_000),
        found(2, files=44, small_files=0, deleted_ratio=0.1, level0_files=3, level0_age_ms=60_000),
        found(3, files=44, small_files=32, deleted_ratio=0.0, level0_files=2, level0_age_ms=3_600_000),
    ]
    if of_index:
        history = [brief_document(row_of(each, 0)) for each in history]
    ((row,), _) = fleet_rows(history, ())
    assert row.health == ("32 small files", "2 files in level 0", "the oldest 1 h old")
    assert row.score == 1.25
    ((one,), _) = fleet_rows([found(4, small_files=1, level0_files=1, equality_deletes=1)], ())
    assert one.health == ("1 small file", "1 equality delete", "1 file in level 0")
    assert {each.name: (each.first, each.last) for each in row.trends} == {
        "files": ("4", "4"),
        "bytes": ("1.0 MB", "1.0 MB"),
        "deleted rows": ("25.0%", "0.0%"),
        "level-0 age": ("2 h", "1 h"),
        "files skipped": ("30%", "40%"),
    }
    for html in (
        render_fleet(Overview(history), generated_at=NIGHT, links=TABLES),
        render_table("t", Overview(history), generated_at=NIGHT, links=TABLES),
    ):
        text = Page(html).text
        assert "32 small files" in text and "1.25" in text
        assert 'aria-label="deleted rows: 25.0% to 0.0% over 3 runs' in html.replace("Deleted", "deleted")


def test_a_table_of_earlier_releases_has_no_health() -> None:
    ((row, *_), _) = fleet_rows(HISTORY[:1], ())
    assert (row.health, row.score) == ((), None)


def test_wall_time_counts_side_by_side_runs_once() -> None:
    def lasting(start: int, end: int, table: str) -> RunDocument:
        at = run(1, Outcome.VERIFIED, table, metrics=WORKED)
        begun = at.started_at
        return replace(at, started_at=begun + timedelta(seconds=start), finished_at=begun + timedelta(seconds=end))

    some = [
        lasting(0, 10, "a"),
        lasting(2, 5, "b"),
        lasting(8, 14, "c"),
        lasting(100, 101, "a"),
        lasting(100, 100, "b"),
    ]
    assert totals_of(some).wall_seconds == 15
    assert totals_of(some).seconds == 10
    assert totals_of(()).wall_seconds == 0


def audited(*commits: tuple[int, str, str, bool | None]) -> tuple[AuditedCommit, ...]:
    return tuple(
        AuditedCommit(version=version, digest="", kind=kind, author=author, time_ms=n * 60_000, keeps_rows=keeps)
        for n, (version, kind, author, keeps) in enumerate(commits)
    )


def test_the_life_of_a_table_names_whose_commit_each_version_is() -> None:
    # Snapshots of Iceberg have no order.
    commits = audited(
        (900, "append", "spark 4.0", False),
        (41, "replace", "nightkeep", True),
        (7, "append", "flink 2.1", False),
        (88, "replace", "an optimizer", True),
        (5, "delete", HOSTILE, None),
    )
    life = [
        run(1, Outcome.VERIFIED, "t", base_version=900, committed_version=41),
        run(2, Outcome.VERIFIED, "t", base_version=5, committed_version=6),
    ]
    assert commits_between(life, life[0], commits) == ""
    named = "version 7 by a writer (append, flink 2.1), version 88 by another manager (replace, an optimizer), "
    named += f"version 5 by others (delete, {HOSTILE})"
    found = "others committed in between: version 41 was ours, this run found 5"
    assert commits_between(life, life[1], commits) == f"{found}; {named}"
    # Where audits have not judged all of them, none is named.
    assert commits_between(life, life[1], commits[2:]) == commits_between(life, life[1], ()) == found
    whose = [(each.version, each.whose) for each in version_rows(life, commits)]
    assert whose == [(5, "others"), (88, "another manager"), (7, "a writer"), (41, "us"), (900, "a writer")]
    html = render_table("t", Overview(life, commits=commits), generated_at=NIGHT, links=Links())
    assert "version 88 by another manager" in Page(html).text and "<script>alert" not in html
    assert "41 us replace nightkeep 1970-01-01 00:01" in Page(html).text
    assert "Whose each version is" not in render_table("t", Overview(life), generated_at=NIGHT, links=Links())


def test_many_commits_between_two_runs_are_counted() -> None:
    commits = audited((5, "WRITE", "us", True), *((n, "WRITE", "w", False) for n in range(6, 12)))
    life = [
        run(1, Outcome.VERIFIED, "t", base_version=4, committed_version=5),
        run(2, Outcome.VERIFIED, "t", base_version=11, committed_version=12),
    ]
    assert commits_between(life, life[1], commits).endswith("version 8 by a writer (WRITE, w) and 3 more")


@pytest.mark.parametrize("time_ms", [10**18, -(10**18), 1 << 62])
def test_a_commit_of_no_known_time_is_listed(time_ms: int) -> None:
    (row,) = version_rows([], [replace(*audited((1, "WRITE", "w", None)), time_ms=time_ms)])
    assert row.made_at == "unknown"


def answered(number: int, table: str = "t", status: CheckStatus = CheckStatus.PASSED, **own: str) -> RunDocument:
    """A run whose check ended so, with the answers of expectations by name: the severity and the status."""
    results = tuple(
        ExpectationSummary(name, CheckStatus(each.partition(" ")[2]), extra={"severity": each.partition(" ")[0]})
        for name, each in own.items()
    )
    ours = ExpectationSummary("the same rows", status)
    return run(number, Outcome.VERIFIED, table, expectations=Expectations(status, (ours, *results)))


@pytest.mark.parametrize("of_index", [False, True])
def test_expectations_over_time_are_a_mark_for_each_run(*, of_index: bool) -> None:
    history = [
        answered(1, a="critical passed", old="info failed"),
        answered(2, a="critical failed", b="warning passed"),
        run(3, Outcome.UNCHANGED, "t"),
        answered(4, status=CheckStatus.ERRORED),
        answered(5, a="critical passed", b="warning errored"),
        answered(6, a="critical failed", b="warning failed"),
    ]
    shown = [brief_document(row_of(each, 1)) if of_index else each for each in history]
    trends = {each.name: each for each in expectation_trends(shown)}
    # What the newest run asks comes first, and what no run asks any more last.
    assert [*trends] == [CHECK, "a", "b", "old"]
    marks = {name: [each.mark.value for each in one.marks] for name, one in trends.items()}
    assert marks == {
        CHECK: ["passed", "passed", "not_run", "errored", "passed", "passed"],
        "a": ["passed", "failed", "not_run", "not_run", "passed", "failed"],
        "b": ["not_run", "passed", "not_run", "not_run", "errored", "failed"],
        "old": ["failed", "not_run", "not_run", "not_run", "not_run", "not_run"],
    }
    assert {name: (each.severity, each.unmet, each.asked) for name, each in trends.items()} == {
        CHECK: (None, 0, 5), "a": ("critical", 2, 4), "b": ("warning", 1, 3), "old": ("info", 1, 1),
    }  # fmt: skip
    times = [f"{each.started_at:%Y-%m-%d %H:%M}" for each in history]
    begun = f"not met in 2 runs, which began {times[5]}, {times[1]}"
    assert trends["a"].sentence == f"{begun}; met in 2 runs; not asked in 2 runs"
    assert str(trends["old"].last) == f"{times[0]}: not met"
    html = render_table("t", Overview(shown), generated_at=NIGHT, links=Links())
    section = html.partition("Expectations over time")[2].partition("Sums of these runs")[0]
    assert section.count('<use href="#answer-') == 4 * len(history) + 4
    assert {attrs["aria-label"] for attrs in Page(html).all("span") if attrs.get("class") == "strip"} >= {
        each.sentence for each in trends.values()
    }
    assert f"not met {times[5]} 2 of 4" in Page(html).text


def test_operations_of_a_run_share_a_mark_and_the_worst_answer_counts() -> None:
    both = [replace(answered(1, a="info passed"), operation=Operation.UPGRADE), answered(1, a="info failed")]
    assert [[each.mark.value for each in one.marks] for one in expectation_trends(both)] == [["passed"], ["failed"]]
    # A sweep asks nothing of the rows.
    swept = replace(answered(2), operation=Operation.SWEEP)
    assert expectation_trends([swept]) == expectation_trends([run(1, Outcome.UNCHANGED)]) == ()


def test_the_newest_runs_and_the_first_expectations_are_shown() -> None:
    asked = {f"e{number}{'x' * 200}": "info passed" for number in range(60)}
    history = [answered(number, **asked) for number in range(1, 61)]
    trends = expectation_trends(history)
    assert len(trends) == 51 and {len(each.marks) for each in trends} == {40}
    brief = [brief_document(row_of(each, 1)) for each in history]
    assert len(expectation_trends(brief)) == 51
    assert len(json.dumps(row_of(history[0], 1))) < 8_000
    page = render_table("t", Overview(brief), generated_at=NIGHT, links=Links())
    assert len(page) < 400_000


def test_a_row_of_an_earlier_release_has_critical_ones_that_are_not_met() -> None:
    row = row_of(answered(1, a="critical failed", b="warning passed"), 1)
    figures = row[-2]
    assert isinstance(figures, dict)
    del figures["own"]
    assert [each.name for each in expectation_trends([brief_document(row)])] == [CHECK, "a"]


def test_a_report_reads_the_marks_of_audited_tables(tmp_path: Path) -> None:
    for table in ("t", "u"):
        for number, operation in ((1, Operation.OPTIMIZE), (2, Operation.AUDIT)):
            if (table, operation) != ("u", Operation.AUDIT):
                store(replace(run(number, Outcome.VERIFIED, table), operation=operation), tmp_path)
        commits = audited((7, "WRITE", "a known writer", False))
        keep_audit_mark(tmp_path, AuditMark(table=table, commits=commits, audited_at=NIGHT))
    nightkeep.report(reports=tmp_path, out=tmp_path / "out")
    pages = {each.stem: Page(each.read_text()).text for each in (tmp_path / "out" / "pages" / "tables").iterdir()}
    assert {name: "7 a writer WRITE a known writer" in text for name, text in pages.items()} == {"t": True, "u": False}


@pytest.mark.parametrize(("severity", "status"), [("critical", "failed"), ("warning", "passed")])
def test_a_critical_expectation_that_is_not_met_is_red_also_where_the_commit_is_not_at_fault(
    severity: str, status: str
) -> None:
    unmet = ExpectationSummary("not null", CheckStatus.FAILED, "3 rows", extra={"severity": severity})
    checked = Expectations(CheckStatus.PASSED, (unmet,), reason="policy expectations not met: not null failed")
    document = run(1, Outcome.VERIFIED, expectations=checked)
    html = render_table("shop.orders", Overview([document]), generated_at=NIGHT, links=Links())
    life = html.partition("Its life")[2]
    assert life.count(f'class="badge {status}"') == 2
    page = render_run([document], title="r", generated_at=NIGHT)
    assert f'class="badge {status}"' in page.partition("Check of")[2].partition("</h3>")[0]
