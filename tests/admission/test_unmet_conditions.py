"""`when:` in a run: a night leaves a table alone that is well enough, and a caller who names an operation is served."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from samples.working_copy import copy_tables

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.admission.reasons import Opened, case_of, reason_to_skip, too_long
from nightkeep.errors import PolicyError
from nightkeep.estimates.prediction import predict
from nightkeep.formats import open_table
from nightkeep.model import Operation, Outcome, Request
from nightkeep.policy import load
from nightkeep.records import RunDocument, store
from nightkeep.running.rewrites.planning import opened_for
from nightkeep.stages.plan import plan


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    copy_tables(tmp_path / "warehouse")
    return tmp_path


def policy(folder: Path, when: str) -> Path:
    file = folder / "tables.yaml"
    table = f"{{name: clicks, table: 'delta:{folder}/warehouse/delta/shop.db/clicks', when: {when}}}"
    file.write_text(f"version: 1\ndefaults: {{check: {{enabled: false}}}}\ntables:\n  - {table}\n", encoding="utf-8")
    return file


def planned(folder: Path, when: str, *, operation: str | None = None) -> tuple[Outcome, tuple[str, ...]]:
    (document,) = nightkeep.plan("clicks", policy=policy(folder, when), operation=operation).documents
    return document.outcome, document.plan.notes


def test_a_plan_states_why_a_run_would_not_start(clicks: Path) -> None:
    outcome, notes = planned(clicks, "small_files > 100")
    assert outcome is Outcome.SKIPPED
    assert notes == ("a run would be skipped now: when: expected small_files > 100, found small_files 43",)
    assert planned(clicks, "small_files > 40")[1] == ()
    assert planned(clicks, "small_files > 100", operation="optimize")[1] == ()


def test_a_run_leaves_the_table_alone(clicks: Path) -> None:
    (document,) = nightkeep.run("clicks", policy=policy(clicks, "small_files > 1000")).documents
    assert document.outcome is Outcome.SKIPPED and document.committed_version is None
    assert document.reason == "when: expected small_files > 1000, found small_files 43"
    assert document.plan.units, "the plan says what was left"


@pytest.mark.parametrize(
    ("when", "fault"),
    [
        ("smallfiles > 1", "expected a known metric in smallfiles > 1, found smallfiles; did you mean small_files?"),
        ("level0_rows > 1", "expected metrics for clicks, a table of delta, found level0_rows > 1, which never holds"),
        ("{upgrade: files > 1}", "expected operations that are run on clicks, a table of delta (optimize)"),
    ],
)
def test_a_condition_that_never_holds_is_a_fault(clicks: Path, when: str, fault: str) -> None:
    file = policy(clicks, when)
    (found,) = nightkeep.validate(policy=file).faults
    assert found.startswith(f"{file}:4: ") and fault in found
    with pytest.raises(PolicyError, match=r"tables\.yaml:4: "):
        nightkeep.run("clicks", policy=file)


def test_documents_count_too(clicks: Path) -> None:
    assert "found days_since_run has no value" in planned(clicks, "days_since_run > 3")[1][0]
    then = datetime(2026, 1, 1, tzinfo=UTC)
    store(
        RunDocument(
            run_id="then",
            table="clicks",
            format="delta",
            operation=Operation.OPTIMIZE,
            outcome=Outcome.UNCHANGED,
            started_at=then,
            finished_at=then,
            versions={},
        ),
        clicks / "reports",
    )
    assert planned(clicks, "days_since_run > 3")[1] == ()


def test_rows_are_deleted_on_any_health(clicks: Path) -> None:
    chosen = load(policy(clicks, "files > 1000")).effective("clicks")
    table = open_table(chosen.address)
    base, request = table.snapshot(), Request(Operation.DELETE, 0)
    planned = plan(table, base, Request(Operation.OPTIMIZE, 0))

    def why(**asked: object) -> str | None:
        order = Order(Operation.DELETE, "run", str(clicks), **asked)  # type: ignore[arg-type]
        opened = opened_for(chosen, order, table, base, request, predict(planned, base.sizes))
        case = case_of(chosen, order, datetime(2026, 1, 1, tzinfo=UTC))
        return reason_to_skip(replace(case, opened=opened))

    assert why() == "when: expected files > 1000, found files 43"
    assert why(rows="user_id = 7") is why(keys=clicks / "keys.csv") is why(named=True) is None


@pytest.mark.parametrize(
    ("window", "hour", "seconds", "fits"),
    [
        ("02:00-06:00 UTC", 5, 3_600, True),
        ("02:00-06:00 UTC", 5, 3_601, False),
        ("22:00-06:00 UTC", 23, 25_200, True),
        ("22:00-06:00 UTC", 23, 25_201, False),
        ("22:00-06:00 UTC", 1, 18_001, False),
        # In the night of 25 October 2026, Berlin has the hour from 02:00 to 03:00 twice.
        ("01:00-06:00 Europe/Berlin", 0, 18_000, True),
        ("01:00-06:00 Europe/Berlin", 0, 18_001, False),
        # Outside of the window, another reason is given.
        ("02:00-06:00 UTC", 7, 9_999, True),
    ],
)
def test_a_run_that_would_end_outside_its_window_does_not_start(
    window: str, hour: int, seconds: float, fits: bool
) -> None:
    chosen = load("t.yaml", text=f"version: 1\ndefaults: {{window: '{window}'}}").effective("delta:/t")
    case = case_of(chosen, Order(Operation.OPTIMIZE, "r", "reports"), datetime(2026, 10, 25, hour, tzinfo=UTC))
    why = too_long(replace(case, opened=Opened(seconds=seconds)))
    assert (why is None) is fits
    if why is not None:
        assert why.startswith(f"would end outside its window {window}: about {seconds:,} s to do, and ")


@pytest.mark.slow
def test_settings_that_do_not_fit_their_table_are_faults(clicks: Path) -> None:
    file = clicks / "tables.yaml"
    folder = f"{clicks}/warehouse"
    file.write_text(
        f"""version: 1
tables:
  - name: clicks
    table: delta:{folder}/delta/shop.db/clicks
    where: "nope = 3"
    clustering: {{zorder: [usr_id]}}
    check: {{keys: [idd]}}
    expectations: [{{type: expect_column_values_to_not_be_null, kwargs: {{column: cuntry}}}}]
  - name: prices
    table: paimon:{folder}/paimon/shop.db/prices
    when: "level0_rows > 3"
  - name: sound
    table: delta:{folder}/delta/shop.db/accounts
    when: "small_files > 3"
  - name: gone
    table: delta:{folder}/nope
""",
        encoding="utf-8",
    )
    assert nightkeep.validate(policy=file).faults == ()
    found = nightkeep.validate(policy=file, tables=True)
    assert [fault.removeprefix(f"{file}:").split(",")[0].split(" (")[0] for fault in found.faults] == [
        "5: where: clicks: partition filter 'nope = 3': expected a partition column",
        "6: clustering: clicks: cluster by usr_id: the table has no such column; click_id",
        "7: check.keys: clicks: expected a column of the table",
        "8: tables[0].expectations[0].kwargs.column: expected a column of the table",
        "11: when: prices: expected metrics that prices has",
    ]
    assert len(found.warnings) == 1 and found.warnings[0].startswith("gone: not read: ")
