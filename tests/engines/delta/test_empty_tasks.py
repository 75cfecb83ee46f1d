"""delta-spark counts the file of an empty task in its metrics and adds none: such a table is swept and expires."""

from pathlib import Path

from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.runs import opened
from tests.formats.delta.sweeping import aged, swept

from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode


def test_an_empty_task_is_no_lost_file(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} USING delta AS SELECT /*+ REPARTITION(1) */ id FROM range(0, 1, 1, 1)",
        f"INSERT INTO {named(table)} SELECT id FROM range(0, 1, 1, 2)",
    )
    for path in (table / "_delta_log").glob("*.crc"):
        path.unlink()
    live = {file.name for unit in opened(table).snapshot().units for file in unit.files}
    aged(table)
    done, _ = swept(table, SweepMode.DELETE)
    assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
    assert all((table / name).exists() for name in live)
