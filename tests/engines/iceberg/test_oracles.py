"""Iceberg Java, iceberg-spark, DuckDB and pyiceberg read the same rows before us and after each of our operations."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.lakes_oracle import Lakes
from tests.formats.iceberg.optimized_lake import by
from tests.formats.iceberg.oracle_filters import conditions
from tests.formats.iceberg.oracle_readers import Readers
from tests.formats.iceberg.oracle_tables import NAMES, WRITERS, Written
from tests.formats.iceberg.runs import care_for, configured
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome

pytestmark = pytest.mark.in_turn("version")

NIGHTS: dict[str, dict[str, Any]] = {
    "persisted": {"operation": Operation.PERSIST_DELETES},
    "packed": {"operation": Operation.OPTIMIZE, "full": True},
    "laid": {"operation": Operation.OPTIMIZE, "clustering": by("id", "name"), "target_size": 3000, "min_file_size": 10},
}
LAST = NIGHTS["laid"]
DUCKDB_ERRS = {
    "by_java": "1.5.5 hides rows without a key from which others are deleted",
    "by_java_under_three_specs": "1.5.5 fails on equality deletes where a partition is null",
}
"""Until deletes are persisted."""


@pytest.fixture
def readers(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, iceberg: Warehouse
) -> Iterator[Readers]:
    with configured(iceberg):
        yield Readers(iceberg_java, iceberg_spark, lakes, iceberg.table())


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("writer", some_extended(WRITERS, keep=2))
def test_every_reader_sees_the_same_rows_after_each_operation(writer: str, version: int, readers: Readers) -> None:
    table = readers.table
    random = Random(f"{writer} {version}")
    WRITERS[writer](Written(readers.java, lambda: readers.spark, table, random), version)
    before = readers.all_see(lineage=version == 3, duckdb=writer not in DUCKDB_ERRS)
    assert readers.duckdb_agrees() == (writer not in DUCKDB_ERRS)
    assert readers.has_equality_deletes()
    some = list(conditions(before, NAMES, random))
    expected = readers.expected(some)
    assert sum(bool(rows.rows) for rows in expected) > len(some) / 2
    for run_id, night in NIGHTS.items():
        done = care_for(table, run_id=run_id, **night)
        assert done.outcome is Outcome.VERIFIED, (run_id, done.reason)
        assert not readers.has_equality_deletes()
        assert readers.all_see(lineage=version == 3) == before, run_id
        # What the last night leaves is asked everything; a condition takes four readers half a second.
        chosen = range(len(some)) if night is LAST else sorted(random.sample(range(len(some)), len(some) // 4))
        readers.all_find([some[n] for n in chosen], [expected[n] for n in chosen])
    every = len(readers.java.tasks(table))
    assert min(len(readers.java.tasks(table, where=each.java())) for each in some) < every
