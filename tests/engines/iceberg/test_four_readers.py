"""What we sort, move to another spec, write in version 1 and on branches: four readers show the same rows of it."""

from collections.abc import Iterator

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.lakes_oracle import Lakes
from tests.formats.iceberg import runs
from tests.formats.iceberg.oracle_readers import Readers
from tests.formats.iceberg.runs import COLUMNS, DAYS, configured, row

from nightkeep.model import Operation, Outcome

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("version")]


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with configured(iceberg):
        yield iceberg


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_readers_agree(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, warehouse: Warehouse, version: int
) -> None:
    table: Table = warehouse.table()
    layout = Layout(partition=(("day", "identity"),), format_version=version)
    iceberg_java.create(table, COLUMNS, layout)
    for start in (40, 0, 80):
        iceberg_java.append(table, [row(day, number) for day in DAYS for number in range(start, start + 40)])
    iceberg_java.alter(table, {"change": "sort", "columns": ["price", "id"]})
    readers = Readers(iceberg_java, iceberg_spark, lakes, table)
    before = readers.all_see(lineage=version == 3)
    assert runs.care_for(table, run_id="sorts", operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    assert readers.all_see(lineage=version == 3) == before
    change = {"change": "add_partition_field", "column": "id", "transform": "bucket[3]", "name": "by_id"}
    iceberg_java.alter(table, change)
    for run_id, outcome in (
        ("moves", Outcome.VERIFIED),
        ("sorts again", Outcome.VERIFIED),
        ("rests", Outcome.UNCHANGED),
    ):
        done = runs.care_for(table, run_id=run_id, operation=Operation.OPTIMIZE, respec=True)
        assert done.outcome is outcome, done.reason
        assert readers.all_see(lineage=version == 3) == before
