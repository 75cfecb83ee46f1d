"""What batch readers do not see yet, per bucket and table, before and after."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tests.formats.paimon.contents import SAMPLES, opened

from nightkeep.formats.paimon.rewrite.health import health
from nightkeep.formats.paimon.rewrite.lag import lag, layout_metrics, waiting_rows
from nightkeep.formats.paimon.rewrite.upgrade import upgrade_level0
from nightkeep.formats.paimon.rewrite.writer_clock import clock_shift, find_clock_shift
from nightkeep.model import Operation, Request
from nightkeep.storage import open_storage

NOW_MS = 1_893_456_000_000


def test_the_lag_is_that_of_level0_since_its_oldest_file() -> None:
    stock = opened(SAMPLES / "stock").snapshot()
    level0 = [file for bucket in stock.units for file in bucket.files if file.level == 0]
    age_ms = NOW_MS - min(file.created_ms for file in level0)
    figures = {"level0_files": len(level0), "level0_rows": sum(f.rows for f in level0), "level0_age_ms": age_ms}
    assert lag(stock.units, NOW_MS, shift_ms=0) == figures
    assert lag([], NOW_MS, shift_ms=0) == {"level0_files": 0, "level0_rows": 0, "level0_age_ms": None}
    assert lag(stock.units, 0, shift_ms=0)["level0_age_ms"] == 0


def test_a_plan_has_the_lag_of_each_bucket_and_states_that_of_the_table() -> None:
    storage = open_storage(str(SAMPLES / "stock"))
    stock = opened(SAMPLES / "stock").snapshot()
    bucket = next(bucket for bucket in stock.units if any(file.level == 0 for file in bucket.files))
    work = upgrade_level0(stock, bucket, Request(Operation.UPGRADE, NOW_MS))
    assert work is not None and work.measures == lag([bucket], NOW_MS, shift_ms=clock_shift(stock))
    rows = lag(stock.units, NOW_MS, shift_ms=0)["level0_rows"]
    assert f"batch readers do not see {rows} rows of " in (waiting_rows(storage, stock) or "")
    lifted = replace(stock, units=())
    assert waiting_rows(storage, lifted) is None


def test_metrics_compare_levels_and_lag_of_two_versions() -> None:
    stock = opened(SAMPLES / "stock").snapshot()
    lifted = replace(
        stock, units=tuple(replace(b, files=tuple(replace(f, level=5) for f in b.files)) for b in stock.units)
    )
    touched = [bucket.key for bucket in stock.units]
    found = layout_metrics(stock, lifted, touched)
    files = sum(len(bucket.files) for bucket in stock.units)
    assert found["levels_after"] == {"5": files}
    before = found["levels_before"]
    assert isinstance(before, dict) and before["0"] > 0 and sum(before.values()) == files
    now_ms = int(str(stock.raw["timeMillis"]))
    assert found["lag"] == {
        side: lag(version.units, now_ms, shift_ms=clock_shift(stock))
        for side, version in (("before", stock), ("after", lifted))
    }
    assert lag(lifted.units, now_ms, shift_ms=0)["level0_rows"] == 0


def test_a_table_without_vectors_has_no_lag() -> None:
    ledger = opened(SAMPLES / "ledger").snapshot()
    assert "lag" not in layout_metrics(ledger, ledger, [])


def test_a_clock_is_looked_for_in_older_commits_where_the_newest_added_nothing_to_level_0() -> None:
    """A commit that adds files above level 0 only, such as a compaction elsewhere, does not have the writer's clock."""
    stock, storage = opened(SAMPLES / "stock").snapshot(), open_storage(str(SAMPLES / "stock"))
    assert find_clock_shift(storage, replace(stock, delta_entries=())) == clock_shift(stock) == 0
    raised = tuple({**each, "_FILE": {**each["_FILE"], "_LEVEL": 5}} for each in stock.delta_entries)
    assert clock_shift(replace(stock, delta_entries=raised)) is None
    assert find_clock_shift(storage, replace(stock, delta_entries=raised, units=())) is None


def test_a_clock_is_a_whole_quarter_of_an_hour_from_utc() -> None:
    stock = opened(SAMPLES / "stock").snapshot()
    committed = int(str(stock.raw["timeMillis"]))
    for minutes in (-480, -210, 0, 345, 765):
        made = committed + (minutes * 60 - 40) * 1000
        entries = tuple(
            {**each, "_FILE": {**each["_FILE"], "_CREATION_TIME": made - number, "_LEVEL": 0}}
            for number, each in enumerate(stock.delta_entries)
        )
        assert clock_shift(replace(stock, delta_entries=entries)) == minutes * 60_000


def test_nothing_waits_where_readers_merge_level_0() -> None:
    """They see its rows with deletion-vectors.merge-on-read."""
    stock, storage = opened(SAMPLES / "stock").snapshot(), open_storage(str(SAMPLES / "stock"))
    options = MappingProxyType({**stock.schema.options, "deletion-vectors.merge-on-read": "true"})
    schemas = replace(stock.schemas, current=replace(stock.schema, options=options))
    merged = replace(stock, schemas=schemas, units=tuple(replace(unit, schemas=schemas) for unit in stock.units))
    request = Request(Operation.UPGRADE, NOW_MS)
    assert waiting_rows(storage, merged) is None and waiting_rows(storage, stock) is not None
    assert "lag" not in layout_metrics(merged, merged, [])
    assert health(storage, merged, request).level0_files is None
    bucket = next(unit for unit in merged.units if any(file.level == 0 for file in unit.files))
    work = upgrade_level0(merged, bucket, request)
    assert work is not None and not work.measures
    assert work.estimate.benefit.endswith("need no merge on read any more")
