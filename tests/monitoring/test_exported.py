"""Documents -> numbers, read by Prometheus' own parser of its text format."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.commands import said

from nightkeep import metrics
from nightkeep.errors import EvidenceError, UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.monitoring.exposition import exposition
from nightkeep.monitoring.families import Family, GaugeSample, families, run_figures
from nightkeep.monitoring.table_states import longest_lag, table_states
from nightkeep.records import Metrics, RunDocument, UnitResult, hold, store
from nightkeep.records.kept_index import read_index

NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)
Read = dict[tuple[str, frozenset[tuple[str, str]]], float]


def document(table: str, outcome: Outcome, days: int = 0, **more: object) -> RunDocument:
    at = NOW - timedelta(days=days)
    given: dict[str, object] = {"operation": Operation.OPTIMIZE, "run_id": f"night-{days}:{table}", **more}
    return RunDocument(table=table, format="delta", outcome=outcome, started_at=at, finished_at=at, **given)  # type: ignore[arg-type]


def keep(reports: Path, each: RunDocument) -> None:
    path = Path(store(each, reports))
    os.utime(path, (each.finished_at.timestamp(),) * 2)


def parsed(text: str) -> Read:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(read: Read, name: str, **labels: str) -> float | None:
    return read.get((f"nightkeep_{name}", frozenset(labels.items())))


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    proven = UnitResult(partition="", bucket=None, outcome=Outcome.VERIFIED, rows=70, base_fingerprint="a", equal=True)
    sizes = Metrics(
        files_before=9, files_after=2, bytes_before=900, bytes_after=500, seconds={"plan": 0.5, "rewrite": 2.25}
    )
    keep(tmp_path, document("a", Outcome.VERIFIED, 3, committed_version=7, units=(proven,), metrics=sizes))
    keep(tmp_path, document("b", Outcome.VERIFIED, 2, committed_version=7, units=(proven,), metrics=sizes))
    keep(tmp_path, document("b", Outcome.UNCHANGED, 1))
    keep(tmp_path, document("b", Outcome.FAILED, 0))
    keep(tmp_path, document("b", Outcome.UNCHANGED, 0, operation=Operation.UPGRADE))
    keep(tmp_path, document('c "\\\n', Outcome.MISMATCH, 1, committed_version=3))
    hold(tmp_path, 'c "\\\n', document('c "\\\n', Outcome.MISMATCH, 1, committed_version=3))
    return tmp_path


def test_prometheus_reads_what_the_documents_state(reports: Path) -> None:
    read = parsed(exposition(families(table_states(str(reports)), now=NOW)))
    counted = {each.value: value(read, "tables", outcome=each.value) for each in Outcome}
    assert counted == {**dict.fromkeys(map(str, Outcome), 0.0), "verified": 1, "failed": 1, "mismatch": 1}
    assert value(read, "holds") == 1 and value(read, "table_held", table='c "\\\n') == 1
    assert value(read, "table_held", table="a") is None
    assert value(read, "last_run_outcome", table="b", operation="optimize", outcome="failed") == 1
    assert value(read, "last_run_outcome", table="b", operation="upgrade", outcome="unchanged") == 1
    a = {"table": "a", "operation": "optimize"}
    assert value(read, "last_run_seconds", **a, stage="rewrite") == 2.25
    assert value(read, "last_run_bytes", **a, state="after") == 500
    assert value(read, "last_run_files", **a, state="before") == 9
    assert value(read, "last_run_rows_proven", **a) == 70


def test_times_are_those_of_the_newest_success_and_of_the_newest_verified_version(reports: Path) -> None:
    read = parsed(exposition(families(table_states(str(reports)), now=NOW)))
    day = 86_400.0
    at = {
        (table, what): value(read, f"last_{what}_timestamp_seconds", table=table)
        for table in ("a", "b", 'c "\\\n')
        for what in ("run", "success", "verified")
    }
    age = {key: None if found is None else (NOW.timestamp() - found) / day for key, found in at.items()}
    assert [age["a", what] for what in ("run", "success", "verified")] == [3, 3, 3]
    assert [age["b", what] for what in ("run", "success", "verified")] == [0, 0, 2]
    assert [age['c "\\\n', what] for what in ("run", "success", "verified")] == [1, None, None]
    assert value(read, "last_verified_age_seconds", table="b") == 2 * day


def test_the_text_is_of_the_format(reports: Path) -> None:
    text = exposition(families(table_states(str(reports)), now=NOW))
    lines = text.splitlines()
    assert text.endswith("\n") and "" not in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert names == [line.split()[2] for line in lines if line.startswith("# HELP")] and len(set(names)) == len(names)
    samples = [line for line in lines if not line.startswith("#")]
    assert len(parsed(text)) == len(samples)
    assert all(line.startswith("nightkeep_") for line in samples)


@pytest.mark.parametrize("number", [0, 3, 1 << 60, 0.1, 1e300, float("inf"), float("-inf")])
def test_numbers_are_read_as_written(number: float) -> None:
    text = exposition([Family("x", "a \\ help\nof two lines", (GaugeSample({}, number),))])
    assert parsed(text) == {("x", frozenset()): number}


def test_no_secret_is_in_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abcdef-very-secret")
    text = exposition([Family("x", "", (GaugeSample({"table": "delta:s3://k:abcdef-very-secret@b/x"}, 1),))])
    assert "abcdef" not in text and parsed(text)


def test_the_command_replaces_its_file_at_once_for_another_user_to_read(
    reports: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "collector" / "nightkeep.prom"
    out.parent.mkdir()
    out.write_text("old")
    given = ("--reports", str(reports))
    printed = said(capfd, "metrics", *given)
    written = said(capfd, "metrics", "--out", str(out), *given)
    assert (printed.status, written.status, written.out.strip()) == (0, 0, str(out))
    assert {key for key in parsed(out.read_text()) if "age" not in key[0]} == {
        key for key in parsed(printed.out) if "age" not in key[0]
    }
    assert stat.S_IMODE(out.stat().st_mode) == 0o644 and os.listdir(out.parent) == ["nightkeep.prom"]
    listed = said(capfd, "metrics", "--json", *given).json
    assert {"name": "nightkeep_holds", "labels": {}, "value": 1} in listed


def test_reports_that_are_not_there_and_a_place_that_cannot_be_written_are_sentences(
    reports: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="expected a folder of reports, found none"):
        metrics(reports=tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(EvidenceError, match=r"file/x.prom.*file that can be written"):
        metrics(reports=reports, out=tmp_path / "file" / "x.prom")


def test_the_lag_of_a_run_is_that_of_the_table_without_success_for_longest(reports: Path) -> None:
    documents = read_index(reports).documents
    states = {state.table: state.succeeded_at for state in table_states(str(reports))}
    ends = {table: end for table, end in states.items() if end is not None}
    assert len(set(ends.values())) > 1 and len(ends) < len(states)
    now = max(ends.values()) + timedelta(hours=1)
    assert longest_lag(documents, [*states], now) == (now - min(ends.values())).total_seconds()
    for table, end in states.items():
        assert longest_lag(documents, [table], now) == (None if end is None else (now - end).total_seconds())
    assert longest_lag(documents, [], now) is None


def test_the_figures_of_a_run_are_sums_over_its_documents(reports: Path) -> None:
    documents = [document for state in table_states(str(reports)) for document in state.last]
    figures = run_figures([Outcome.VERIFIED, Outcome.FAILED, Outcome.FAILED], documents, 4)
    assert figures == {
        **{f"tables.{each}": 0 for each in Outcome},
        "tables.verified": 1,
        "tables.failed": 2,
        "rows_proven": 70,
        "bytes_before": 900,
        "bytes_after": 500,
        "seconds.plan": 0.5,
        "seconds.rewrite": 2.25,
        "holds": 4,
    }
    assert run_figures([], [], 0)["rows_proven"] == 0
