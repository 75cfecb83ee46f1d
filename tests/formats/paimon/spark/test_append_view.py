"""What Spark makes of a version of a table without keys, against Java's own readers, and a check of it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import SMALL, VALUES, VECTORS, Appended
from tests.formats.paimon.spark.test_view import java_rows, spark_rows

from nightkeep.checking.check import check
from nightkeep.formats.paimon.spark.append_view import AppendView
from nightkeep.formats.views import open_view
from nightkeep.model import Address, Outcome, UnitKey, View
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

# Types of which Spark's text is that of the driver.
SPELLED = tuple((name, kind) for name, kind in VALUES if kind in ("STRING", "INT", "BIGINT", "DECIMAL(7, 2)", "DATE"))


@pytest.fixture
def table(paimon_java: PaimonJava, tmp_path: Path) -> Appended:
    """Several vector files of one partition, and files of an older schema."""
    table = Appended.create(paimon_java, tmp_path / "t", {**VECTORS, **SMALL}, columns=SPELLED)
    for _ in range(3):
        table.append(30)
    table.delete(0.2, files=0.5)
    changes = (
        {"change": "rename_column", "name": "v3", "to": "was"},
        {"change": "add_column", "name": "w", "type": "INT"},
    )
    paimon_java.alter(table.folder, *changes)
    table.columns[2:] = [("was" if name == "v3" else name, kind) for name, kind in SPELLED] + [("w", "INT")]
    table.append(10)
    table.delete(0.2)
    return table


def test_shows_what_java_shows(spark: SparkSession, table: Appended) -> None:
    for view in View:
        assert spark_rows(spark, table.folder, view) == java_rows(table.java, table.folder, {})
    assert table.optimize().outcome is Outcome.VERIFIED
    assert spark_rows(spark, table.folder, View.RAW) == java_rows(table.java, table.folder, {})


def test_a_published_version_passes_its_check(spark: SparkSession, paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {**VECTORS, **SMALL})
    for _ in range(3):
        table.append(30)
    table.delete(0.2, files=0.5)
    document = table.optimize()
    address = Address("paimon", str(table.folder), "t")
    report = check(CheckRequest(address=address, version=document.committed_version), spark=spark)
    assert report.status is CheckStatus.PASSED, report.results
    assert "nanoseconds of v21, and times of it before 1970, are not compared" in report.coverage


def test_a_version_reports_its_rows_and_what_it_touched(spark: SparkSession, table: Appended) -> None:
    view = open_view(Address("paimon", str(table.folder), "t"), spark)
    assert isinstance(view, AppendView) and view.compares_with_parent and not view.keys
    before = view.version(view.latest())
    assert before is not None and str(before.changes_rows) == "its commit is of kind OVERWRITE"
    assert sum(state.rows or 0 for state in before.units.values()) == len(table.rows()) < before.rows_listed
    assert table.optimize().outcome is Outcome.VERIFIED
    after = view.version(view.latest())
    assert after is not None and after.changes_rows is None and after.rows_listed == len(table.rows())
    assert after.touched == after.units.keys() and UnitKey("day=2026-11-01", 0) in after.touched
    assert all(after.units[key].identity != before.units[key].identity for key in after.touched)
