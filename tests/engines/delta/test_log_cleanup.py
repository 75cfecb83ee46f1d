"""Logs that an expiry of ours has cut -> delta-spark travels in time, writes, checkpoints and cleans up on top."""

import time
from pathlib import Path

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.checkpointed import run_at
from tests.formats.delta.runs import opened
from tests.formats.delta.sweeping import aged

from nightkeep.formats.delta.upkeep.log_cleanup import carry_out_upkeep
from nightkeep.model import Address
from nightkeep.protocol.log_upkeep import LogRequest
from nightkeep.storage import LocalStorage

PROPERTIES = {
    "classic": "'delta.checkpointPolicy' = 'classic'",
    "v2": "'delta.checkpointPolicy' = 'v2'",
    "times": "'delta.enableInCommitTimestamps' = 'true'",
    "rows": "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROPERTIES)
def test_delta_spark_goes_on_with_a_log_that_was_cut(
    kind: str, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    table = tmp_path / "events"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, t STRING) USING delta "
        f"TBLPROPERTIES ({PROPERTIES[kind]}, 'delta.checkpointInterval' = '5')",
        *(f"INSERT INTO {named(table)} SELECT id, concat('t', id) FROM range({n}, {n + 9})" for n in range(0, 63, 9)),
        f"DELETE FROM {named(table)} WHERE id % 5 = 3",
        *(f"INSERT INTO {named(table)} SELECT id, 'late' FROM range({n}, {n + 3})" for n in (100, 103, 106)),
    )
    for path in (table / "_delta_log").glob("*.checkpoint.*"):
        path.unlink()
    # Versions 0 to 8 are 60 days old, the last three of today.
    aged(table, days=60, late=3, late_days=0)
    delta_spark.forget()
    # delta-spark does not travel beyond the retention of removed files, which is shorter than the log's.
    rows = {version: delta_spark.read(table, version=version) for version in (9, 10, 11)}
    oldest = opened(table).snapshot(8).identity.content

    storage = LocalStorage(str(table))
    now_ms = int(time.time() * 1000) + 60_000
    done = carry_out_upkeep(Address("delta", str(table), "events"), storage, LogRequest(now_ms), run_at(now_ms))

    assert (done.checkpoints, done.oldest, done.failed) == ((8, 11), 8, ())
    commits = sorted(int(path.stem) for path in (table / "_delta_log").glob("[0-9]*.json") if path.stem.isdecimal())
    assert commits == [8, 9, 10, 11]
    delta_spark.forget()
    assert {version: delta_spark.read(table, version=version) for version in rows} == rows
    assert opened(table).snapshot(8).identity.content == oldest
    with pytest.raises(EngineError):
        delta_spark.read(table, version=7)
    assert [row[0] for row in delta_spark.sql(f"DESCRIBE HISTORY {named(table)}").rows] == [11, 10, 9, 8]
    assert lakes.delta_rs_read(table) == rows[11]
    assert lakes.duckdb_read(table) == rows[11]
    delta_spark.sql(
        f"UPDATE {named(table)} SET t = 'new' WHERE id < 20",
        f"INSERT INTO {named(table)} VALUES (500, 'x')",
        f"OPTIMIZE {named(table)}",
        f"DELETE FROM {named(table)} WHERE id = 500",
    )
    latest = delta_spark.read(table)
    delta_spark.checkpoint(table)
    delta_spark.forget()
    assert delta_spark.read(table) == latest and len(latest.rows) == len(rows[11].rows)
    assert delta_spark.read(table, version=9) == rows[9]
    assert opened(table).snapshot().version == 15
