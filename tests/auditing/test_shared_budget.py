"""The audits of one run share a budget: those tables come first that were not audited for longest."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.auditing.delta_lake import DAY, Lake, two_days

import nightkeep
from nightkeep.commands.job import run_job
from nightkeep.model import Operation, Outcome
from nightkeep.nights.orders import order_audits
from nightkeep.policy import load
from nightkeep.records import load_history
from nightkeep.records.audit_spending import AuditSpending, add_audit_spending, audit_spending

NAMES = ("a", "b", "c")


def policy(folder: Path, budget: str) -> str:
    tables = "".join(f'  - {{name: {name}, table: "delta:{folder}/{name}/clicks"}}\n' for name in NAMES)
    file = folder / "tables.yaml"
    file.write_text(f"version: 1\naudit_budget: {budget}\ntables:\n{tables}")
    return str(file)


@pytest.fixture
def lakes(tmp_path: Path) -> dict[str, Lake]:
    """Tables that were audited, `b` the longest ago and then `c`, and that somebody has compacted since."""
    found = {name: two_days(tmp_path / name) for name in NAMES}
    reports, file = tmp_path / "reports", policy(tmp_path, "{bytes: 1B}")
    for place, name in enumerate(("b", "c", "a")):
        assert nightkeep.audit(name, policy=file, reports=reports, since="3650d").outcome is not Outcome.MISMATCH
        os.utime(reports / f"~audits/{name}.json", (1_000_000_000 + place,) * 2)
    for lake in found.values():
        lake.compact()
    return found


def audit_all(folder: Path, prefix: str) -> list[tuple[str, str, str]]:
    """The tables in the order of their audits, with outcome and reason."""
    file, reports = str(folder / "tables.yaml"), str(folder / "reports")
    tables = [each.name for each in order_audits(load(file), reports).tables]
    places = ["--policy", file, "--reports", reports, "--result", str(folder / f"{prefix}.json")]
    job = [*places, "--run-id-prefix", prefix, "--tables", ",".join(tables), "--one-by-one"]
    assert run_job(job, operations=(Operation.AUDIT,)) == 0
    entries = json.loads((folder / f"{prefix}.json").read_text())
    return [(entry["table"], entry["outcome"], entry["reason"]) for entry in entries]


def test_what_one_run_does_not_reach_is_first_in_the_next(tmp_path: Path, lakes: dict[str, Lake]) -> None:
    reached = []
    for night in range(3):
        (first, outcome, _), *rest = audit_all(tmp_path, f"night-{night}")
        assert outcome == "verified"
        reached.append(first)
        skipped = [reason for _, outcome, reason in rest if outcome == "skipped"]
        assert len(skipped) == 2
        for reason in skipped:
            assert reason.startswith("audit_budget.bytes: the audits of this run have read ")
            assert "; last audited at 20" in reason
        lakes[first].made.append(DAY, range(900, 905))
        lakes[first].compact()
    assert reached == ["b", "c", "a"]


def test_a_retry_audits_no_table_again(tmp_path: Path, lakes: dict[str, Lake]) -> None:
    first = audit_all(tmp_path, "night")
    spent = audit_spending(tmp_path / "reports", "night")
    assert spent.bytes > 0
    again = {table: outcome for table, outcome, _ in audit_all(tmp_path, "night")}
    assert again["b"] == "verified" == first[0][1]
    assert audit_spending(tmp_path / "reports", "night").bytes == spent.bytes


def test_time_is_shared_as_well(tmp_path: Path, lakes: dict[str, Lake]) -> None:
    policy(tmp_path, "{time: 1h}")
    add_audit_spending(tmp_path / "reports", "late", AuditSpending(time_ms=3_600_000))
    assert {outcome for _, outcome, _ in audit_all(tmp_path, "late")} == {"skipped"}
    assert [outcome for _, outcome, _ in audit_all(tmp_path, "next")] == ["verified"] * 3
    took = audit_spending(tmp_path / "reports", "next")
    assert 0 < took.time_ms < 600_000


def test_without_a_shared_budget_nothing_is_kept_of_it(tmp_path: Path, lakes: dict[str, Lake]) -> None:
    policy(tmp_path, "null")
    assert [table for table, _, _ in audit_all(tmp_path, "night")] == [*NAMES]
    assert not (tmp_path / "reports/~spent").exists()
    assert {document.outcome for name in NAMES for document in load_history(tmp_path / "reports", name)[-1:]} == {
        Outcome.VERIFIED
    }


def test_jobs_add_to_one_figure_at_the_same_time(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        adds = [pool.submit(add_audit_spending, tmp_path, "run", AuditSpending(bytes=3, time_ms=2)) for _ in range(20)]
        for each in adds:
            each.result()
    assert audit_spending(tmp_path, "run") == AuditSpending(bytes=60, time_ms=40)


def test_damaged_figures_count_as_nothing(tmp_path: Path) -> None:
    add_audit_spending(tmp_path, "run", AuditSpending(bytes=3))
    (tmp_path / "~spent/run.json").write_text("{")
    assert audit_spending(tmp_path, "run") == AuditSpending()
