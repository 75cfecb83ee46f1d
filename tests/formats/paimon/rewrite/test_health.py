"""The health of Paimon samples: counts against files on disk, rows against those that readers see."""

from __future__ import annotations

import pytest
from tests.formats.paimon.contents import SAMPLES, opened

import nightkeep
from nightkeep.model import Operation, Request
from nightkeep.model.health import Health

NOW_MS = 1_893_456_000_000


def health_of(name: str, **asked: int) -> Health:
    table = opened(SAMPLES / name)
    assert table.health is not None
    return table.health(table.snapshot(), Request(Operation.OPTIMIZE, NOW_MS, **asked))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["orders", "customers", "events_raw", "prices"])
def test_rows_are_those_of_files_and_vectors(name: str) -> None:
    found = health_of(name)
    assert found.rows is not None and found.deleted_rows is not None
    hidden = found.level0_rows or 0
    seen = nightkeep.read(f"paimon:{SAMPLES / name}").read_all().num_rows
    # Without vectors, a merge leaves out rows that metadata does not count.
    assert found.rows - found.deleted_rows - hidden >= seen
    if name != "prices":
        assert found.rows - found.deleted_rows - hidden == seen


def test_level_0_waits_only_where_readers_skip_it() -> None:
    orders, raw, prices = map(health_of, ("orders", "events_raw", "prices"))
    assert (orders.level0_files, orders.level0_rows) == (18, 420)
    assert orders.level0_age_ms is not None and orders.level0_age_ms > 0
    assert raw.level0_files is None and prices.level0_files is None
    assert (orders.sorted_runs, raw.sorted_runs, prices.sorted_runs) == (5, None, 7)


def test_versions_are_the_snapshots_that_are_kept() -> None:
    found = health_of("orders")
    assert found.versions == len([*(SAMPLES / "orders" / "snapshot").glob("snapshot-*")])
    assert found.manifests is not None and 0 < found.manifests <= len([*(SAMPLES / "orders" / "manifest").iterdir()])


def test_small_files_are_those_below_the_size_that_is_asked_for() -> None:
    assert health_of("orders").small_files == health_of("orders").files
    assert health_of("orders", min_bytes=1).small_files == 0
    assert health_of("events_raw", min_bytes=1).small_files == 0
    assert 0 < health_of("orders", target_bytes=10_000).small_files < 30
