"""What a plan would leave and cost, and what that is worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nightkeep.estimates.corrections import Corrections
from nightkeep.estimates.prediction import FIXED_BYTES, OPEN_BYTES, predict, score
from nightkeep.estimates.run_costs import seconds_of
from nightkeep.model import (
    Address,
    Clustering,
    Curve,
    Estimate,
    FileSizes,
    Operation,
    Plan,
    PlannedUnit,
    UnitKey,
    VersionIdentity,
)
from nightkeep.model.health import Health
from nightkeep.protocol import OpenPlan

SIZES = FileSizes((100, 100, 100, 5_000), (None,) * 4)
HEALTH = Health(files=4, bytes=5_300, small_files=3)
DAY_MS = 86_400_000


def planned(operation: Operation, files_after: int = 1, written: int = 250) -> OpenPlan:
    stays = operation is Operation.PERSIST_DELETES
    more = (0, 0) if stays else (files_after - 3, written - 300)
    estimate = Estimate(300, written, files_after, "fewer files", *more)
    unit = PlannedUnit(UnitKey(""), "small files", ("a", "b", "c"), 300, estimate, ())
    return Plan(Address("delta", "/t", "t"), operation, VersionIdentity(1, "", ""), (unit,))


def test_files_and_bytes_are_those_of_the_whole_table() -> None:
    found = predict(planned(Operation.OPTIMIZE), SIZES)
    assert (found.files, found.bytes, found.reads, found.writes) == (2, 5_250, 300, 250)
    assert found.seconds == seconds_of(Operation.OPTIMIZE, units=1, reads=300, writes=250)
    assert found.to_json()["operation"] == "optimize"


def test_what_is_written_is_corrected_and_the_rest_of_the_table_is_not() -> None:
    learned = Corrections(files=3.0, bytes=0.5, seconds=2.0, learned_from="3 runs of this table")
    plain, found = predict(planned(Operation.OPTIMIZE), SIZES), predict(planned(Operation.OPTIMIZE), SIZES, learned)
    assert (found.files, found.bytes, found.writes, found.reads) == (4, 5_125, 125, 300)
    assert found.seconds == 2 * plain.seconds
    assert found.section.learned_from == "3 runs of this table"


def test_deletes_in_another_form_leave_the_data_files() -> None:
    found = predict(planned(Operation.PERSIST_DELETES, files_after=0), SIZES)
    assert (found.files, found.bytes) == (4, 5_300)


@pytest.mark.parametrize(
    ("columns", "files", "share"), [(("a",), 100, 0.98), (("a", "b"), 100, 0.89), (("a",), 1, 0.0)]
)
def test_columns_in_order_let_queries_skip_files(columns: tuple[str, ...], files: int, share: float) -> None:
    found = predict(
        planned(Operation.OPTIMIZE, files_after=files), SIZES, clustering=Clustering(columns, Curve.HILBERT)
    )
    assert found.skipping == dict.fromkeys(columns, pytest.approx(share)) and found.section.skipping == found.skipping
    assert predict(planned(Operation.OPTIMIZE), SIZES).skipping == {}


def test_a_score_is_what_readers_save_for_what_it_costs() -> None:
    plan = planned(Operation.OPTIMIZE)
    found = score(HEALTH, predict(plan, SIZES), plan)
    assert found == pytest.approx((2 * OPEN_BYTES + 50) / (550 + FIXED_BYTES), abs=1e-4)


def test_more_files_than_before_save_nothing() -> None:
    plan = planned(Operation.OPTIMIZE, files_after=9, written=900)
    assert score(HEALTH, predict(plan, SIZES), plan) == 0


def test_equality_deletes_are_read_with_every_data_file() -> None:
    plan = planned(Operation.PERSIST_DELETES)
    few, many = (score(replace(HEALTH, equality_files=n), predict(plan, SIZES), plan) for n in (1, 10))
    assert few == pytest.approx(3 * OPEN_BYTES / (550 + FIXED_BYTES), abs=1e-3)
    assert many == pytest.approx(10 * few, abs=1e-2)


def test_rows_that_nobody_sees_grow_more_urgent() -> None:
    plan = planned(Operation.UPGRADE, files_after=3, written=300)
    waiting = replace(HEALTH, level0_files=2, level0_bytes=200, level0_rows=9)
    today, week = (score(replace(waiting, level0_age_ms=n * DAY_MS), predict(plan, SIZES), plan) for n in (0, 7))
    assert today > 0 and week == pytest.approx(8 * today, rel=1e-2)


def test_shares_of_a_table_without_files_or_counts() -> None:
    assert Health(files=0, bytes=0, small_files=0).small_share == 0
    assert Health(files=0, bytes=0, small_files=0, rows=0, deleted_rows=0).deleted_ratio == 0
    assert HEALTH.deleted_ratio is None
    assert replace(HEALTH, rows=10, deleted_rows=1).metrics["deleted_ratio"] == 0.1
    assert HEALTH.metrics["small_share"] == 0.75
