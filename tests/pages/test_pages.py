"""What people see of documents: pages, text, figures."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.test_documents import BARE, NIGHT, PROOF, clustered, document

import nightkeep.pages
from nightkeep.model import Curve, Operation, Outcome, VerifyLevel
from nightkeep.model.sweep_rules import AGES
from nightkeep.pages import Links, Overview, plan_text, render_index, render_run, summary_text
from nightkeep.pages.bars import levels, show_amount, show_bytes, show_seconds, size_bins, stages
from nightkeep.pages.column_metrics import BeforeAfter, ColumnChange, column_changes, delete_files, skipping_beside
from nightkeep.records import (
    CheckStatus,
    Expectations,
    ExpectationSummary,
    Metrics,
    PlanSection,
    RunDocument,
    UnitResult,
    load_document,
    store,
)
from nightkeep.records.document import Predicted
from nightkeep.records.failure_outcomes import CHECK_UNFINISHED


def swept(table: str = "shop.orders", **changes: object) -> RunDocument:
    """A sweep that put files aside; `changes` are keys of `extra`, None takes one away."""
    extra = {
        "mode": "quarantine",
        "orphans": [
            {
                "path": "s3://b/t/bucket-0/data-1.parquet",
                "bytes": 3 << 20,
                "modified_at": "2026-10-01T10:00:00+00:00",
                "kind": "data",
            },
            {
                "path": "s3://b/t/manifest/manifest-2",
                "bytes": 1024,
                "modified_at": "2026-11-12T11:00:00.5+00:00",
                "kind": "manifest",
            },
        ],
        "orphans_total": 1202,
        "orphans_bytes": 4 << 20,
        "orphans_file": "reports/orphans-1.jsonl",
        "live_files": 48211,
        "young_files": 17,
        "unknown_files": 3,
        "cutoff": "2026-11-14T02:00:04+00:00",
        "by_kind": {"data": {"files": 1200, "bytes": 3 << 20}, "manifest": {"files": 2, "bytes": 1 << 20}},
        "by_age": {"7 to 30 days": {"files": 1, "bytes": 1 << 20}, "30 to 90 days": {"files": 1201, "bytes": 3 << 20}},
        "acted": {"files": 1201, "bytes": 4 << 20},
        "left": {"files": 1, "bytes": 12},
        "purged": {"files": 0, "bytes": 0},
        "quarantine": "t/_nightkeep/quarantine/weekly-1",
        "closed": ["weekly-0"],
        "failed": [{"path": "t/bucket-0/busy.parquet", "reason": "403 Forbidden"}],
    }
    known = {key: found for key, found in (extra | changes).items() if found is not None}
    return replace(
        BARE,
        table=table,
        run_id="weekly 1",
        operation=Operation.SWEEP,
        outcome=Outcome.VERIFIED,
        metrics=Metrics(seconds={"list": 2.0, "live": 1.0}),
        extra=known,
    )


EXPIRED = replace(
    swept(),
    operation=Operation.EXPIRE,
    extra={
        "mode": "delete",
        "expired": [*range(11, 40)],
        "orphans_total": 7,
        "orphans_bytes": 700,
        "notes": ["consumer c reads from 40"],
        "not_compared": "the table's reader has no time travel",
        "kept": [{"version": "41", "reason": "tag end-of-month"}, {"version": 42, "reason": "the latest"}],
        "by_kind": {"data": {"files": 7, "bytes": 700}},
        "acted": {"files": 7, "bytes": 700},
    },
)
RESTORED = replace(
    swept(),
    operation=Operation.RESTORE,
    extra={
        "restored_run": "weekly-0",
        "acted": {"files": 5, "bytes": 50},
        "failed": [{"path": "t/x.parquet", "reason": "another file is there"}],
    },
)
UPKEEP = (swept(), EXPIRED, RESTORED)


class TestFigures:
    @given(st.lists(st.integers(0, 1 << 50), min_size=1), st.lists(st.integers(0, 1 << 50)))
    def test_bins_count_every_file_once_below_their_bound(self, before: list[int], after: list[int]) -> None:
        pair = size_bins(before, after)
        assert pair is not None
        assert (sum(pair.before), sum(pair.after)) == (len(before), len(after))
        assert (pair.before[0] or pair.after[0]) and (pair.before[-1] or pair.after[-1])
        bounds = [1024 * 4**i for i in range(24)]
        first = next(i for i, bound in enumerate(bounds) if min(before + after) <= bound)
        for i, count in enumerate(pair.before, first):
            low = bounds[i - 1] if i else -1
            assert count == sum(low < size <= bounds[i] for size in before)

    def test_bins_are_labelled_by_their_upper_bound(self) -> None:
        pair = size_bins([1024, 1025, 100_000], [5 << 20])
        assert pair is not None
        assert pair.labels == ("1 KB", "4 KB", "16 KB", "64 KB", "256 KB", "1 MB", "4 MB", "16 MB")
        assert pair.sentence(pair.before) == "1 at 1 KB, 1 at 4 KB, 1 at 256 KB"
        assert size_bins([], []) is None

    def test_levels_are_in_numeric_order(self) -> None:
        pair = levels({"10": 1, "9": 2}, {"0": 3})
        assert pair is not None
        assert (pair.labels, pair.before, pair.after) == (("L0", "L9", "L10"), (0, 2, 1), (3, 0, 0))
        assert levels({}, {}) is None

    @given(st.dictionaries(st.text(), st.floats(0, 1e6), min_size=1))
    def test_stages_lie_end_to_end(self, seconds: dict[str, float]) -> None:
        bars = stages(seconds)
        assert [bar.label for bar in bars] == list(seconds)
        for one, following in itertools.pairwise(bars):
            assert following.start == pytest.approx(one.start + one.size)
        assert sum(bar.size for bar in bars) == pytest.approx(1.0 if sum(seconds.values()) else 0.0)

    def test_numbers_are_short(self) -> None:
        sizes = [0, 999, 1000, 1023, 1024, 102_200, 999_999, 1 << 20, 1 << 60]
        assert [show_bytes(size) for size in sizes] == [
            "0 B",
            "999 B",
            "1.0 KB",
            "1.0 KB",
            "1.0 KB",
            "99.8 KB",
            "977 KB",
            "1.0 MB",
            "1024 PB",
        ]
        assert [show_seconds(s) for s in (0, 0.04, 0.1, 75.25)] == ["0.0 s", "40 ms", "0.1 s", "75.2 s"]
        assert [show_seconds(s) for s in (599.9, 600, 7_200, 1e6)] == ["599.9 s", "10.0 min", "2.0 h", "277.8 h"]
        amounts = (0, 1234.5, 1, 0.999, 0.0500, 0.00987, 2.5e-06, -0.5)
        shown = ["0.00", "1,234.50", "1.00", "1.00", "0.050", "0.0099", "0.0000025", "-0.50"]
        assert [show_amount(each) for each in amounts] == shown


class Page(HTMLParser):
    """A page as a browser's parser sees it: elements with their attributes, nesting checked on the way."""

    VOID = frozenset({"meta", "link", "br", "wbr", "path", "rect", "circle", "line"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self._goes_on = False
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        # A line may be broken there; the word goes on.
        self._goes_on = tag == "wbr"
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            if self._goes_on:
                self.words[-1] += data
            else:
                self.words.append(data)
            self._goes_on = False

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attrs for found, attrs in self.elements if found == tag)


LINKS = Links(page_of=lambda document: f"pages/{document.run_id}.html")


def run_page(*documents: RunDocument) -> str:
    return render_run(documents, title="Nightly run", generated_at=NIGHT)


def index_page(*history: RunDocument) -> str:
    return render_index(Overview(history), title="History", generated_at=NIGHT, links=LINKS)


TRACE = """PythonException: An exception was thrown from the Python worker.
Traceback (most recent call last):
  File "worker.py", line 3, in write
    write(file)
    ^^^^^^^^^^^
OSError: [Errno 28] No space left on device: '/t/part-0.parquet'
"""


def test_a_stored_traceback_is_shown_as_its_sentence(tmp_path: Path) -> None:
    checked = Expectations(CheckStatus.ERRORED, (ExpectationSummary("x", CheckStatus.ERRORED, TRACE),), reason=TRACE)
    for reason in (TRACE, f"{CHECK_UNFINISHED}{TRACE}"):
        kept = replace(document("t", Outcome.FAILED), reason=reason, expectations=checked)
        loaded = load_document(store(kept, tmp_path))
        assert (loaded.reason or "").startswith(CHECK_UNFINISHED) is reason.startswith(CHECK_UNFINISHED)
        for shown in (index_page(loaded), run_page(loaded), summary_text([loaded])):
            assert "^^^" not in shown and "Traceback" not in shown
            assert "No space left on device" in shown and "free space there" in shown


EVERYTHING = [document(f"t-{outcome}", outcome) for outcome in Outcome]
HOSTILE = "<script>alert(1)</script>\"'&{{ 7 * 7 }}"


def hostile() -> RunDocument:
    """A document in which every text comes from somebody who means ill."""
    text = json.dumps(replace(clustered(), outcome=Outcome.MISMATCH).to_json())
    known = {
        *Operation,
        *Outcome,
        *VerifyLevel,
        *CheckStatus,
        *Curve,
        NIGHT.isoformat(),
        document().finished_at.isoformat(),
    }

    def poisoned(value: object) -> object:
        if isinstance(value, dict):
            return {key: poisoned(found) for key, found in value.items()} | {HOSTILE: HOSTILE}
        if isinstance(value, list):
            return [poisoned(found) for found in value]
        return HOSTILE if isinstance(value, str) and value not in known else value

    found = poisoned(json.loads(text))
    assert isinstance(found, dict)
    found["metrics"]["seconds"].pop(HOSTILE)
    found["metrics"]["seconds"][HOSTILE] = 1.0
    found["metrics"]["health"] = {HOSTILE: 1.0, "small_files": 1e300, "level0_age_ms": -1e18}
    found["metrics"]["skipping"][HOSTILE] = {"before": 0.9, "after": 0.1}
    found["plan"]["clustering"]["columns"] = [HOSTILE]
    return RunDocument.from_json(found)


def hostile_sweep() -> RunDocument:
    def poisoned(value: object) -> object:
        if isinstance(value, dict):
            return {**{key: poisoned(found) for key, found in value.items()}, HOSTILE: {"files": 1, "bytes": 1}}
        if isinstance(value, list):
            return [poisoned(found) for found in value]
        return HOSTILE if isinstance(value, str) else value

    found = poisoned(dict(swept().extra))
    assert isinstance(found, dict)
    return replace(swept(HOSTILE), run_id=HOSTILE, extra=found)


def schemeless(extra: Mapping[str, object]) -> dict[str, object]:
    """Paths of stores look like what a page must not load."""
    found = json.loads(json.dumps(extra).replace("s3://", ""))
    assert isinstance(found, dict)
    return found


class TestPages:
    @pytest.mark.parametrize(
        "html",
        [
            run_page(*EVERYTHING, clustered(), BARE, *(replace(d, extra=schemeless(d.extra)) for d in UPKEEP)),
            index_page(*EVERYTHING, BARE, *UPKEEP),
            run_page(),
            index_page(),
        ],
    )
    def test_a_page_asks_nobody_for_anything(self, html: str) -> None:
        assert not re.search(r"(?i)https?:|//[a-z]|@import|url\(|<script|<iframe|<img|<object|<embed|srcset", html)
        links = [attrs["href"] for attrs in Page(html).all("link")]
        assert links == ["data:,"]
        policy = next(attrs["content"] for attrs in Page(html).all("meta") if "http-equiv" in attrs)
        assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

    @pytest.mark.parametrize("html", [run_page(hostile()), index_page(hostile()), run_page(hostile_sweep())])
    def test_every_text_is_escaped(self, html: str) -> None:
        page = Page(html)
        assert "<script" not in html
        assert "alert(1)" in page.text
        assert "49" not in page.text.replace("{{ 7 * 7 }}", "")
        allowed = {
            "html",
            "head",
            "meta",
            "link",
            "title",
            "style",
            "body",
            "header",
            "p",
            "h1",
            "main",
            "span",
            "svg",
            "path",
            "circle",
            "rect",
            "line",
            "text",
            "div",
            "table",
            "caption",
            "thead",
            "tbody",
            "tfoot",
            "tr",
            "th",
            "td",
            "a",
            "section",
            "h2",
            "h3",
            "strong",
            "code",
            "pre",
            "dl",
            "dt",
            "dd",
            "figure",
            "ul",
            "li",
            "b",
            "br",
            "wbr",
            "nav",
            "polyline",
            "figcaption",
            "mark",
            "details",
            "summary",
            "footer",
        }
        assert {tag for tag, _ in page.elements} <= allowed
        assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]

    @pytest.mark.parametrize("html", [run_page(*EVERYTHING, clustered(), *UPKEEP), index_page(*EVERYTHING, *UPKEEP)])
    def test_a_page_can_be_read_without_seeing_it(self, html: str) -> None:
        page = Page(html)
        assert next(page.all("html"))["lang"] == "en"
        assert all("scope" in attrs for attrs in page.all("th"))
        for attrs in page.all("svg"):
            assert attrs.get("aria-hidden") == "true" or (attrs["role"] == "img" and attrs["aria-label"])
        assert all(attrs.get("aria-label") for _, attrs in page.elements if attrs.get("role") == "region")
        for outcome in Outcome:
            assert outcome in page.text

    def test_a_page_fits_phones_dark_rooms_and_paper(self) -> None:
        html = run_page(document())
        assert any(attrs.get("name") == "viewport" for attrs in Page(html).all("meta"))
        for media in ("(prefers-color-scheme: dark)", "screen and (max-width: 62rem)", "print"):
            assert f"@media {media}" in html

    def test_links_lead_to_parts_of_the_page(self) -> None:
        page = Page(run_page(*EVERYTHING))
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert {f"#{found}" for found in ids} >= {attrs["href"] for attrs in page.all("a")}

    def test_a_run_shows_plan_proof_check_and_versions(self) -> None:
        text = Page(run_page(document())).text
        for expected in (
            "1 table: 1 verified. 9 rows proven.",
            "Base version 41 Parent version 42 Committed version 43",
            "14 \u2192 9",
            "3.0 MB \u2192 2.0 MB",
            "dt=1/bucket-0 2 L0 files 2 2.0 KB 1.0 KB less",
            "key-only lookup",
            "a.parquet b.parquet",
            "base 9:0000000000000001:0000000000000002 candidate 9:0000000000000001:0000000000000002",
            "snapshot 42 compacted it",
            "not compared",
            "for 50% of the rewrite's cost",
            "rows are as many passed 9",
            "sums agree failed 1 of 2 units",
            "no key twice errored no such column",
            "Coverage: 1 of 2 touched units.",
            "plan 50 ms rewrite 2.0 s check 1.0 s all stages 3.0 s",
            "Lookup key columns",
            "nightkeep 0.1.0",
        ):
            assert expected in text

    def test_a_drawing_states_its_numbers(self) -> None:
        labels = [attrs.get("aria-label") for attrs in Page(run_page(document())).all("svg")]
        assert "Files by size. Before: 1 at 1 KB, 2 at 16 KB. After: 1 at 16 KB." in labels
        assert "Files by level. Before: 2 at L0, 1 at L5. After: 1 at L5." in labels
        assert "Seconds per stage: plan 50 ms, rewrite 2.0 s, check 1.0 s" in labels

    def test_a_published_mismatch_states_how_to_go_back(self) -> None:
        whole = document("a b", Outcome.MISMATCH)
        checked = replace(whole, expectations=replace(whole.expectations, status=CheckStatus.FAILED))
        text = Page(run_page(checked)).text
        assert "Version 43 is published and failed its check." in text
        assert "nightkeep release 'a b'" in text
        assert "CALL sys.rollback_to('shop.orders', 41)" in text

    def test_several_published_versions_that_failed_are_reported_together(self) -> None:
        checked = replace(clustered(), outcome=Outcome.MISMATCH, expectations=Expectations(CheckStatus.FAILED))
        assert "Versions 43 to 45 are published and failed their check." in Page(run_page(checked)).text

    def test_a_mismatch_caught_after_a_first_commit_states_what_readers_see(self) -> None:
        text = Page(run_page(document(outcome=Outcome.MISMATCH))).text
        assert "No unit that differs was published." in text
        assert "readers see version 43" in text
        assert "nightkeep release" not in text

    def test_several_commits_are_counted_and_each_is_reported(self) -> None:
        text = Page(run_page(clustered())).text
        assert "Committed versions 43 to 45, in 2 commits" in text
        assert "Commit 43 1 unit, on top of 42 Commit 45 1 unit, on top of 44" in text

    def test_clustering_and_what_each_column_got_from_it_are_shown(self) -> None:
        text = Page(run_page(clustered())).text
        assert "Clustering hilbert by lat, s.lon" in text
        assert "skip fewer files than before: ts." in text
        for row in (
            "lat 12% \u2192 82% 90.0 \u2192 12.2",
            "ts 90% \u2192 30% 2.0 \u2192 60.0 loses",
            "note 0% -",
            "kind - 3.0",
        ):
            assert row in text
        assert "Files that queries skip" not in Page(run_page(document())).text

    def test_a_caught_mismatch_states_that_nothing_happened(self) -> None:
        caught = replace(document(outcome=Outcome.MISMATCH), committed_version=None, commits=(), go_back=None)
        assert "Nothing was published. Readers still see version 41." in Page(run_page(caught)).text

    def test_the_worst_unit_comes_first_and_the_rest_is_counted(self) -> None:
        many = tuple(replace(UnitResult.of(PROOF, Outcome.VERIFIED), bucket=i) for i in range(250))
        bad = replace(many[0], bucket=777, outcome=Outcome.MISMATCH, equal=False)
        text = Page(run_page(replace(BARE, units=(*many, bad)))).text
        assert text.index("bucket-777") < text.index("bucket-0")
        assert "51 more units in the document." in text

    @pytest.mark.parametrize(("opened", "loses"), [((4.0, 1.5), False), ((4.0, 4.0), True), ((4.0, 6.0), True)])
    def test_a_column_that_opens_fewer_files_does_not_lose(self, opened: tuple[float, float], loses: bool) -> None:
        skipping = {"a": {"before": 0.9, "after": 0.0}}
        overlap = {"a": dict(zip(("before", "after"), opened, strict=True))}
        (change,) = column_changes({"skipping": skipping, "overlap": overlap})
        assert change.loses is loses

    def test_odd_figures_of_columns_are_not_shown(self) -> None:
        for odd in ("much", [1], {"a": 3}, {"a": {"before": "x", "after": True}}, {"a": {}}, None):
            assert column_changes({"skipping": odd, "overlap": odd}) == ()
            assert "skip" not in Page(run_page(replace(BARE, metrics=Metrics(extra={"skipping": odd})))).text

    def test_delete_files_are_reported_by_kind_where_there_are_any(self) -> None:
        found = {
            "before": {"equality": 1200, "position": 32, "vectors": 0},
            "after": {"equality": 0, "position": 40, "vectors": 0},
        }
        told = replace(document(), metrics=Metrics(extra={"delete_files": found}))
        assert "Delete files equality 1,200 -> 0, position 32 -> 40" in Page(run_page(told)).text
        assert "orders: delete files: equality 1,200 -> 0, position 32 -> 40" in summary_text((told,))
        for odd in ("many", {"before": found["before"]}, {"before": 1, "after": 2}, None):
            assert delete_files({"delete_files": odd}) == ""
            assert (
                "Delete files" not in Page(run_page(replace(BARE, metrics=Metrics(extra={"delete_files": odd})))).text
            )

    def test_odd_measurements_are_no_reason_to_fail(self) -> None:
        odd = {"file_sizes_before": "many", "file_sizes_after": [1, -1, None, True], "levels_before": [1], "lag": None}
        html = run_page(replace(BARE, outcome=Outcome.SKIPPED, metrics=Metrics(extra=odd)))
        assert "Files by size. Before: none. After: 1 at 1 KB." in html
        assert "Files by level" not in html

    def test_the_index_has_a_row_per_table_and_the_newest_run_first(self) -> None:
        old = document("a")
        new = replace(document("a", Outcome.CONFLICTED), run_id="nightly-2", started_at=NIGHT + timedelta(days=1))
        html = index_page(old, BARE, new)
        page = Page(html)
        assert "3 runs on 2 tables: 1 conflicted, 1 verified, 1 unchanged." in page.text
        linked = [attrs["href"] or "" for attrs in page.all("a") if not (attrs["href"] or "").startswith("#")]
        assert linked[-3:] == [f"pages/{run}.html" for run in ("nightly-2", "r", "nightly-1")]
        assert 'aria-label="verified, conflicted"' in html
        assert "No run has left a report yet." in index_page()


class TestLeftovers:
    def test_orphans_are_shown_by_kind_by_age_and_one_by_one(self) -> None:
        text = Page(run_page(swept())).text
        for expected in (
            "1 table: 1 verified. 1,202 orphan files, 4.0 MB, found; 1,201 files, 4.0 MB, in quarantine.",
            "Mode quarantine Orphans 1,202 files, 4.0 MB",
            "In quarantine 1,201 files, 4.0 MB Left, as they had changed 1 file, 12 B",
            "Purged from older quarantines 0 files, 0 B",
            "Live files 48,211 files Too young to be judged 17 files Of no kind we know, left alone 3 files",
            "Modified before 2026-11-14 02:00:04 UTC Finished what was cut short in weekly-0",
            "By kind Kind Files Bytes Share of bytes data 1,200 3.0 MB manifest 2 1.0 MB",
            "By age Age Files Bytes Share of bytes 7 to 30 days 1 1.0 MB 30 to 90 days 1,201 3.0 MB",
            "Could not be removed File Why t/bucket-0/busy.parquet 403 Forbidden",
            "The first 2 of 1,202. All are listed in reports/orphans-1.jsonl .",
            "s3://b/t/bucket-0/data-1.parquet data 3.0 MB 2026-10-01 10:00:00 UTC",
            "list 2.0 s live 1.0 s all stages 3.0 s",
        ):
            assert expected in text
        labels = [attrs.get("aria-label") for attrs in Page(run_page(swept())).all("svg")]
        assert "data: 75% of the bytes" in labels
        for absent in ("Rows proven 0", "Base version", "Deletion vectors", "Check of what was published"):
            assert absent not in text

    def test_files_in_quarantine_are_not_counted_as_gone(self) -> None:
        deleted = replace(swept(quarantine=None, mode="delete", acted={"files": 8, "bytes": 80}), table="b")
        page = Page(run_page(swept(), deleted, replace(EXPIRED, table="c"), replace(RESTORED, table="d")))
        assert (
            "2,404 orphan files, 8.0 MB, found; 15 files, 780 B, gone; 1,201 files, 4.0 MB, in quarantine; "
            "5 files, 50 B, restored."
        ) in page.text
        assert "shop.orders sweep verified 1,202 4.0 MB - 1,201" in page.text
        assert "b sweep verified 1,202 4.0 MB 8 -" in page.text

    def test_what_was_quarantined_names_the_command_that_brings_it_back(self) -> None:
        text = Page(run_page(swept("a b"))).text
        assert "1,201 files, 4.0 MB, quarantined in t/_nightkeep/quarantine/weekly-1 ." in text
        assert "nightkeep restore 'a b' 'weekly 1'" in text
        assert "to restore: nightkeep restore 'a b' 'weekly 1'" in summary_text([swept("a b")])

    @pytest.mark.parametrize(
        "found",
        [swept(quarantine=None), swept(acted=None), swept(acted={"files": 0, "bytes": 0}), EXPIRED, RESTORED],
        ids=["deleted", "told", "none", "expired", "restored"],
    )
    def test_what_is_not_away_is_not_to_be_restored(self, found: RunDocument) -> None:
        assert "nightkeep restore" not in Page(run_page(found)).text + summary_text([found])

    def test_an_expiry_states_what_went_and_why_the_rest_stays(self) -> None:
        text = Page(run_page(EXPIRED)).text
        for expected in (
            "1 table: 1 verified. 7 files, 700 B, gone.",
            "consumer c reads from 40 the table's reader has no time travel",
            "Files only these needed 7 files, 700 B Versions expired 29: 11 to 39",
            "41 tag end-of-month",
            "42 the latest",
        ):
            assert expected in text

    def test_what_readers_saw_before_and_after_is_shown_by_view(self) -> None:
        unit = replace(UnitResult.of(PROOF, Outcome.VERIFIED), partition="", bucket=None, extra={"view": "merged"})
        text = Page(run_page(replace(swept(), units=(unit,)))).text
        assert "What readers see, before and after" in text
        assert "merged verified 9 equal before 9:0000000000000001:0000000000000002 after 9:" in text

    def test_a_restore_states_what_came_back_and_what_is_in_the_way(self) -> None:
        text = Page(run_page(RESTORED)).text
        for expected in (
            "5 files, 50 B, restored.",
            "Restored 5 files, 50 B Of run weekly-0",
            "In the way of coming back, so left where they are File Why t/x.parquet another file is there",
        ):
            assert expected in text

    def test_rows_that_were_not_compared_are_not_counted_as_none(self) -> None:
        html = run_page(swept(), EXPIRED)
        assert "Rows proven" not in Page(html).text
        assert "Table Outcome Found Bytes Gone In quarantine list, s" in Page(html).text
        assert "shop.orders sweep verified 1,202 4.0 MB - 1,201 2.0" in Page(html).text
        assert 'data-label="Rows proven">0' not in html + index_page(swept(), EXPIRED)
        assert "rows proven." not in Page(html).text
        line = next(line for line in summary_text([swept()]).splitlines() if line.startswith("shop.orders"))
        assert line.split() == ["shop.orders", "sweep", "verified", "-", "-", "-", "2.0", "1.0", "3.0"]

    @pytest.mark.parametrize("status", CheckStatus)
    def test_what_nobody_looked_at_is_not_reported_as_there(self, status: CheckStatus) -> None:
        text = Page(run_page(replace(swept(), expectations=Expectations(status)))).text
        looked = status in (CheckStatus.PASSED, CheckStatus.FAILED)
        assert ("every file of every retained version was found" in text) is looked
        assert ("Nobody has looked since" in text) is not looked

    def test_a_night_of_both_states_both(self) -> None:
        text = Page(run_page(document(), swept())).text
        assert "shop.orders upgrade verified 14 \u2192 9 3.0 MB \u2192 2.0 MB 9 - - - - 0.1" in text
        assert "shop.orders sweep verified - - - 1,202 4.0 MB - 1,201 -" in text
        assert (
            "2 verified. 9 rows proven. 1,202 orphan files, 4.0 MB, found; 1,201 files, 4.0 MB, in quarantine." in text
        )

    def test_the_index_keeps_when_rows_were_last_proven(self) -> None:
        later = NIGHT + timedelta(days=2)
        text = Page(index_page(document(), replace(swept(), started_at=later))).text
        row = "verified sweep 2026-11-23 02:00 verified upgrade 2026-11-21 02:00 2026-11-21 02:00:04 UTC 14 \u2192 9 9"
        assert row in text
        assert "shop.orders sweep verified - - - 3.0" in text
        assert "never - -" in Page(index_page(swept())).text

    @pytest.mark.parametrize("odd", ["much", 3, [1], {"a": 3}, [{"path": 3}], {"files": "x"}, True, -1, 0.5])
    def test_odd_findings_are_no_reason_to_fail(self, odd: object) -> None:
        keys = [*swept().extra, "expired", "kept", "restored_run"]
        found = [replace(base, extra={**base.extra, key: odd}) for base in UPKEEP for key in keys]
        assert Page(run_page(*found)).text.count("By kind") >= len(UPKEEP)
        assert len(summary_text(found).splitlines()) > len(found)

    def test_a_refusal_that_looked_at_nothing_shows_no_zeros(self) -> None:
        refused = replace(swept(), outcome=Outcome.REFUSED, reason="clocks differ by 2 hours", extra={"mode": "delete"})
        text = Page(run_page(refused)).text
        assert "1 table: 1 refused. " in text
        assert "clocks differ by 2 hours" in text
        assert "shop.orders sweep refused - - - - 2.0" in text
        assert "0 files" not in text

    def test_a_table_that_reads_otherwise_is_held(self) -> None:
        text = Page(run_page(replace(swept(), outcome=Outcome.MISMATCH))).text
        assert "Readers do not see the rows they saw before." in text
        assert "nightkeep release shop.orders" in text

    def test_ages_are_in_order_and_the_last_has_no_end(self) -> None:
        ends = [end for _, end in AGES]
        assert ends[-1] is None
        known = [end for end in ends if end is not None]
        assert known == sorted(set(known))
        assert len(known) == len(ends) - 1


def test_the_summary_is_plain_aligned_text() -> None:
    conflicted = replace(document("lab", Outcome.CONFLICTED), reason="snapshot 43\n\x1b[31mappended")
    unchanged = replace(BARE, metrics=Metrics(files_before=1204, files_after=1204, seconds={"plan": 0.04}))
    verified = replace(document(), reason=None)
    assert summary_text((verified, conflicted, unchanged)) == dedent(
        """\
        table        operation  outcome       files             bytes  rows proven  plan s  rewrite s  check s  total s
        -----------  ---------  ----------  -------  ----------------  -----------  ------  ---------  -------  -------
        shop.orders  upgrade    verified    14 -> 9  3.0 MB -> 2.0 MB            9     0.1        2.0      1.0      3.0
        lab          upgrade    conflicted  14 -> 9  3.0 MB -> 2.0 MB            9     0.1        2.0      1.0      3.0
        t            upgrade    unchanged     1,204                 -            0     0.0          -        -      0.0

        lab: conflicted: snapshot 43??[31mappended

        3 tables: 1 conflicted, 1 verified, 1 unchanged. 18 rows proven."""
    )


def test_the_summary_reports_commits_and_of_columns() -> None:
    lines = summary_text((clustered(), replace(clustered("quiet"), commits=(), committed_version=None))).splitlines()
    notes = [line for line in lines if line.startswith(("events:", "quiet:"))]
    assert notes == [
        "events: 2 commits, versions 43 to 45",
        "events: hilbert by lat, s.lon; files skipped: lat 12% -> 82%, s.lon 10% -> 80%, ts 90% -> 30%, "
        "note 0% -> 0%; fewer than before on ts",
    ]


def test_the_dry_run_reports_the_order_of_rows() -> None:
    assert plan_text(clustered()).splitlines()[0] == "events: optimize of version 41, hilbert by lat, s.lon, 1 unit"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"outcome": Outcome.REFUSED, "reason": "no vectors", "base_version": None}, "upgrade refused: no vectors"),
        ({"outcome": Outcome.SKIPPED, "reason": "paused: wait", "base_version": None}, "upgrade skipped: paused: wait"),
        ({"outcome": Outcome.UNCHANGED, "reason": "nothing to do"}, "upgrade of version 41: unchanged: nothing to do"),
    ],
)
def test_the_dry_run_of_a_table_without_work_is_one_sentence(changes: dict[str, Any], text: str) -> None:
    assert plan_text(replace(document(), plan=PlanSection(), **changes)) == f"shop.orders: {text}"


def test_the_summary_of_a_delete_states_how_many_rows_it_hid_and_how_to_undo_it() -> None:
    deleted = replace(document(), operation=Operation.DELETE, go_back="RESTORE TABLE t TO VERSION AS OF 42")
    lines = summary_text((deleted,)).splitlines()
    assert "shop.orders: 3 rows hidden in deletion vectors" in lines
    assert "shop.orders: to undo this commit and every later one: RESTORE TABLE t TO VERSION AS OF 42" in lines


class TestColumns:
    @pytest.mark.parametrize(
        ("skipping", "overlap", "loses"),
        [
            ((0.5, 0.4), None, True),
            ((0.5, 0.5), None, False),
            ((0.5, 0.499), None, False),
            ((0.5, 0.6), (1, 9), False),
            (None, (1, 9), True),
            (None, (9, 1), False),
            (None, (1.0, 1.04), False),
            ((None, 0.4), None, False),
            (None, None, False),
        ],
    )
    def test_a_column_loses_when_its_queries_read_more(
        self, skipping: tuple[float, float] | None, overlap: tuple[float, float] | None, loses: bool
    ) -> None:
        found = ColumnChange(
            "a", BeforeAfter(*skipping) if skipping else None, BeforeAfter(*overlap) if overlap else None
        )
        assert found.loses is loses


def test_the_public_names_are_pinned() -> None:
    assert all(hasattr(nightkeep.pages, name) for name in nightkeep.pages.__all__)


def test_what_was_expected_to_be_skipped_stands_beside_what_is() -> None:
    measured = {"skipping": {"id": {"before": 0.1, "after": 0.81}, "ts": {"before": 0.0, "after": 0.5}}}
    predicted = Predicted(3, 300, 1.0, "no run yet", {"id": 0.9, "day": 0.4})
    metrics = Metrics(predicted=predicted, extra=measured)
    assert skipping_beside(metrics) == (("id", 0.9, 0.81), ("day", 0.4, None))
    assert skipping_beside(Metrics(extra=measured)) == ()
