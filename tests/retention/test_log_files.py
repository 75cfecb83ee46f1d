"""Documents of expiries about a table's log: what went, what only would, what failed, and what an audit still needs."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.formats.delta.dated_log import DAYS, DatedLog, commit_names
from tests.formats.delta.runs import files
from tests.retention.test_remove import Looking, without_spark

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.formats.delta import format as delta_format
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Fingerprint, Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import load
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.records.audit_marks import AuditedCommit, AuditMark, keep_audit_mark

__all__ = ["without_spark"]
SHORT = {"delta.logRetentionDuration": "interval 1 days", "delta.deletedFileRetentionDuration": "interval 1 days"}
NEWEST = DAYS - 1


@pytest.fixture
def log(tmp_path: Path) -> DatedLog:
    """A log of which all but the newest commit has expired. No file of the table may go."""
    log = DatedLog(tmp_path / "table", configuration=SHORT, keeps=True)
    log.grow()
    return log


def expired(
    log: DatedLog,
    mode: SweepMode = SweepMode.DELETE,
    *,
    engine: Looking | None = None,
    run_id: str = "weekly",
    plan: str | None = None,
) -> RunDocument:
    policy = load("none.yaml", text="version: 1").effective(f"delta:{log.folder}")
    order = Order(Operation.EXPIRE, run_id, f"{log.folder}-reports", removal=RemovalOptions(mode=mode))
    return run_one(policy, replace(order, expected_plan=plan), engine or Looking()).document


@pytest.mark.usefixtures("without_spark")
def test_a_log_alone_is_compared_before_and_after(log: DatedLog) -> None:
    engine = Looking()
    found = expired(log, engine=engine)
    assert (found.outcome, found.reason, found.expectations.status) == (Outcome.VERIFIED, None, CheckStatus.PASSED)
    assert found.extra["log"] == {
        "checkpoints": [NEWEST],
        "oldest": NEWEST,
        "removed": {"files": NEWEST, "bytes": found.extra["log"]["removed"]["bytes"]},  # type: ignore[index]
        "files": [f"_delta_log/{name}" for name in sorted(commit_names(0, NEWEST))],
    }
    assert (found.extra["changed"], found.extra["finished"], found.extra["expired"]) == (True, True, [])
    assert len(engine.asked) == 2 and found.units[0].equal
    assert str(found.extra["notes"][-1]).startswith(  # type: ignore[index]
        f"log: a checkpoint of version {NEWEST} and {NEWEST} files before version {NEWEST}, "
    )
    assert commit_names(0) & log.names == {f"{NEWEST:020d}.json"}
    again = expired(log, run_id="later")
    assert (again.outcome, again.extra["changed"]) == (Outcome.UNCHANGED, False)


@pytest.mark.usefixtures("without_spark")
def test_rows_that_read_otherwise_put_the_table_on_hold(log: DatedLog) -> None:
    found = expired(log, engine=Looking(Fingerprint(7, 1, 2), Fingerprint(6, 1, 2)))
    assert (found.outcome, found.expectations.status) == (Outcome.MISMATCH, CheckStatus.FAILED)


@pytest.mark.usefixtures("without_spark")
def test_files_go_before_the_log_that_names_them(tmp_path: Path) -> None:
    log = DatedLog(tmp_path / "table", configuration=SHORT)
    log.grow()
    found = expired(log)
    assert (found.outcome, found.reason) == (Outcome.VERIFIED, None)
    assert found.extra["acted"]["files"] == DAYS - 3  # type: ignore[index]
    # VACUUM START and END are two more commits.
    assert found.extra["log"]["checkpoints"] == [NEWEST, NEWEST + 2]  # type: ignore[index]
    assert commit_names(0, DAYS + 2) & log.names == commit_names(NEWEST, DAYS + 2)
    assert len(list(log.folder.glob("*.parquet"))) == 3


def test_a_dry_run_lists_and_its_plan_is_carried_out_or_none(
    log: DatedLog, without_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(log.folder)
    dry = expired(log, SweepMode.DRY_RUN, run_id="dry")
    assert dry.outcome is Outcome.SKIPPED
    assert str(dry.reason).startswith(
        f"dry run: of the log, a checkpoint of version {NEWEST} and {NEWEST} files before"
    )
    assert len(dry.extra["log"]["files"]) == NEWEST and not dry.extra["changed"]  # type: ignore[index]
    assert files(log.folder) == before
    other = expired(log, run_id="other", plan="0" * 32)
    assert (other.outcome, files(log.folder)) == (Outcome.SKIPPED, before)
    assert expired(log, plan=str(dry.extra["plan_digest"])).outcome is Outcome.VERIFIED


@pytest.mark.usefixtures("without_spark")
def test_quarantine_takes_no_log_file(log: DatedLog) -> None:
    found = expired(log, SweepMode.QUARANTINE)
    assert found.extra["log"]["removed"]["files"] == 0  # type: ignore[index]
    assert "log files are only removed, never quarantined: they stay" in found.extra["notes"]  # type: ignore[operator]
    assert commit_names(0) <= log.names


@pytest.mark.usefixtures("without_spark")
def test_a_failure_is_a_reason_and_nothing_is_lost(log: DatedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError("the store is down")

    with monkeypatch.context() as patched:
        patched.setattr(delta_format, "carry_out_upkeep", failing)
        found = expired(log)
    assert found.outcome is Outcome.FAILED and "the store is down" in str(found.reason)
    assert commit_names(0) <= log.names
    assert expired(log).outcome is Outcome.VERIFIED
    assert commit_names(0) & log.names == {f"{NEWEST:020d}.json"}


@pytest.mark.usefixtures("without_spark")
def test_the_log_since_the_last_audited_version_stays(log: DatedLog) -> None:
    now = datetime.now(UTC)
    commits = tuple(
        AuditedCommit(version=version, digest="", kind="WRITE", author="a", time_ms=0) for version in (19, 20)
    )
    address = f"delta:{log.folder}"
    keep_audit_mark(f"{log.folder}-reports", AuditMark(table=address, commits=commits, audited_at=now))
    found = expired(log)
    assert found.extra["log"]["oldest"] == 20  # type: ignore[index]
    assert commit_names(0) & log.names == commit_names(20)
