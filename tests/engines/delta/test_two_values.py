"""A partition column that the data files hold too, with another value than the log's: delta-spark shows the log's."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.log_edits import rewrite_adds
from tests.formats.delta.runs import optimize
from tests.formats.delta.runs import shown as ours
from tests.formats.delta.sweeping import aged

from nightkeep.model import Outcome


def contradict(table: Path) -> None:
    """Every data file as a writer of Hive's habits may leave it: with the column p, and 2 in it for the log's 1."""

    def add_column(add: dict[str, Any]) -> None:
        path = table / add["path"]
        held = pq.read_table(path)
        pq.write_table(held.append_column("p", pa.array([2] * len(held), pa.int32())), path)
        add["size"] = path.stat().st_size

    rewrite_adds(table, add_column)
    aged(table)


def test_the_log_decides(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, p INT) USING delta PARTITIONED BY (p)",
        *(f"INSERT INTO {named(table)} SELECT id, 1 FROM range({n}, {n + 3}, 1, 1)" for n in (0, 3, 6)),
    )
    contradict(table)
    delta_spark.forget()
    before = delta_spark.read(table)
    assert before.column("p") == (1,) * 9
    assert ours(table) == ours(table, "p = 1") == before and not ours(table, "p = 2").rows
    told = optimize(table, full=True)
    assert told.outcome is Outcome.VERIFIED, told.reason
    assert delta_spark.read(table) == ours(table) == before
