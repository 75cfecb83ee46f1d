"""Two versions of a table, merged on read by Spark -> the units and rows in which they differ."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from nightkeep.checking.unit_fingerprints import ComparedRows, compare_rows, measure
from nightkeep.errors import UsageError
from nightkeep.formats.views import open_view
from nightkeep.model import Address, View
from nightkeep.records.check_report import Difference, DiffReport, UnitDiff
from nightkeep.spark.query_settings import planned_for
from nightkeep.spark.view import Side, TableVersion, TableView


def diff(address: Address, version: int, other: int, *, spark: SparkSession) -> DiffReport:
    """Compare the content of two versions. Raises RefusedTable, and UsageError for a version that does not exist."""
    started = time.perf_counter()
    relation, left, right = _opened(address, version, other, spark)
    with planned_for(spark, left.rows_listed + right.rows_listed):
        units = _diffs(relation, left, right)
    return DiffReport(
        version=version,
        other=other,
        equal=all(unit.equal for unit in units),
        units=units,
        notes=relation.notes,
        seconds=time.perf_counter() - started,
    )


def _opened(
    address: Address, version: int, other: int, spark: SparkSession
) -> tuple[TableView, TableVersion, TableVersion]:
    """The view and both versions, in units that both have. A commit may have moved rows from units to others; a view
    joins such units by the first version that it is asked for, which must be the older one."""
    found = []
    for first, second in ((version, other), (other, version)):
        relation = open_view(address, spark)
        loaded = {number: _version(relation, address, number) for number in (first, second)}
        found.append((relation, loaded[version], loaded[other]))
    return min(found, key=lambda each: len(each[1].units.keys() ^ each[2].units.keys()))


def _version(relation: TableView, address: Address, number: int) -> TableVersion:
    version = relation.version(number)
    if version is None:
        raise UsageError(f"{address.name}: expected a version that exists, found {number}")
    return version


def _diffs(relation: TableView, left: TableVersion, right: TableVersion) -> tuple[UnitDiff, ...]:
    keys = sorted(left.units.keys() | right.units.keys())
    alike = {
        key for key in left.units.keys() & right.units.keys() if left.units[key].identity == right.units[key].identity
    }
    read = [key for key in keys if key not in alike]
    base, candidate = (Side(version.number, View.MERGED) for version in (left, right))
    ((before, after),) = measure(relation, [((base, candidate), read)])
    unequal = [key for key in read if before[key].content != after[key].content]
    differences = compare_rows(relation, base, candidate, unequal)
    return tuple(
        UnitDiff(key, equal=True, rows=None, other_rows=None, difference=Difference())
        if key in alike
        else UnitDiff(
            key,
            equal=key not in differences,
            rows=before[key].content.rows,
            other_rows=after[key].content.rows,
            difference=differences.get(key, ComparedRows()).difference,
        )
        for key in keys
    )
