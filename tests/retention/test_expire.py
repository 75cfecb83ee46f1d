"""Documents of expiries: what went and what stayed, what a death leaves to be told, what is looked at afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.retention.test_expire_versions import GONE, LEFT, Expiring
from tests.retention.test_remove import Looking, without_spark

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.formats.memory.format import table_of
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Address, Fingerprint, Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import CheckStatus, RunDocument, held, load_document

__all__ = ["without_spark"]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Expiring:
    found = Expiring.at(tmp_path / "toy")
    found.write("data/1.dat", "data/12.dat", "data/23.dat", "data/3.dat", "data/young.dat")
    found.commit(1, "data/1.dat", "data/12.dat")
    found.commit(2, "data/12.dat", "data/23.dat")
    found.commit(3, "data/23.dat", "data/3.dat")
    opened = replace(table_of(Address("memory", "toy", "toy")), retention=found.retention)
    monkeypatch.setattr("nightkeep.retention.remove.open_table", lambda address: opened)
    monkeypatch.setattr("nightkeep.retention.check_afterwards.open_table", lambda address: opened)
    return found


def expired(
    table: Expiring,
    mode: SweepMode | None = None,
    *,
    engine: Looking | None = None,
    run_id: str = "night",
    plan: str | None = None,
) -> RunDocument:
    policy = EffectivePolicy(Address("delta", str(table.folder), "toy"), Settings(), {})
    order = Order(Operation.EXPIRE, run_id, f"{table.folder}-reports", removal=RemovalOptions(mode=mode))
    order = replace(order, expected_plan=plan)
    return run_one(policy, order, engine or Looking()).document


def test_what_went_and_what_stayed_is_reported(table: Expiring) -> None:
    found = expired(table)
    assert (found.outcome, found.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED)
    assert (found.extra["mode"], found.extra["expired"]) == ("delete", [1, 2])
    assert found.extra["kept"] == [{"version": "meta/s-3.json", "reason": "kept"}]
    assert (found.extra["orphans_total"], found.extra["acted"]["files"]) == (len(GONE), len(GONE))  # type: ignore[index]
    assert len(Path(str(found.extra["orphans_file"])).read_text().splitlines()) == len(GONE)
    assert table.files().keys() == LEFT


def test_a_dry_run_reports_the_same_and_asks_nobody(table: Expiring) -> None:
    before, engine = table.files(), Looking()
    found = expired(table, SweepMode.DRY_RUN, engine=engine)
    assert (found.outcome, found.extra["expired"], found.extra["changed"]) == (Outcome.SKIPPED, [1, 2], False)
    assert (table.files(), engine.asked) == (before, [])


def test_what_was_listed_expires(table: Expiring) -> None:
    listed = expired(table, SweepMode.DRY_RUN, run_id="listed")
    found = expired(table, plan=str(listed.extra["plan_digest"]))
    assert (found.outcome, found.extra["expired"], table.files().keys()) == (Outcome.VERIFIED, [1, 2], LEFT)


def test_nothing_expires_if_another_list_was_shown(table: Expiring) -> None:
    listed = expired(table, SweepMode.DRY_RUN, run_id="listed")
    table.write("data/4.dat")
    table.commit(4, "data/3.dat", "data/4.dat")
    before = table.files()
    found = expired(table, plan=str(listed.extra["plan_digest"]))
    assert (found.outcome, table.files()) == (Outcome.SKIPPED, before)
    assert str(found.reason).startswith("the plan is not the one that was shown")


def test_a_lost_race_reports_that_nothing_went(table: Expiring) -> None:
    table.first = [lambda: True] * 3
    found = expired(table)
    assert (found.outcome, found.extra["expired"], found.expectations.status) == (
        Outcome.CONFLICTED,
        [],
        CheckStatus.NOT_RUN,
    )


def test_other_rows_afterwards_hold_the_table(table: Expiring) -> None:
    found = expired(table, SweepMode.QUARANTINE, engine=Looking(Fingerprint(1, 1, 1), Fingerprint(1, 1, 2)))
    assert (found.outcome, found.go_back) == (Outcome.MISMATCH, "nightkeep restore toy night")
    assert held(f"{table.folder}-reports", "toy") is not None


def test_a_death_after_the_forget_is_reported_and_a_retry_goes_on(table: Expiring) -> None:
    def dies() -> None:
        raise KeyboardInterrupt

    table.after = dies
    with pytest.raises(KeyboardInterrupt):
        expired(table)
    (path,) = Path(f"{table.folder}-reports").glob("*/*.json")
    left = load_document(path)
    assert (left.outcome, left.extra["expired"]) == (Outcome.FAILED, [1, 2])
    table.after = lambda: None
    engine = Looking()
    again = expired(table, engine=engine)
    assert (again.outcome, again.extra["expired"], again.expectations.status) == (
        Outcome.VERIFIED,
        [1, 2],
        CheckStatus.PASSED,
    )
    assert engine.asked == [5]
    assert "went on where an earlier attempt had ended" in str(again.reason)
    assert table.files().keys() == LEFT | GONE, "they are for the next sweep"


def test_what_is_done_is_reported_again(table: Expiring) -> None:
    first = expired(table)
    table.commit(4, "data/3.dat")
    assert expired(table) == first
    assert expired(table, run_id="next").extra["expired"] == [3]


def test_where_no_file_is_left_to_go_nothing_is_looked_at(table: Expiring) -> None:
    table.files_only = True
    engine = Looking()
    found = expired(table, engine=engine)
    assert (found.outcome, found.reason, engine.asked) == (Outcome.UNCHANGED, "no file may go", [])
    assert [found.extra[name] for name in ("changed", "expired")] == [False, []]
    assert found.expectations.status is CheckStatus.NOT_RUN
