"""Documents, their files, holds, and the names of files."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nightkeep.records
from nightkeep.errors import CorruptMetadata
from nightkeep.model import (
    Address,
    Clustering,
    Curve,
    Estimate,
    Fingerprint,
    Operation,
    Outcome,
    Plan,
    PlannedUnit,
    TaskCost,
    UnitKey,
    UnitProof,
    VerifyLevel,
    VersionIdentity,
)
from nightkeep.pages import Links, Overview, render_index
from nightkeep.records import (
    CheckStatus,
    CommitResult,
    Expectations,
    ExpectationSummary,
    Metrics,
    PlanSection,
    PlanUnit,
    RunDocument,
    UnitEstimate,
    UnitResult,
    Verification,
    held,
    hold,
    load_document,
    load_history,
    read_history,
    release,
    slug,
    store,
    write_page,
)

NIGHT = datetime(2026, 11, 21, 2, 0, 4, tzinfo=UTC)
PROOF = UnitProof(UnitKey("dt=1", 0), Fingerprint(9, 1, 2), Fingerprint(9, 1, 2), (), TaskCost(1.0, 1.0, 1, "e"))


def document(table: str = "shop.orders", outcome: Outcome = Outcome.VERIFIED) -> RunDocument:
    """A document in which every field is filled."""
    return RunDocument(
        run_id="nightly-1",
        table=table,
        format="paimon",
        operation=Operation.UPGRADE,
        outcome=outcome,
        reason="because",
        base_version=41,
        parent_version=42,
        committed_version=43,
        commits=(CommitResult(43, 42, (UnitKey("dt=1", 0), UnitKey("", None)), "43:0a:1b"),),
        plan=PlanSection(
            41,
            (PlanUnit("dt=1", 0, "2 L0 files", ("a.parquet", "b.parquet"), 2048, UnitEstimate(2048, 1024, 1, "less")),),
            ("key-only lookup",),
        ),
        units=(
            UnitResult.of(PROOF, Outcome.VERIFIED),
            UnitResult("dt=1", 1, Outcome.CONFLICTED, "snapshot 42 compacted it"),
        ),
        verification=Verification(VerifyLevel.FULL, 0.5),
        metrics=Metrics(
            files_before=14,
            files_after=9,
            bytes_before=3 << 20,
            bytes_after=2 << 20,
            rows=9,
            deleted_rows_marked=3,
            deletion_vectors=1,
            peak_task_memory=300 << 20,
            seconds={"rewrite": 2.0, "plan": 0.05, "check": 1.0},
            extra={
                "file_sizes_before": [10, 5000, 5000],
                "file_sizes_after": [10010],
                "levels_before": {"0": 2, "5": 1},
                "levels_after": {"5": 1},
                "lookup": "key columns",
            },
        ),
        expectations=Expectations(
            CheckStatus.ERRORED,
            (
                ExpectationSummary("rows are as many", CheckStatus.PASSED, "9"),
                ExpectationSummary("sums agree", CheckStatus.FAILED, "1 of 2 units"),
                ExpectationSummary("no key twice", CheckStatus.ERRORED, "no such column"),
            ),
            docs="docs/index.html",
            coverage="1 of 2 touched units",
        ),
        versions={"nightkeep": "0.1.0"},
        address="paimon:/w/shop.db/orders",
        started_at=NIGHT,
        finished_at=NIGHT + timedelta(seconds=9),
        go_back="CALL sys.rollback_to('shop.orders', 41)",
    )


BARE = RunDocument(
    run_id="r",
    table="t",
    format="paimon",
    operation=Operation.UPGRADE,
    outcome=Outcome.UNCHANGED,
    started_at=NIGHT,
    finished_at=NIGHT,
)


def clustered(table: str = "events") -> RunDocument:
    """An optimize in two commits that helped two columns, cost another, and left one alone."""
    skipping = {
        "lat": {"before": 0.12, "after": 0.82},
        "s.lon": {"before": 0.1, "after": 0.8},
        "ts": {"before": 0.9, "after": 0.3},
        "note": {"before": 0.0, "after": 0.0},
    }
    overlap = {"lat": {"before": 90.0, "after": 12.25}, "ts": {"before": 2.0, "after": 60.0}, "kind": {"after": 3}}
    whole = document(table)
    return replace(
        whole,
        operation=Operation.OPTIMIZE,
        reason=None,
        commits=(CommitResult(43, 42, (UnitKey("dt=1"),)), CommitResult(45, 44, (UnitKey("dt=2"),))),
        committed_version=45,
        plan=replace(whole.plan, clustering=Clustering(("lat", "s.lon"), Curve.HILBERT, 64, noise=True)),
        metrics=replace(whole.metrics, extra={**whole.metrics.extra, "skipping": skipping, "overlap": overlap}),
    )


class TestDocument:
    @pytest.mark.parametrize("value", [document(), BARE, clustered()])
    def test_json_and_back(self, value: RunDocument) -> None:
        assert RunDocument.from_json(json.loads(json.dumps(value.to_json()))) == value

    def test_the_contract_names_come_first_and_in_order(self) -> None:
        found = document().to_json()
        assert list(found)[:15] == [
            "run_id",
            "table",
            "format",
            "operation",
            "outcome",
            "reason",
            "base_version",
            "parent_version",
            "committed_version",
            "commits",
            "plan",
            "units",
            "verification",
            "metrics",
            "expectations",
        ]
        assert found["commits"] == [
            {
                "version": 43,
                "parent_version": 42,
                "units": [{"partition": "dt=1", "bucket": 0}, {"partition": "", "bucket": None}],
                "identity": "43:0a:1b",
                "parent_identity": None,
            }
        ]
        plain = json.loads(json.dumps(found))
        assert list(plain["plan"]["units"][0]) == [
            "partition",
            "bucket",
            "reason",
            "input_files",
            "input_bytes",
            "estimate",
        ]
        assert list(plain["units"][0])[:8] == [
            "partition",
            "bucket",
            "outcome",
            "reason",
            "rows",
            "base_fingerprint",
            "candidate_fingerprint",
            "equal",
        ]
        assert list(plain["verification"]) == ["level", "share_of_rewrite"]
        assert list(plain["expectations"])[:3] == ["status", "results", "docs"]

    def test_what_an_operation_measures_stands_beside_the_other_metrics(self) -> None:
        found = document().to_json()["metrics"]
        assert isinstance(found, dict)
        assert found["lookup"] == "key columns"
        assert "extra" not in found

    @pytest.mark.parametrize(
        "path",
        [
            (),
            ("plan",),
            ("plan", "units", 0),
            ("plan", "units", 0, "estimate"),
            ("units", 0),
            ("commits", 0),
            ("verification",),
            ("metrics",),
            ("expectations",),
            ("expectations", "results", 0),
        ],
    )
    def test_unknown_keys_survive_at_every_place(self, path: tuple[str | int, ...]) -> None:
        text = json.loads(json.dumps(document().to_json()))
        place = text
        for part in path:
            place = place[part]
        place["from_the_future"] = {"deep": [1, None, "x"]}
        assert json.loads(json.dumps(RunDocument.from_json(text).to_json())) == text

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"outcome": "fine"}, "report.outcome: expected unchanged, skipped, verified"),
            ({"started_at": "yesterday"}, "report.started_at: expected an ISO 8601 time, found 'yesterday'"),
            ({"started_at": "2026-11-21T02:00:00"}, "started_at: expected a time with a zone"),
            ({"base_version": "41"}, "report.base_version: expected int, found str '41'"),
            ({"base_version": True}, "report.base_version: expected int, found bool True"),
            ({"units": {}}, "report.units: expected list, found dict {}"),
            ({"units": [{}]}, "report.units[0]: expected the keys partition, bucket, outcome, found none"),
            ({"metrics": {"seconds": {"plan": "1"}}}, "report.metrics.seconds.plan: expected float, found str"),
            ({"metrics": {"seconds": {"plan": True}}}, "report.metrics.seconds.plan: expected int, found bool"),
            ({"table": None}, "report.table: expected str, found NoneType"),
        ],
    )
    def test_what_is_no_report_is_named(self, change: dict[str, object], message: str) -> None:
        with pytest.raises(CorruptMetadata) as caught:
            RunDocument.from_json(document().to_json() | change)
        assert message in str(caught.value)

    def test_whole_numbers_are_seconds_too(self) -> None:
        text = BARE.to_json() | {"metrics": {"seconds": {"plan": 1}}}
        assert RunDocument.from_json(text).metrics.seconds == {"plan": 1.0}

    def test_times_without_a_zone_are_refused(self) -> None:
        with pytest.raises(ValueError, match="finished_at: expected a time with a zone"):
            replace(BARE, finished_at=datetime(2026, 1, 1))

    def test_rows_are_proven_only_where_nothing_is_at_fault(self) -> None:
        wrong = UnitResult.of(replace(PROOF, candidate=Fingerprint(9, 1, 3)), Outcome.MISMATCH)
        faulty = UnitResult.of(replace(PROOF, faults=("max of price is too small",)), Outcome.MISMATCH)
        good = UnitResult.of(PROOF, Outcome.VERIFIED)
        assert (wrong.equal, faulty.equal, good.equal) == (False, True, True)
        assert replace(BARE, units=(wrong, faulty, good)).rows_proven == 9

    def test_a_plan_becomes_its_section(self) -> None:
        unit = PlannedUnit(
            UnitKey("dt=1", 2), "3 L0 files", ("a",), 7, Estimate(7, 5, 1, "visible", -2, -9), tasks=(object(),)
        )
        plan = Plan(Address("paimon", "/w", "t"), Operation.UPGRADE, VersionIdentity(4, "0a"), (unit,), ("a note",))
        estimate = UnitEstimate(7, 5, 1, "visible", -2, -9)
        assert PlanSection.of(plan) == PlanSection(
            4, (PlanUnit("dt=1", 2, "3 L0 files", ("a",), 7, estimate),), ("a note",)
        )


class TestStore:
    def test_storing_twice_leaves_one_file(self, tmp_path: Path) -> None:
        first = Path(store(document(), tmp_path))
        assert store(document(), tmp_path) == str(first)
        assert first == tmp_path / "shop.orders" / "nightly-1-upgrade.json"
        assert [path for path in tmp_path.rglob("*.json") if path.is_file()] == [first]
        assert load_document(first) == document()

    def test_a_later_word_replaces_an_earlier_one(self, tmp_path: Path) -> None:
        store(document(), tmp_path)
        store(document(outcome=Outcome.MISMATCH), tmp_path)
        assert [d.outcome for d in load_history(tmp_path)] == [Outcome.MISMATCH]

    def test_a_failed_write_leaves_the_old_document_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = Path(store(document(), tmp_path))

        def no_space(descriptor: int) -> None:
            raise OSError("No space left on device")

        monkeypatch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space"):
            store(document(outcome=Outcome.FAILED), tmp_path)
        assert load_document(path) == document()
        assert list(path.parent.iterdir()) == [path]

    def test_history_is_sorted_by_time_and_filtered_by_table(self, tmp_path: Path) -> None:
        late = replace(document("b"), run_id="x", started_at=NIGHT.astimezone(timezone(timedelta(hours=9))))
        early = replace(document("b"), run_id="y", started_at=NIGHT - timedelta(seconds=1))
        other = replace(document("a"), started_at=NIGHT + timedelta(seconds=1))
        for found in (late, other, early):
            store(found, tmp_path)
        hold(tmp_path, "b", late)
        write_page(tmp_path, "x", "<p>")
        assert load_history(tmp_path) == (early, late, other)
        assert load_history(tmp_path, "b") == (early, late)
        assert load_history(tmp_path, "nobody") == ()
        assert load_history(tmp_path / "nowhere") == ()

    def test_the_newest_of_each_table_are_read_and_the_others_counted(self, tmp_path: Path) -> None:
        for table, nights in (("a", 5), ("b", 2)):
            for night in range(nights):
                path = store(replace(document(table), run_id=f"night-{night}"), tmp_path)
                os.utime(path, (night, night))
        found = read_history(tmp_path, newest=2)
        assert sorted((each.table, each.run_id) for each in found.documents) == [
            ("a", "night-3"),
            ("a", "night-4"),
            ("b", "night-0"),
            ("b", "night-1"),
        ]
        assert (found.older, read_history(tmp_path).older) == (3, 0)
        text = render_index(Overview(found.documents, older=found.older), title="t", generated_at=NIGHT, links=Links())
        assert "The newest runs of each table: " in text and "3 older runs are with the reports." in text

    def test_a_damaged_document_is_named(self, tmp_path: Path) -> None:
        path = Path(store(document(), tmp_path))
        path.write_text(path.read_text()[:100])
        with pytest.raises(CorruptMetadata, match=r"nightly-1-upgrade\.json: expected JSON"):
            load_history(tmp_path)

    @pytest.mark.parametrize(
        "table", ["holds", "pages", "Holds", "../../etc", ".", "..", "", "a/b", "a\udcffb", "x" * 4000]
    )
    def test_every_table_has_a_folder_of_its_own(self, tmp_path: Path, table: str) -> None:
        path = Path(store(document(table), tmp_path))
        assert path.parent.parent == tmp_path
        assert load_history(tmp_path, table) == load_history(tmp_path) == (document(table),)
        assert hold(tmp_path, table, document(table)) == held(tmp_path, table)

    def test_pages_are_files_too(self, tmp_path: Path) -> None:
        page = Path(write_page(tmp_path, "Night 1", "<p>\u00e9\udcff</p>"))
        assert page.read_bytes() == b"<p>\xc3\xa9\\udcff</p>"


class TestHolds:
    def test_a_hold_stays_until_it_is_released(self, tmp_path: Path) -> None:
        assert held(tmp_path, "shop.orders") is None
        placed = hold(tmp_path, "shop.orders", document(outcome=Outcome.MISMATCH))
        assert held(tmp_path, "shop.orders") == placed
        assert (placed.base_version, placed.committed_version) == (41, 43)
        assert placed.go_back == "CALL sys.rollback_to('shop.orders', 41)"
        assert held(tmp_path, "shop.order") is None
        assert release(tmp_path, "shop.orders") == placed
        assert held(tmp_path, "shop.orders") is None
        assert release(tmp_path, "shop.orders") is None

    def test_an_unreadable_marker_still_holds(self, tmp_path: Path) -> None:
        hold(tmp_path, "t", document("t"))
        (tmp_path / "holds" / "t.json").write_text("{")
        with pytest.raises(CorruptMetadata):
            held(tmp_path, "t")


class TestSlugs:
    names = st.text(alphabet=st.characters(), max_size=40) | st.text(alphabet="aA~.%/ -5f", max_size=200)

    @given(names, names)
    def test_two_texts_never_share_a_file_even_where_case_is_folded(self, one: str, other: str) -> None:
        assert (slug(one).casefold() == slug(other).casefold()) == (one == other)

    @given(names)
    def test_names_are_safe_everywhere(self, text: str) -> None:
        assert re.fullmatch(r"[a-z0-9_~-][a-z0-9._~-]{0,159}", slug(text))

    def test_plain_names_stay_readable(self) -> None:
        assert slug("shop.events_input") == "shop.events_input"
        assert slug("a B/\u00e9%") == "a~20~42~2f~c3~a9~25"


def test_the_public_names_are_pinned() -> None:
    assert all(hasattr(nightkeep.records, name) for name in nightkeep.records.__all__)
