"""Shallow clones: their data files are another table's. They are read as delta-spark reads them, and never changed."""

from pathlib import Path

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.runs import optimize
from tests.formats.delta.runs import shown as ours

from nightkeep.model import Outcome


@pytest.mark.few(1)
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_a_shallow_clone_is_read(delta_spark: DeltaSpark, tmp_path: Path, mapping: str) -> None:
    source, clone = tmp_path / "a source %20", tmp_path / "clone"
    properties = f"'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = '{mapping}'"
    delta_spark.sql(
        f"CREATE TABLE {named(source)} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)"
        f" TBLPROPERTIES ({properties})",
        f"INSERT INTO {named(source)} SELECT id, concat('a b', id % 2) FROM range(0, 20, 1, 1)",
        f"DELETE FROM {named(source)} WHERE id IN (3, 4)",
        f"CREATE TABLE {named(clone)} SHALLOW CLONE {named(source)}",
        f"INSERT INTO {named(clone)} SELECT id, concat('a b', id % 2) FROM range(20, 30, 1, 1)",
        f"DELETE FROM {named(clone)} WHERE id IN (5, 21)",
    )
    before = delta_spark.read(clone)
    assert len(before.rows) == 26
    assert ours(clone) == before
    for where in ("id > 17", "p = 'a b1' AND id < 10"):
        assert ours(clone, where) == delta_spark.read(clone, where=where)
    told = optimize(clone, full=True)
    assert told.outcome is Outcome.REFUSED and "outside the table's folder" in str(told.reason)
    assert delta_spark.read(clone) == before
