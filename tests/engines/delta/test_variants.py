"""Columns of type variant: shown and packed as they are stored, and compared by their values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lake_rows import Rows
from tests.formats.delta.runs import optimize, policy

import nightkeep
from nightkeep.checking.check import check
from nightkeep.errors import UsageError
from nightkeep.model import Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

TEXTS = ('{"a": 1, "b": [true, null, "x"]}', "5", "null", '"a text"', "[]", "1.5")
VALUES = "id, to_json(v), schema_of_variant(v), to_json(get(l, 0))"


def write(spark: DeltaSpark, table: Path, *, mapping: str = "none", **properties: str) -> None:
    """Four files: six kinds of variants in a column and in an array, nulls of both, and a row that is deleted."""
    stated = {"delta.columnMapping.mode": mapping, **properties}
    properties_text = ", ".join(f"'{name}' = '{value}'" for name, value in stated.items())
    rows = ", ".join(f"({n}, parse_json('{text}'), array(parse_json('{text}')))" for n, text in enumerate(TEXTS))
    spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, v VARIANT, l ARRAY<VARIANT>) USING delta"
        f" TBLPROPERTIES ({properties_text})",
        f"INSERT INTO {named(table)} VALUES {rows}, (100, NULL, NULL)",
        f"INSERT INTO {named(table)} VALUES (101, parse_json('7'), array()), (102, NULL, array(NULL))",
        f"DELETE FROM {named(table)} WHERE id = 1",
    )


def shown(spark: DeltaSpark, table: Path) -> Rows:
    return spark.sql(f"SELECT {VALUES} FROM {named(table)} ORDER BY id")


@pytest.mark.few(1)
@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_variants_are_shown_as_they_are_stored(delta_spark: DeltaSpark, tmp_path: Path, mapping: str) -> None:
    table = tmp_path / "t"
    write(delta_spark, table, mapping=mapping)
    found = nightkeep.read(f"delta:{table}").read_all().sort_by("id")
    assert [row[:2] + row[3:] for row in shown(delta_spark, table).rows] == [
        (row["id"], text_of(row["v"]), text_of(row["l"][0]) if row["l"] else None) for row in found.to_pylist()
    ]
    assert nightkeep.read(f"delta:{table}", where="id < 3").read_all().num_rows == 2


def text_of(variant: dict[str, bytes] | None) -> str | None:
    """As Spark's own decoder prints it."""
    return None if variant is None else VariantVal(variant["value"], variant["metadata"]).toJson()


@pytest.mark.few(1)
@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_variants_are_packed_as_they_are_stored(
    delta_spark: DeltaSpark, spark: SparkSession, tmp_path: Path, mapping: str
) -> None:
    """delta-spark reads, deletes, appends and optimizes on top; the check by Spark SQL passes."""
    table = tmp_path / "t"
    write(delta_spark, table, mapping=mapping, **{"delta.enableDeletionVectors": "true"})
    before = shown(delta_spark, table)
    done = optimize(table)
    assert done.outcome is Outcome.VERIFIED, done.reason
    told = check(CheckRequest(policy(table).address, done.committed_version), spark=spark)
    assert told.status is CheckStatus.PASSED, told
    assert shown(delta_spark, table) == before
    (add,) = added(table)
    stated = json.loads(add["stats"])["nullCount"]
    assert sorted(stated.values()) == [0, 1, 2]
    delta_spark.sql(
        f"DELETE FROM {named(table)} WHERE id = 2",
        f"INSERT INTO {named(table)} VALUES (103, parse_json('[1]'), NULL)",
        f"OPTIMIZE {named(table)}",
    )
    left = [row for row in before.rows if row[0] != 2]
    assert [row for row in shown(delta_spark, table).rows if row[0] != 103] == left
    assert nightkeep.audit(f"delta:{table}", since=0, reports=tmp_path / "reports").outcome is Outcome.VERIFIED


def added(table: Path) -> list[dict[str, Any]]:
    newest = max((table / "_delta_log").glob("0*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    return [action["add"] for action in actions if "add" in action]


def test_a_column_of_variants_that_files_lack_is_null(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT) USING delta",
        *(f"INSERT INTO {named(table)} VALUES ({number})" for number in range(2)),
        f"ALTER TABLE {named(table)} ADD COLUMN v VARIANT",
    )
    done = optimize(table)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert delta_spark.sql(f"SELECT id, to_json(v) FROM {named(table)} ORDER BY id").rows == ((0, None), (1, None))


@pytest.mark.parametrize("condition", ["v = 5", "v IS NULL AND v > 1", "v.value = X'00'", "v IN (1)"])
def test_no_row_is_chosen_by_the_values_of_a_variant(delta_spark: DeltaSpark, tmp_path: Path, condition: str) -> None:
    table = tmp_path / "t"
    write(delta_spark, table, **{"delta.enableDeletionVectors": "true"})
    with pytest.raises(UsageError, match="condition on rows"):
        nightkeep.delete(f"delta:{table}", rows_where=condition, reports=tmp_path / "reports")


def test_rows_are_deleted_where_a_variant_is_null(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(delta_spark, table, **{"delta.enableDeletionVectors": "true"})
    told = nightkeep.delete(f"delta:{table}", rows_where="v IS NULL", reports=tmp_path / "reports", no_check=True)
    assert told.outcome is Outcome.VERIFIED, told.reason
    assert [row[0] for row in shown(delta_spark, table).rows] == [0, *range(2, len(TEXTS)), 101]


def test_nothing_is_ordered_by_a_variant(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(delta_spark, table)
    with pytest.raises(UsageError, match=r"cluster by v: its type .* has no order"):
        nightkeep.run(f"delta:{table}", operation="optimize", zorder=["v"], full=True, reports=tmp_path / "reports")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("other", "equal"),
    [
        ('parse_json(\'{"b": 2, "a": 1}\')', True),
        ("to_variant_object(named_struct('a', 1L, 'b', 2S))", True),
        ("to_variant_object(named_struct('a', 1.0D, 'b', 2))", False),
        ('parse_json(\'{"a": 1, "b": "2"}\')', False),
    ],
    ids=["order of names", "width of numbers", "another type", "a text"],
)
def test_the_check_compares_values_and_not_their_encoding(
    delta_spark: DeltaSpark, spark: SparkSession, tmp_path: Path, other: str, *, equal: bool
) -> None:
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, v VARIANT) USING delta",
        f'INSERT INTO {named(table)} SELECT 1, parse_json(\'{{"a": 1, "b": 2}}\')',
        f"UPDATE {named(table)} SET v = {other}",
    )
    document = nightkeep.diff(f"delta:{table}", version=2, other=1, spark=spark)
    assert document.equal is equal, document
