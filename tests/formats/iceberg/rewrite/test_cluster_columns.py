"""Columns that an Iceberg table may be clustered by, and what is constant in its partitions."""

from dataclasses import replace
from typing import Any

import pytest
from tests.formats.iceberg.content_made import file_of, schema_of

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.layout_names import clustered_mark
from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT, mark_of
from nightkeep.model import Address, Clustering, Curve, Operation, Request, UnitKey

COLUMNS = (("id", "long"), ("day", "date"), ("name", "string"))
BY_DAY, BY_NAME = (("day", "identity"),), (("name", "truncate[2]"),)
OPTIMIZE = Request(Operation.OPTIMIZE, 0)


def snapshot(*specs: Any, used: tuple[int, ...] = (0,), **more: Any) -> IcebergSnapshot:
    schema = schema_of(COLUMNS, *specs, **more)
    unit = IcebergUnit(UnitKey("", None), {}, 0, (), (file_of("f"),), (), (), schema)
    units = tuple(replace(unit, spec_id=number) for number in used)
    return IcebergSnapshot(
        Address("iceberg", "c/n.t", "t"), 1, None, 1, 0, schema, units, "append", {}, (), {}, {}, "/t/v1.metadata.json"
    )


def by(*names: str) -> Clustering:
    return Clustering(names, Curve.Z)


def resolved(found: IcebergSnapshot, clustering: Clustering) -> Clustering:
    return LAYOUT.columns(found).resolved(clustering)


def test_names_are_the_tables_own() -> None:
    found = resolved(snapshot(), by("ID", "name"))
    assert found.columns == ("id", "name")
    assert mark_of(snapshot().schema, FileLayout(0, by("name", "id"))) == clustered_mark([3, 1], Curve.Z)
    LAYOUT.require_columns(snapshot(), OPTIMIZE)


def test_a_column_with_one_value_in_every_partition_is_none_to_cluster_by() -> None:
    with pytest.raises(UsageError, match="cluster by day: it is a partition column"):
        LAYOUT.require_columns(snapshot(BY_DAY), replace(OPTIMIZE, clustering=by("day")))
    # A truncated column has many values in a partition.
    assert resolved(snapshot(BY_NAME), by("name")).columns == ("name",)
    # Files of another spec have it in all partitions.
    assert resolved(snapshot(BY_DAY, (), used=(0, 1)), by("day")).columns == ("day",)
    with pytest.raises(UsageError):
        resolved(snapshot(BY_DAY, (), used=(0,)), by("day"))


def test_a_column_without_statistics_is_named() -> None:
    silent = snapshot(properties={"write.metadata.metrics.column.name": "none"})
    with pytest.raises(UsageError, match=r"cluster by name: it has no statistics, .*write\.metadata\.metrics"):
        resolved(silent, by("name"))
