"""Random histories of a log that delta-spark and we tend in turn: both write checkpoints and clean up, both read on.

Rows of every version that delta-spark may still read are those that it read when the version was new.
"""

import time
from pathlib import Path
from random import Random

import pytest
from tests.drivers.delta_spark import DeltaSpark, latest_version, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.checkpointed import checkpointed, run_at
from tests.formats.delta.runs import opened, optimize
from tests.formats.delta.sweeping import aged

from nightkeep.formats.delta.upkeep.log_cleanup import carry_out_upkeep
from nightkeep.model import Address, Outcome
from nightkeep.protocol.log_upkeep import LogRequest
from nightkeep.storage import LocalStorage

HISTORIES = 50
STEPS = 8
PROPERTIES = (
    "'delta.checkpointPolicy' = 'classic', 'delta.enableDeletionVectors' = 'true'",
    "'delta.checkpointPolicy' = 'v2'",
    "'delta.enableInCommitTimestamps' = 'true'",
    "'delta.enableRowTracking' = 'true'",
    "'delta.columnMapping.mode' = 'name'",
)


class History:
    """One table. `seen` has the rows of each version, as delta-spark read them when it was the newest."""

    def __init__(self, seed: int, folder: Path, spark: DeltaSpark, lakes: Lakes) -> None:
        self.random, self.table, self.spark, self.lakes = Random(seed), folder, spark, lakes
        self.seen: dict[int, Rows] = {}
        self.steps: list[str] = []
        interval = self.random.choice((2, 4, 100))
        spark.sql(
            f"CREATE TABLE {named(folder)} (id BIGINT, t STRING) USING delta TBLPROPERTIES "
            f"({self.random.choice(PROPERTIES)}, 'delta.checkpointInterval' = '{interval}')"
        )
        self.insert()

    def insert(self) -> None:
        start = self.random.randrange(1000)
        self.spark.sql(f"INSERT INTO {named(self.table)} SELECT id, concat('t', id) FROM range({start}, {start + 20})")

    def change(self) -> None:
        rest = self.random.randrange(5)
        self.spark.sql(
            self.random.choice(
                (
                    f"DELETE FROM {named(self.table)} WHERE id % 5 = {rest}",
                    f"UPDATE {named(self.table)} SET t = 'new' WHERE id % 5 = {rest}",
                )
            )
        )

    def pack(self) -> None:
        self.spark.sql(f"OPTIMIZE {named(self.table)}")

    def their_checkpoint(self) -> None:
        self.spark.checkpoint(self.table)

    def our_checkpoint(self) -> None:
        checkpointed(self.table)

    def our_run(self) -> None:
        assert optimize(self.table).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)

    def _old(self) -> None:
        """All but the newest commits are 60 days old: both clean up what came before."""
        aged(self.table, days=60, late=self.random.randrange(1, 3), late_days=0)
        self.spark.forget()
        self.seen = {version: rows for version, rows in self.seen.items() if version >= self.oldest_read()}

    def oldest_read(self) -> int:
        """The oldest version that delta-spark may read, now that others are beyond the retention of removed files."""
        for version in range(latest_version(self.table)):
            try:
                self.spark.read(self.table, version=version)
            except EngineError:
                continue
            return version
        return latest_version(self.table)

    def our_cleanup(self) -> None:
        self._old()
        now_ms = int(time.time() * 1000) + 60_000
        address, storage = Address("delta", str(self.table), "events"), LocalStorage(str(self.table))
        done = carry_out_upkeep(address, storage, LogRequest(now_ms), run_at(now_ms))
        assert not done.failed, done.failed

    def their_cleanup(self) -> None:
        """delta-spark cleans up after a checkpoint."""
        self._old()
        self.spark.checkpoint(self.table)

    def check(self) -> None:
        self.spark.forget()
        newest = latest_version(self.table)
        rows = self.spark.read(self.table)
        assert self.seen.setdefault(newest, rows) == rows
        for version, known in self.seen.items():
            assert self.spark.read(self.table, version=version) == known, version
        assert self.lakes.delta_rs_read(self.table) == rows
        assert opened(self.table).snapshot().version == newest


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_both_read_on_whoever_tended_the_log(seed: int, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    history = History(seed, tmp_path / "events", delta_spark, lakes)
    history.check()
    tended = (history.our_checkpoint, history.our_cleanup, history.their_checkpoint, history.their_cleanup)
    written = (history.insert, history.change, history.pack, history.our_run)
    steps = [history.random.choice(history.random.choice((written, tended))) for _ in range(STEPS)]
    for step in (*steps, history.our_cleanup, history.change, history.their_cleanup, history.insert):
        history.steps.append(step.__name__)
        try:
            step()
            history.check()
        except Exception as failure:
            raise AssertionError(f"seed {seed}: {', '.join(history.steps)}") from failure
