"""A partition column that the data files hold too, with another value than the log's: delta-spark shows the log's."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lake_rows import Rows, rows_of
from tests.formats.delta.runs import optimize
from tests.formats.delta.sweeping import aged

import nightkeep
from nightkeep.model import Outcome


def contradict(table: Path) -> None:
    """Every data file as a writer of Hive's habits may leave it: with the column p, and 2 in it for the log's 1."""
    for log in (table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for add in (action["add"] for action in actions if "add" in action):
            path = table / add["path"]
            held = pq.read_table(path)
            pq.write_table(held.append_column("p", pa.array([2] * len(held), pa.int32())), path)
            add["size"] = path.stat().st_size
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    aged(table)


def ours(table: Path, where: str | None = None) -> Rows:
    return rows_of(nightkeep.read(f"delta:{table}", where=where).read_all()).ordered()


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
