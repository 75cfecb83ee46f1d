"""Tables with a sort order of Spark's (WRITE ORDERED BY): Spark writes, reads and compacts between nights of ours."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.ordered_tables import Key, OrderedTable, by
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome

pytestmark = pytest.mark.slow

_NIGHTS = count()
EITHER = (Outcome.VERIFIED, Outcome.UNCHANGED)

CLAUSES: dict[str, tuple[Key, ...]] = {
    "days(at) DESC NULLS LAST, id": (by("at", "day", "desc", "last"), by("id")),
    "bucket(4, name), small DESC NULLS FIRST": (by("name", "bucket[4]"), by("small", "identity", "desc", "first")),
    "truncate(2, name) DESC, ratio ASC NULLS LAST": (
        by("name", "truncate[2]", "desc", "last"),
        by("ratio", nulls="last"),
    ),
    "small NULLS LAST, name DESC": (by("small", nulls="last"), by("name", "identity", "desc", "last")),
}
COLUMNS = (
    "id BIGINT, part STRING, small INT, name STRING, at TIMESTAMP_NTZ, ratio DOUBLE, price DECIMAL(20, 2), raw BINARY"
)
SELECT = """
SELECT id, part, IF(pmod(hash(id, 1), 9) = 0, NULL, pmod(hash(id, 2), 11) - 5), concat('n', pmod(hash(id, 3), 70)),
  CAST(timestamp_seconds(pmod(hash(id, 4), 90000000) - 45000000) AS TIMESTAMP_NTZ),
  CASE pmod(hash(id, 5), 9) WHEN 0 THEN NULL WHEN 1 THEN double('NaN') WHEN 2 THEN -0.0D
    ELSE pmod(hash(id, 6), 5) * 0.5D END,
  CAST(pmod(hash(id, 7), 1000) AS DECIMAL(20, 2)), unhex(hex(id))
FROM (SELECT id, element_at(array('a', 'b'), CAST(pmod(id, 2) AS INT) + 1) AS part FROM range({start}, {stop}))
"""


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


class SparkLake:
    """A table that Spark made, with its order."""

    def __init__(self, spark: IcebergSpark, warehouse: Warehouse, clause: str, version: int) -> None:
        self.spark, self.table = spark, warehouse.table()
        self.ours = OrderedTable(self.table, CLAUSES[clause])
        spark.attach(warehouse)
        mode = "copy-on-write" if version == 1 else "merge-on-read"
        modes = ", ".join(f"'write.{verb}.mode'='{mode}'" for verb in ("delete", "update", "merge"))
        spark.sql(
            f"CREATE NAMESPACE IF NOT EXISTS {warehouse.name}.db",
            f"CREATE TABLE {self.table.sql} ({COLUMNS}) USING iceberg PARTITIONED BY (part) "
            f"TBLPROPERTIES ('format-version'='{version}', {modes})",
            f"ALTER TABLE {self.table.sql} WRITE ORDERED BY {clause}",
        )

    def insert(self, start: int, stop: int) -> None:
        self.spark.sql(f"INSERT INTO {self.table.sql} {SELECT.format(start=start, stop=stop)}")

    def rows(self) -> Counter[Any]:
        return Counter(map(repr, self.spark.read(self.table).rows))

    def rewritten(self, **options: str) -> int:
        """How many files Spark's own sorting rewrite takes."""
        stated = "".join(f", '{key}', '{value}'" for key, value in options.items())
        call = (
            f"CALL {self.table.warehouse.name}.system.rewrite_data_files(table => '{self.table.name}', "
            f"strategy => 'sort', options => map('min-input-files', '2'{stated}))"
        )
        return int(self.spark.sql(call).rows[0][0])

    def night(self, *outcomes: Outcome, **settings: Any) -> None:
        """A night that ends in one of the outcomes, and changes no row for Spark."""
        before = self.rows()
        done = runs.care_for(self.table, run_id=f"night {next(_NIGHTS)}", operation=Operation.OPTIMIZE, **settings)
        assert done.outcome in (outcomes or (Outcome.VERIFIED,)), (done.outcome, done.reason)
        assert self.rows() == before


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("clause", CLAUSES)
def test_spark_reads_what_is_sorted_and_leaves_it(
    iceberg_spark: IcebergSpark, warehouse: Warehouse, clause: str, version: int
) -> None:
    lake = SparkLake(iceberg_spark, warehouse, clause, version)
    for start in range(0, 2000, 500):
        lake.insert(start, start + 500)
    iceberg_spark.sql(f"DELETE FROM {lake.table.sql} WHERE id % 7 = 0")
    lake.night()
    assert {file.sort_order_id for file in lake.ours.files()} == {1}
    lake.ours.assert_sorted()
    ids = {row[0] for row in iceberg_spark.sql(f"SELECT DISTINCT sort_order_id FROM {lake.table.sql}.files").rows}
    assert ids == {1}
    # By its sizes there is one file of each partition left, which Spark's own rewrite takes for done.
    assert lake.rewritten() == 0
    lake.night(Outcome.UNCHANGED)


def test_spark_leaves_several_sorted_files_and_we_leave_its_own(
    iceberg_spark: IcebergSpark, warehouse: Warehouse
) -> None:
    lake = SparkLake(iceberg_spark, warehouse, "small NULLS LAST, name DESC", 2)
    for start in range(0, 8000, 2000):
        lake.insert(start, start + 2000)
    target = sum(file.bytes for file in lake.ours.files()) // 6
    lake.night(target_size=target)
    assert len(lake.ours.files()) > 3
    lake.ours.assert_sorted()
    sizes = {"target-file-size-bytes": str(target), "min-file-size-bytes": "1", "max-file-size-bytes": str(3 * target)}
    assert lake.rewritten(**sizes) == 0
    assert lake.rewritten(**sizes, **{"rewrite-all": "true"}) == len(runs_of(lake))
    lake.night(Outcome.UNCHANGED, target_size=target, min_file_size=1)


def runs_of(lake: SparkLake) -> list[str]:
    parent = runs.opened(lake.table).snapshot().parent_version
    return [file.path for unit in runs.opened(lake.table).snapshot(parent).units for file in unit.files]


@pytest.mark.parametrize("seed", some_extended(range(54), keep=7))
def test_random_histories(iceberg_spark: IcebergSpark, warehouse: Warehouse, seed: int) -> None:
    chance = random.Random(seed)
    lake = SparkLake(iceberg_spark, warehouse, chance.choice(list(CLAUSES)), (1, 2, 3)[seed % 3])
    start, target = 0, 12_000

    def insert() -> None:
        nonlocal start
        lake.insert(start, start + chance.choice([50, 700]))
        start += 700

    fields = ["bucket(2, id)", "years(at)", "truncate(1, name)"]
    chance.shuffle(fields)

    def evolve() -> None:
        if fields:
            iceberg_spark.sql(f"ALTER TABLE {lake.table.sql} ADD PARTITION FIELD {fields.pop()}")

    acts = [
        insert,
        evolve,
        lambda: lake.night(*EITHER, target_size=target, respec=True),
        insert,
        lambda: iceberg_spark.sql(f"DELETE FROM {lake.table.sql} WHERE id % 11 = {chance.randrange(11)}"),
        lambda: iceberg_spark.sql(
            f"UPDATE {lake.table.sql} SET small = small + 1 WHERE id % 13 = {chance.randrange(13)}"
        ),
        lambda: lake.rewritten(**{"target-file-size-bytes": str(target)}),
        lambda: lake.night(*EITHER, target_size=target),
        lambda: lake.night(*EITHER, target_size=target, full=True),
    ]
    insert()
    for _ in range(7):
        chance.choice(acts)()
    lake.night(*EITHER, target_size=target)
    lake.night(target_size=target, full=True)
    lake.ours.assert_sorted()
    lake.night(*EITHER, target_size=target, respec=True)
    # What moved is a sorted run of its own, beside those that were there.
    lake.night(*EITHER, target_size=target, full=True)
    assert len({file.spec_id for file in lake.ours.files()}) == 1
    lake.ours.assert_sorted()
    assert lake.table.document()["format-version"] == (1, 2, 3)[seed % 3]
    lake.night(Outcome.UNCHANGED, target_size=target)
