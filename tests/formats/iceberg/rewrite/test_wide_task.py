"""A unit beyond one task: the same rows, with their ids, through an exchange as in one task."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.optimized_lake import LINEAGE, OptimizedLake, by
from tests.support.examples import examples

from nightkeep.clustering import sorting, wide_task
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.model import Committed, Curve, Plan, Rewrite, Verified, VerifyLevel
from nightkeep.protocol import Wide
from nightkeep.spark.exchange import SparkExchange
from nightkeep.spark.session import SparkMapper
from nightkeep.stages.execute import execute
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

pytestmark = pytest.mark.in_turn("lake")

ROWS = 3_000


@pytest.fixture(scope="module", params=[2, 3])
def lake(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OptimizedLake]:
    """With every kind of delete. Tests but the last write files, and commit nothing."""
    warehouse = Warehouse(f"wide{request.param}", tmp_path_factory.mktemp("wide"))
    with runs.configured(warehouse):
        found = OptimizedLake(iceberg_java, warehouse.table())
        found.create(format_version=request.param)
        found.append([[n * 7919 % ROWS, n % 50, f"common text {n % 997:03d}"] for n in range(ROWS)], rows_per_file=700)
        found.delete([[n] for n in range(0, ROWS, 9)], "id")
        paths = [each["file_path"] for each in found.live()]
        write = iceberg_java.vectors if request.param == 3 else iceberg_java.position_deletes
        found.commit(write(found.table, [(path, n) for path in sorted(paths) for n in range(40)]))
        yield found


def planned(lake: OptimizedLake, parts: int, **asked: Any) -> Plan:
    size = sum(each["file_size_in_bytes"] for each in lake.live()) // parts
    found = lake.plan(clustering=by("k", "v", curve=Curve.HILBERT), target_bytes=size, wide_bytes=0, **asked)
    assert all(isinstance(task, Wide) for unit in found.units for task in unit.tasks)
    return found


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(1, 12), st.integers(1 << 12, 1 << 18), st.integers(1, 1 << 16))
def test_any_sizes_give_the_same_rows(lake: OptimizedLake, parts: int, least: int, source: int) -> None:
    expected = lake.shown()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "LEAST_BYTES", least)
        patch.setattr(wide_task, "SOURCE_BYTES", source)
        patch.setattr(wide_task, "PIECE_BYTES", source // 4)
        rewrites = execute(lake.opened, planned(lake, parts, task_bytes=1), a_run(), mapper=inline)
    files = [pq.read_table(f"/{name}") for rewrite in rewrites for name in rewrite.outputs]
    columns = ["id", "k", "v", *(LINEAGE if len(expected[0]) > 3 else [])]
    rows = pa.concat_tables(files).select(columns).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == sorted(expected)
    removed = [each for rewrite in rewrites for each in edit_of(rewrite).removed]
    assert len(removed) == len({each.identity for each in removed}) >= 5


def edit_of(rewrite: Rewrite) -> IcebergEdit:
    assert isinstance(rewrite.edit, IcebergEdit)
    return rewrite.edit


def test_through_spark(lake: OptimizedLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_task, "SOURCE_BYTES", 1 << 14)
    before, table, run = lake.shown(), lake.opened, a_run()
    found, mapper = planned(lake, 6), SparkMapper(spark)
    rewrites = execute(table, found, run, mapper=mapper, exchange=SparkExchange(spark))
    candidate = table.commits.stage(lake.snapshot, rewrites, run)
    checked = verify(table, found, rewrites, candidate, level=VerifyLevel.FULL, mapper=mapper)
    assert isinstance(checked, Verified), checked
    assert isinstance(publish(table, checked, run), Committed)
    assert lake.shown() == before
    assert len(lake.live()) >= 5 and lake.live(1, 2) == []
    assert not planned(lake, 6).units
