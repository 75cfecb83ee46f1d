"""No element of a page is wider than the window, narrow and wide: a browser measures pages with long names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.pages.test_attention import UNMET, held, run
from tests.records.test_documents import NIGHT

import nightkeep
from nightkeep.model import Outcome, UnitKey
from nightkeep.records import CheckStatus, Expectations, ExpectationSummary, Metrics, RunDocument, hold, store
from nightkeep.records.check_report import Difference, UnitDifference
from nightkeep.records.document import Predicted
from nightkeep.records.found_versions import FoundVersion, FoundVersions, spans_of
from nightkeep.records.row_values import keep_values

LONG = "warehouse_europe_west.customer_relationship_management_events.daily_aggregated_sessions_by_device"
SNAPSHOTS = 8412345678901234567, 8412345678901234568
WIDTHS = 400, 700, 1000, 1400
"""Of windows, and of the tab in a window of Airflow of 1,000."""
MEASURED = """<script>addEventListener("load", () => {
  const width = document.documentElement.clientWidth, inside = [...document.querySelectorAll("body *")];
  const scrolls = e => e.parentElement.closest(".scroll") || e.closest("svg");
  const wide = inside.filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e));
  const cut = [...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1);
  const found = {width, page: document.documentElement.scrollWidth,
    wide: wide.map(e => e.outerHTML.slice(0, 80)), cut: cut.map(e => e.getAttribute("aria-label"))};
  parent.postMessage(JSON.stringify(found), "*");
});</script>"""
FRAME = """<!doctype html><title></title><body style="margin:0">
<script>addEventListener("message", event => { document.title = event.data; })</script>
<iframe src="{page}" style="border:0;width:{width}px;height:1200px"></iframe>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of nights with every kind of trouble, of tables with short and with long names."""
    reports = tmp_path_factory.mktemp("widths")
    for document in nights():
        store(document, reports)
    bad = run(9, Outcome.MISMATCH, LONG, committed_version=SNAPSHOTS[1], base_version=SNAPSHOTS[0])
    wide = {f"a_rather_long_name_of_column_{number}": "text " * 8 for number in range(12)}
    rows = UnitDifference(UnitKey("day=2026-11-01"), "published", Difference(1, 0, missing_rows=(wide,)))
    bad = keep_values(bad, reports, differences=(rows,))
    store(bad, reports)
    hold(reports, LONG, replace(bad, go_back=held(bad).go_back))
    nightkeep.report(reports=reports)
    return reports / "pages"


def others() -> FoundVersions:
    """Commits of others, by long names, of snapshots with long numbers."""
    author = "flink-streaming-job-of-the-customer-relationship-management-team-in-europe-west"
    version = FoundVersion(
        version=SNAPSHOTS[1], whose="a writer", kind="STREAMING UPDATE", author=author, application=author, time_ms=0
    )
    some = replace(version, version=SNAPSHOTS[0]), replace(version, kind="OPTIMIZE", whose="another manager")
    versions = (version, *some)
    return FoundVersions(since=1, until=SNAPSHOTS[1], total=60, spans=spans_of(versions), versions=versions)


def nights() -> Iterator[RunDocument]:
    metrics = Metrics(
        files_before=12_345,
        files_after=900,
        bytes_before=5 << 40,
        bytes_after=4 << 40,
        seconds={"plan": 0.4, "rewrite": 90_000.0, "verify": 12.0, "check": 20.0},
        predicted=Predicted(20, 1 << 30, 60.0, "7 runs"),
        health={"small_files": 1.0, "deleted_ratio": 0.2, "level0_files": 1.0, "level0_age_ms": 3.6e6},
        score=12.3,
    )
    answers = [*CheckStatus]
    for night in range(1, 49):
        column = "expect_column_values_to_not_be_null of customer_relationship_management_identifier"
        asked = ExpectationSummary(column, answers[night % 3], extra={"severity": "warning"})
        checked = Expectations(CheckStatus.PASSED, (UNMET, asked), coverage="3 of 3 units")
        yield run(
            night,
            Outcome.VERIFIED,
            LONG,
            metrics=metrics,
            expectations=checked,
            base_version=SNAPSHOTS[0],
            found_versions=others(),
        )
    for night in range(1, 9):
        yield run(night, Outcome.VERIFIED, "shop.orders", metrics=metrics, base_version=night - 1)
        for outcome in (Outcome.FAILED, Outcome.CONFLICTED, Outcome.REFUSED, Outcome.UNCHANGED):
            why = f"s3://bucket/{LONG}/_delta_log/{night:020}.json: expected an answer, found HTTP 503"
            yield run(night, outcome, f"crm.{outcome}", reason=why, finished_at=NIGHT + timedelta(days=night))


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("width", WIDTHS)
def test_no_element_is_wider_than_the_window(pages: Path, tmp_path: Path, width: int) -> None:
    # The pages of most runs are alike: those with two digits are left out.
    files = sorted(each for each in pages.rglob("*.html") if not re.fullmatch(r"night-\d\d", each.stem))
    assert {"index.html", "fleet.html"} < {each.name for each in files} and len(files) >= 15
    found = {each.relative_to(pages).as_posix(): measured(each, tmp_path, width) for each in files}
    assert {name: each["wide"] for name, each in found.items() if each["wide"] or each["page"] > width} == {}
    assert {each["width"] for each in found.values()} == {width}
    # A table of rows has the columns of the table that they are of; every other one fits.
    assert {name for name, each in found.items() if each["cut"]} <= {n for n in found if n.startswith("~values/")}


def measured(page: Path, folder: Path, width: int) -> Any:
    """What a browser finds of a page in a window of this width. It may load nothing, and so runs no script but here."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no chromium")
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', MEASURED, page.read_text(), count=1)
    (folder / "page.html").write_text(html)
    (folder / "frame.html").write_text(FRAME.replace("{page}", "page.html").replace("{width}", str(width)))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000"]
    # Windows of a browser are not narrower than 500; the frame in it is.
    options += [f"--window-size={max(width, 500)},1200", f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    ended = subprocess.run(
        [browser, *options, f"file://{folder / 'frame.html'}"], capture_output=True, text=True, check=True, timeout=120
    )
    title = re.search(r"<title>(.*?)</title>", ended.stdout, re.DOTALL)
    assert title is not None and title[1], ended.stderr[-500:]
    return json.loads(unescape(title[1]))
