"""Samples of the three formats -> how they are, from metadata alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from samples.working_copy import copy_tables, variables

from nightkeep.model import Operation, Outcome
from nightkeep.policy import PolicyFile, Settings, load
from nightkeep.records import RunDocument, store, table_documents
from nightkeep.running.inspection.table_status import TableStatus, past_metrics, read_status

NOW = datetime(2026, 11, 24, 2, tzinfo=UTC)
TABLES = {
    "shop.orders": "paimon:{0}/paimon/shop.db/orders",
    "shop.prices": "paimon:{0}/paimon/shop.db/prices",
    "shop.ledger": "paimon:{0}/paimon/shop.db/ledger",
    "shop.events": "paimon:{0}/paimon/shop.db/events_raw",
    "lake.clicks": "delta:{0}/delta/shop.db/clicks",
    "lake.gone": "delta:{0}/delta/shop.db/gone",
    "stream.orders": "iceberg:lake/shop.orders",
}


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PolicyFile:
    warehouse = tmp_path / "warehouse"
    copy_tables(warehouse)
    for variable, value in variables(tmp_path).items():
        monkeypatch.setenv(variable, value)
    entries = "".join(f"  - {{name: {name}, table: '{place.format(warehouse)}'}}\n" for name, place in TABLES.items())
    file = tmp_path / "tables.yaml"
    file.write_text(f"version: 1\ntables:\n{entries}", encoding="utf-8")
    return load(file)


def told(policy: PolicyFile, name: str) -> TableStatus:
    return read_status(policy.effective(name), str(Path(policy.file).parent / "reports"), now=NOW)


def known(found: TableStatus) -> Mapping[str, object]:
    unlisted = ("level0_age_ms", "nights_waited")
    return {name: value for name, value in found.metrics.items() if value is not None and name not in unlisted}


def test_a_delta_table(policy: PolicyFile) -> None:
    found = told(policy, "lake.clicks")
    assert known(found) == {
        "files": 43,
        "bytes": 205_923,
        "small_files": 43,
        "small_share": 1.0,
        "rows": 4_450,
        "deleted_rows": 761,
        "deleted_ratio": 0.171,
        "delete_files": 3,
        "versions": 17,
    }
    assert found.would is not None and found.would.operation is Operation.OPTIMIZE
    assert (found.would.files, found.why) == (5, "optimize: 43 files would become 5")
    assert found.score is not None and found.score > 1


def test_a_paimon_table_whose_readers_skip_level_0(policy: PolicyFile) -> None:
    found = told(policy, "shop.orders")
    assert known(found) == {
        "files": 30,
        "bytes": 184_454,
        "small_files": 30,
        "small_share": 1.0,
        "rows": 5_460,
        "deleted_rows": 240,
        "deleted_ratio": 0.044,
        "delete_files": 6,
        "level0_files": 18,
        "level0_bytes": 56_851,
        "level0_rows": 420,
        "sorted_runs": 5,
        "manifests": 7,
        "versions": 7,
    }
    age = found.metrics["level0_age_ms"]
    assert age is not None and age > 0
    assert found.would is not None and found.would.operation is Operation.UPGRADE


def test_level_0_of_other_paimon_tables_hides_no_row(policy: PolicyFile) -> None:
    for name, runs in (("shop.prices", 7), ("shop.events", None)):
        found = told(policy, name)
        assert found.metrics["level0_rows"] is None
        assert found.metrics["sorted_runs"] == runs
        assert found.would is not None and found.would.operation is Operation.OPTIMIZE


def test_an_iceberg_table_with_equality_deletes(policy: PolicyFile) -> None:
    found = told(policy, "stream.orders")
    assert known(found) == {
        "files": 44,
        "bytes": 184_962,
        "small_files": 44,
        "small_share": 1.0,
        "rows": 13_880,
        "deleted_rows": 142,
        "deleted_ratio": 0.0102,
        "delete_files": 32,
        "equality_files": 32,
        "equality_deletes": 1_938,
        "manifests": 19,
        "versions": 11,
    }
    assert found.would is not None and found.would.operation is Operation.PERSIST_DELETES
    assert found.would.files == 44


def test_a_table_without_work_has_no_score(policy: PolicyFile) -> None:
    found = told(policy, "shop.ledger")
    assert (found.score, found.would, found.why) == (None, None, "nothing to do")
    assert found.metrics["files"] == 2


def test_a_table_that_cannot_be_reported_has_the_reason(policy: PolicyFile) -> None:
    found = told(policy, "lake.gone")
    assert found.score is None and found.to_json()["would"] is None
    assert found.why.startswith("failed: ") and "expected the folder of a table, found none" in found.why


def document(operation: Operation, days: float, outcome: Outcome, **extra: object) -> RunDocument:
    ended = NOW - timedelta(days=days)
    return RunDocument(
        run_id=f"{days}",
        table="lake.clicks",
        format="delta",
        operation=operation,
        outcome=outcome,
        started_at=ended,
        finished_at=ended,
        versions={},
        extra=extra,
    )


def test_documents_report_the_last_run_and_orphans(policy: PolicyFile) -> None:
    runs = [
        document(Operation.OPTIMIZE, 9, Outcome.VERIFIED),
        document(Operation.OPTIMIZE, 2.5, Outcome.UNCHANGED),
        document(Operation.OPTIMIZE, 1, Outcome.FAILED),
    ]
    reports = Path(policy.file).parent / "reports"

    def past(name: str, *documents: RunDocument) -> Mapping[str, object]:
        for each in documents:
            store(replace(each, table=name), reports)
        return past_metrics(table_documents(reports, name), NOW)

    assert past("a", *runs) == {"days_since_run": 2.5, "nights_waited": 0, "orphans": None}
    left_out = [
        replace(document(Operation.OPTIMIZE, days, Outcome.SKIPPED), reason="budget: no") for days in (0.9, 0.8)
    ]
    assert past("a", *left_out) == {"days_since_run": 2.5, "nights_waited": 2, "orphans": None}
    assert past("a", document(Operation.UPGRADE, 0.1, Outcome.UNCHANGED))["nights_waited"] == 0
    swept = document(Operation.SWEEP, 3, Outcome.VERIFIED, orphans_total=7, mode="dry-run")
    assert past("b", swept) == {"days_since_run": None, "nights_waited": 0, "orphans": 7}
    removed = document(Operation.SWEEP, 2, Outcome.VERIFIED, orphans_total=7, mode="delete")
    assert past("b", removed)["orphans"] == 0
    for each in (*runs, swept):
        store(each, reports)
    assert told(policy, "lake.clicks").metrics["days_since_run"] == 2.5
    assert told(policy, "lake.clicks").metrics["orphans"] == 7


def test_what_keeps_a_run_from_starting_is_stated(policy: PolicyFile) -> None:
    chosen = policy.effective("lake.clicks")
    paused = type(chosen)(chosen.address, chosen.settings.model_copy(update={"pause": "a move"}), chosen.origins)
    found = read_status(paused, str(Path(policy.file).parent / "reports"), now=NOW)
    assert found.why == "optimize: 43 files would become 5; a run would be skipped now: paused: a move"
    assert found.score is not None


def test_an_operation_outside_its_window_gives_way_to_the_others(policy: PolicyFile) -> None:
    chosen, reports = policy.effective("stream.orders"), str(Path(policy.file).parent / "reports")
    of_day = {"persist-deletes": "10:00-16:00 UTC"}
    windowed = type(chosen)(chosen.address, Settings(window=of_day), chosen.origins)
    found, free = (read_status(each, reports, now=NOW) for each in (windowed, chosen))
    assert found.would is not None and found.would.operation is Operation.OPTIMIZE
    assert found.held_back is None and 0 < found.seconds < free.seconds
    both = type(chosen)(chosen.address, Settings(window={**of_day, "optimize": "10:00-16:00 UTC"}), chosen.origins)
    assert read_status(both, reports, now=NOW).held_back == "outside its window 10:00-16:00 UTC"
