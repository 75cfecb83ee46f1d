"""What Spark makes of a version, against what delta-spark itself shows of it."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, named
from tests.drivers.lake_rows import Rows, rows_of
from tests.drivers.lakes_oracle import Lakes
from tests.support.extended import some_extended

from nightkeep.formats.delta.spark import deletion_vectors
from nightkeep.formats.views import open_view
from nightkeep.model import Address, View
from nightkeep.spark.view import Side, column

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "a b'c+{d}[e]" / "t"


def spark_rows(spark: SparkSession, table: Path, number: int | None = None) -> Rows:
    """Every row of every unit, in the form in which engines answer; a nested column is its own JSON text."""
    relation = open_view(Address("delta", str(table), "t"), spark)
    version = relation.version(relation.latest() if number is None else number)
    assert version is not None
    payload = {f"v{i}": F.col(column(i)) for i in range(len(relation.schema.fields))}
    frame = relation.rows(Side(version.number, View.RAW), sorted(version.units), payload=payload)
    assert frame.where("NOT sound").isEmpty()
    held = rows_of(frame.drop("unit", "sound").toArrow())
    found = Rows(tuple(relation.schema.fieldNames()), held.types, held.rows)
    rows_told = sum(state.rows or 0 for state in version.units.values())
    assert (rows_told, version.rows_listed) == (len(found.rows), len(found.rows))
    return found.ordered()


def same(spark: SparkSession, engine: DeltaSpark, table: Path, number: int | None = None) -> Rows:
    found = spark_rows(spark, table, number)
    # By default Spark pads CHAR once more while it reads.
    with engine.configured({"spark.sql.readSideCharPadding": "false"}):
        assert found == engine.read(table, version=number)
    return found


GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
GOLDEN_TABLES = sorted({file.parent.name for file in GOLDEN.glob("*/rows.json")} - {"stats_nested"})


@pytest.mark.few(3)
@pytest.mark.parametrize("name", some_extended(GOLDEN_TABLES, keep=12))
def test_golden_tables_have_the_rows_that_delta_spark_read(spark: SparkSession, name: str) -> None:
    """Nested columns are text here and have a test of their own."""
    told = json.loads((GOLDEN / name / "rows.json").read_text())
    relation = open_view(Address("delta", str(GOLDEN / name / "table"), name), spark)
    version = relation.version(relation.latest())
    assert version is not None
    plain = [i for i, kind in enumerate(told["types"]) if "<" not in kind]
    payload = {f"v{i}": F.col(column(i)) for i in plain}
    rows = relation.rows(Side(version.number, View.RAW), sorted(version.units), payload=payload)
    found = rows_of(rows.select(*payload).toArrow()).rows
    expected = [tuple(row[i] for i in plain) for row in told["rows"]]
    assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, expected))


EVERY_TYPE = """
    id INT, flag BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, single FLOAT, real DOUBLE, price DECIMAL(10, 2),
    precise DECIMAL(38, 10), text STRING, raw BINARY, day DATE, at TIMESTAMP, local_at TIMESTAMP_NTZ, five CHAR(5),
    most VARCHAR(9)"""
ODD_ROWS = (
    "(0" + ", NULL" * 15 + ")",
    """(1, true, -128Y, -32768S, -9223372036854775808L, FLOAT('NaN'), DOUBLE('NaN'), -99999999.99,
        -9999999999999999999999999999.0123456789, '', X'', DATE'1969-12-31', TIMESTAMP'1969-12-31T23:59:59.999999Z',
        TIMESTAMP_NTZ'1969-12-31T23:59:59.999999', 'a', '')""",
    """(2, false, 127Y, 32767S, 9223372036854775807L, FLOAT('-0.0'), DOUBLE('-0.0'), 0.00, 0.0000000001,
        'na\\u00efve \\u4e2d\\uD83D\\uDE00 a%20b', X'00ff7f', DATE'9999-12-31', TIMESTAMP'2026-11-01T00:00:00.000001Z',
        TIMESTAMP_NTZ'2026-11-01T00:00:00.000001', 'abcde', 'b ')""",
    """(3, true, 0Y, 0S, 0L, FLOAT('Infinity'), DOUBLE('-Infinity'), 1.10, 1.1, 'it''s', X'27', DATE'0001-01-01',
        TIMESTAMP'2026-11-01T12:30:00.123456Z', TIMESTAMP_NTZ'0001-01-01T00:00:00', '', 'c')""",
)


@pytest.mark.parametrize("mode", some_extended(["none", "name", "id"], keep=1))
def test_every_type_is_read_as_delta_spark_reads_it(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path, mode: str
) -> None:
    properties = f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}', 'delta.enableRowTracking' = 'false')"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} ({EVERY_TYPE}) USING delta {properties}",
        f"INSERT INTO {named(table)} VALUES {', '.join(ODD_ROWS)}",
    )
    same(spark, delta_spark, table)
    if mode != "none":
        delta_spark.sql(
            f"ALTER TABLE {named(table)} RENAME COLUMN text TO `file_path`",
            f"ALTER TABLE {named(table)} DROP COLUMN big",
            f"ALTER TABLE {named(table)} ADD COLUMN `position.of``it` BIGINT",
            f"INSERT INTO {named(table)} (id, `position.of``it`, file_path) VALUES (9, 9, 'x')",
        )
        same(spark, delta_spark, table)


NESTED = """
    (1, named_struct('x', NULL, 'deep', named_struct('r', DOUBLE('-0.0'), 'raw', X'00ff')), array(), map()),
    (2, NULL, NULL, NULL),
    (3, named_struct('x', 1, 'deep', NULL), array('', NULL, 'a,b'), map('k', TIMESTAMP'2026-11-01T00:00:00.000001Z')),
    (4, named_struct('x', 1, 'deep', named_struct('r', DOUBLE('NaN'), 'raw', X'')), array(NULL), map('k', NULL))"""


@pytest.mark.parametrize("mode", some_extended(["none", "name", "id"], keep=1))
def test_nested_values_are_text_that_loses_nothing(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path, mode: str
) -> None:
    delta_spark.sql(
        f"""CREATE TABLE {named(table)} (id INT, s STRUCT<x: INT, deep: STRUCT<r: DOUBLE, raw: BINARY>>,
            a ARRAY<STRING>, m MAP<STRING, TIMESTAMP>) USING delta
            TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')""",
        f"INSERT INTO {named(table)} VALUES {NESTED}",
    )
    assert [row[1:] for row in spark_rows(spark, table).rows] == [
        ('{"x":null,"deep":{"r":"-0.0","raw":"00FF"}}', "[]", "[]"),
        (None, None, None),
        ('{"x":1,"deep":null}', '["",null,"a,b"]', '[{"key":"k","value":"2026-11-01 00:00:00.000001"}]'),
        ('{"x":1,"deep":{"r":"NaN","raw":""}}', "[null]", '[{"key":"k","value":null}]'),
    ]


def test_files_older_than_a_field_or_a_type_are_read_with_it(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path
) -> None:
    delta_spark.sql(
        f"""CREATE TABLE {named(table)} (id TINYINT, n INT, f FLOAT, d DATE, p DECIMAL(5, 2), s STRUCT<x: SMALLINT>)
            USING delta
            TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')""",
        f"""INSERT INTO {named(table)} VALUES
            (1, 7, FLOAT(1.5), DATE'2026-11-01', 1.25, named_struct('x', 5)), (2, NULL, NULL, NULL, NULL, NULL)""",
        *(
            f"ALTER TABLE {named(table)} ALTER COLUMN {column} TYPE {kind}"
            for column, kind in (
                ("id", "BIGINT"),
                ("n", "DOUBLE"),
                ("f", "DOUBLE"),
                ("d", "TIMESTAMP_NTZ"),
                ("p", "DECIMAL(12, 4)"),
            )
        ),
        f"ALTER TABLE {named(table)} CHANGE COLUMN s.x x INT",
        f"ALTER TABLE {named(table)} ADD COLUMNS (late STRING, s.y STRING)",
        f"""INSERT INTO {named(table)} (id, n, s) VALUES (3000000000, 0.5, named_struct('x', 100000, 'y', 'z'))""",
    )
    columns = ("id", "n", "f", "d", "p", "late")
    found = spark_rows(spark, table)
    judged = delta_spark.read(table, columns=columns)
    assert sorted(zip(*map(found.column, columns), strict=True), key=str) == sorted(judged.rows, key=str)
    assert set(found.column("s")) == {'{"x":5,"y":null}', None, '{"x":100000,"y":"z"}'}


PARTITIONS = """p STRING, i INT, d DATE, at TIMESTAMP, local_at TIMESTAMP_NTZ, b BOOLEAN, n DECIMAL(6, 2), x BINARY,
    r DOUBLE, `unit` SMALLINT"""
PARTITION_ROWS = (
    """(1, 'a b/0', -1, DATE'0001-01-01', TIMESTAMP'1969-12-31T23:59:59.999999Z',
        TIMESTAMP_NTZ'2026-11-01T00:00:00', true, -1.50, X'61', DOUBLE('NaN'), 3)""",
    """(2, 'na\u00efve \u4e2d+50%=:?#{a}[b]*', 2, DATE'2026-11-01', TIMESTAMP'2026-11-01T00:00:00Z',
        TIMESTAMP_NTZ'1900-01-01T00:00:00.5', false, 0.00, X'7a7a', DOUBLE('-Infinity'), -3)""",
    "(3" + ", NULL" * 10 + ")",
    "(4, '', 0, NULL, NULL, NULL, NULL, NULL, NULL, DOUBLE('1e300'), NULL)",
)


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["none", "name"])
def test_partition_values_are_those_of_the_log(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path, mode: str
) -> None:
    delta_spark.sql(
        f"""CREATE TABLE {named(table)} (id INT, {PARTITIONS}) USING delta
            PARTITIONED BY (p, i, d, at, local_at, b, n, x, r, `unit`)
            TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')""",
        f"INSERT INTO {named(table)} VALUES {', '.join(PARTITION_ROWS)}",
    )
    same(spark, delta_spark, table)


@pytest.mark.extended
def test_vectors_hide_what_delta_spark_hides(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    select = ("id", "id % 10 AS k", "if(id % 3 = 0, 'x', NULL) AS unit")
    writing = Writing(files=3, partition_by=("k",), properties=VECTORS, options={"parquet.block.size": "4096"})
    delta_spark.write(table, Generated(3000, select), writing)
    delta_spark.sql(
        f"DELETE FROM {named(table)} WHERE id % 7 = 3 OR id < 200", f"DELETE FROM {named(table)} WHERE k = 4"
    )
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id % 11 = 3")
    found = same(spark, delta_spark, table)
    assert len(same(spark, delta_spark, table, 1).rows) > len(found.rows) > 1000
    assert len(same(spark, delta_spark, table, 0).rows) == 3000
    monkeypatch.setattr(deletion_vectors, "BROADCAST_POSITIONS", 0)
    assert spark_rows(spark, table) == found


@pytest.mark.extended
def test_row_ids_and_versions_are_compared_where_the_table_keeps_them(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path
) -> None:
    properties = {**VECTORS, "delta.enableRowTracking": "true"}
    for _ in range(3):
        delta_spark.write(table, Generated(100, ("id", "id % 2 AS k")), Writing(files=2, properties=properties))
    delta_spark.sql(
        f"DELETE FROM {named(table)} WHERE id = 5",
        f"UPDATE {named(table)} SET k = 9 WHERE id < 10",
        f"OPTIMIZE {named(table)} ZORDER BY (id)",
    )
    found = spark_rows(spark, table)
    judged = delta_spark.read(table, columns=("id", "k", "_metadata.row_id", "_metadata.row_commit_version"))
    assert (found.columns[-2:], found.rows) == (("_metadata.row_id", "_metadata.row_commit_version"), judged.rows)
    assert len(set(found.column("_metadata.row_commit_version"))) > 3
    delta_spark.sql(f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    assert spark_rows(spark, table).columns == ("id", "k")


def test_a_column_may_be_called_as_sparks_own(spark: SparkSession, lakes: Lakes, tmp_path: Path) -> None:
    table = tmp_path / "t"
    lakes.delta_rs_append(table, pa.table({"_metadata": [1, 2], "File_Path": ["x", None], "unit": [0, 0]}))
    assert spark_rows(spark, table) == lakes.delta_rs_read(table)


def test_a_version_states_who_made_it_and_what_it_touched(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path
) -> None:
    for _ in range(2):
        delta_spark.write(table, Generated(4, ("id", "id % 2 AS k")), Writing(partition_by=("k",), properties=VECTORS))
    with delta_spark.configured({"spark.databricks.delta.commitInfo.userMetadata": "the cook"}):
        delta_spark.sql(f"OPTIMIZE {named(table)} WHERE k = 1")
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE k = 0")
    delta_spark.sql(f"ALTER TABLE {named(table)} ADD COLUMN late INT")
    relation = open_view(Address("delta", str(table), "t"), spark)
    append, optimize, delete, alter = (relation.version(number) for number in (1, 2, 3, 4))
    assert append and optimize and delete and alter
    assert append.author.startswith("Apache-Spark") and append.changes_rows == "its commit, WRITE, changes data"
    assert (optimize.author, optimize.changes_rows, optimize.parent) == ("the cook", None, 1)
    assert {str(key) for key in optimize.touched} == {"k=1"}
    assert {str(key) for key in delete.touched} == {"k=0"}
    assert delete.changes_rows == "its commit, DELETE, changes data"
    assert alter.changes_rows == "its commit, ADD COLUMNS, changes the table's metadata"
    assert [(v.rows_stated, v.rows_listed) for v in (append, optimize, delete)] == [(None, 8), (8, 8), (None, 4)]
    assert relation.version(5) is None and relation.version(-1) is None
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    assert relation.version(1) is None


def test_notes_keys_and_views(spark: SparkSession, delta_spark: DeltaSpark, table: Path) -> None:
    delta_spark.write(table, Generated(4, ("id",)))
    relation = open_view(Address("delta", str(table), "t"), spark)
    assert (relation.keys, relation.published, relation.notes) == ((), View.RAW, ())
