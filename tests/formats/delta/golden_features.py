"""Tables with features a rewrite must know, and with odd partitions."""

from pathlib import Path

from tests.drivers.delta_spark import DeltaSpark, Generated, named
from tests.formats.delta.golden_statements import VECTORS, create, insert, numbered

TRACKING = {"delta.enableRowTracking": "true"}


def row_tracking(spark: DeltaSpark, table: Path) -> None:
    """Ids kept through UPDATE and OPTIMIZE, which materialises them, and files with ids of their own after it."""
    numbered(spark, table, 20, files=2, **VECTORS, **TRACKING)
    statements = ("UPDATE {} SET text = 'changed' WHERE id % 6 = 1", "DELETE FROM {} WHERE id = 9", "OPTIMIZE {}")
    spark.sql(*(statement.format(named(table)) for statement in statements))
    numbered(spark, table, 3)


def row_tracking_backfilled(spark: DeltaSpark, table: Path) -> None:
    """Row tracking turned on later: a backfill commit gives old files their ids."""
    numbered(spark, table, 10, files=2)
    spark.sql(f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    spark.sql(f"DELETE FROM {named(table)} WHERE id = 3")


def in_commit_timestamps(spark: DeltaSpark, table: Path) -> None:
    """Turned on at version 2, so that the properties say where they start."""
    numbered(spark, table, 6)
    numbered(spark, table, 6)
    spark.sql(f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    numbered(spark, table, 6)
    spark.sql(f"OPTIMIZE {named(table)}")


def mapping_name(spark: DeltaSpark, table: Path) -> None:
    """Columns found by physical names; renamed, dropped, added again, nested, in partitions."""
    _mapped(spark, table, "name")


def mapping_id(spark: DeltaSpark, table: Path) -> None:
    """The same, columns found by field ids."""
    _mapped(spark, table, "id")


def _mapped(spark: DeltaSpark, table: Path, mode: str) -> None:
    properties = {**VECTORS, "delta.columnMapping.mode": mode}
    columns = "`a b` INT, p STRING, place STRUCT<x: INT, `y,z`: STRING>, old STRING, tags ARRAY<STRUCT<n: INT>>"
    create(spark, table, columns, partition_by="p", properties=properties)
    row = "({0}, 'p{1}', named_struct('x', {0}, 'y,z', 'n{0}'), 'old', array(named_struct('n', {0})))"
    insert(spark, table, ", ".join(row.format(n, n % 2) for n in range(6)))
    changes = ("RENAME COLUMN p TO part", "RENAME COLUMN place.x TO east", "DROP COLUMN old", "ADD COLUMN old INT")
    spark.sql(*(f"ALTER TABLE {named(table)} {change}" for change in changes))
    insert(spark, table, "(10, 'p1', named_struct('x', 10, 'y,z', NULL), NULL, 7)")
    spark.sql(f"DELETE FROM {named(table)} WHERE `a b` = 3", f"OPTIMIZE {named(table)} WHERE part = 'p1'")


def mapping_upgraded(spark: DeltaSpark, table: Path) -> None:
    """Mapping turned on later: physical names are the old names."""
    numbered(spark, table, 6)
    properties = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    spark.sql(f"ALTER TABLE {named(table)} SET TBLPROPERTIES ({properties})")
    spark.sql(f"ALTER TABLE {named(table)} RENAME COLUMN k TO kind")
    spark.write(table, Generated(2, ("id", "7 AS kind", "'new' AS text")))


def type_widening(spark: DeltaSpark, table: Path) -> None:
    """Old files hold narrower types: of columns, of a nested leaf, of an element."""
    columns = "id INT, n TINYINT, f FLOAT, price DECIMAL(6, 2), day DATE, place STRUCT<x: SMALLINT>, tags ARRAY<INT>"
    properties = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported", **VECTORS}
    create(spark, table, columns, properties=properties)
    row = "({0}, {0}Y, FLOAT(0.{0}), {0}.25, DATE'2026-11-0{0}', named_struct('x', {0}S), array({0}))"
    insert(spark, table, ", ".join(row.format(n) for n in range(1, 5)))
    wider = {"id": "BIGINT", "n": "INT", "f": "DOUBLE", "price": "DECIMAL(12, 4)", "day": "TIMESTAMP_NTZ"}
    for name, text in {**wider, "place.x": "INT", "tags.element": "BIGINT"}.items():
        spark.sql(f"ALTER TABLE {named(table)} ALTER COLUMN {name} TYPE {text}")
    at = "TIMESTAMP_NTZ'2026-11-09T01:02:03'"
    insert(spark, table, f"(5000000000, 70000, 0.1D, 12345.6789, {at}, named_struct('x', 70000), array(5000000000))")
    spark.sql(f"DELETE FROM {named(table)} WHERE id = 2")


def change_feed(spark: DeltaSpark, table: Path) -> None:
    """Change files of UPDATE and of a DELETE without vectors."""
    numbered(spark, table, 20, files=2, **{"delta.enableChangeDataFeed": "true"})
    spark.sql(f"UPDATE {named(table)} SET text = 'changed' WHERE k = 1", f"DELETE FROM {named(table)} WHERE k = 2")
    spark.sql(f"OPTIMIZE {named(table)}")


def constraints(spark: DeltaSpark, table: Path) -> None:
    """NOT NULL, CHECK, generated, identity and default columns."""
    columns = """key BIGINT GENERATED ALWAYS AS IDENTITY, id INT NOT NULL, at TIMESTAMP,
        day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), note STRING DEFAULT 'none'"""
    create(spark, table, columns, partition_by="day", properties={"delta.feature.allowColumnDefaults": "supported"})
    spark.sql(f"ALTER TABLE {named(table)} ADD CONSTRAINT positive CHECK (id > 0)")
    for n in (1, 2):
        rows = f"SELECT /*+ COALESCE(1) */ * FROM VALUES ({n}, TIMESTAMP'2026-11-0{n}T06:00:00'), ({n + 5}, NULL)"
        spark.sql(f"INSERT INTO {named(table)} (id, at) {rows}")
    spark.sql(f"OPTIMIZE {named(table)}")


def append_only(spark: DeltaSpark, table: Path) -> None:
    """OPTIMIZE of a table that refuses DELETE."""
    numbered(spark, table, 6, files=2, **{"delta.appendOnly": "true"})
    spark.sql(f"OPTIMIZE {named(table)}")


def timestamp_ntz(spark: DeltaSpark, table: Path) -> None:
    """A timestamp without a zone as column and as partition."""
    create(spark, table, "id INT, at TIMESTAMP_NTZ, p TIMESTAMP_NTZ", partition_by="p")
    moment = "TIMESTAMP_NTZ'2026-11-01T06:07:08.000009'"
    insert(spark, table, f"(1, {moment}, {moment}), (2, NULL, NULL), (3, TIMESTAMP_NTZ'1969-12-31T23:59:59.5', NULL)")


def clustered(spark: DeltaSpark, table: Path) -> None:
    """CLUSTER BY, and an OPTIMIZE that tags what it wrote."""
    spark.sql(f"CREATE TABLE {named(table)} (id INT, k INT) USING delta CLUSTER BY (id, k)")
    insert(spark, table, "(1, 1), (2, 3)", "(2, 2)")
    spark.sql(f"OPTIMIZE {named(table)}")


def protocol_checks(spark: DeltaSpark, table: Path) -> None:
    """vacuumProtocolCheck and checkpointProtection, which ask nothing of a rewrite."""
    features = ("vacuumProtocolCheck", "checkpointProtection")
    numbered(spark, table, 6, files=2, **{f"delta.feature.{name}": "supported" for name in features})


def variant(spark: DeltaSpark, table: Path) -> None:
    """A VARIANT column beside a plain one."""
    create(spark, table, "id INT, v VARIANT")
    spark.sql(f"""INSERT INTO {named(table)} SELECT 1, parse_json('{{"a": [1, "x"]}}')""")


# Partitions


def partition_paths(spark: DeltaSpark, table: Path) -> None:
    """Values that directory names escape and the log escapes again; an empty text is null."""
    values = (
        "'a b/0'",
        "'50%'",
        "'x=y:z'",
        "'na\\u00efve \\u4e2d'",
        '"it\'s"',
        "'a#b?c'",
        "'%20'",
        "' '",
        "''",
        "NULL",
    )
    create(spark, table, "id INT, p STRING", partition_by="p")
    insert(spark, table, ", ".join(f"({n}, {value})" for n, value in enumerate(values)))


def partition_types(spark: DeltaSpark, table: Path) -> None:
    """A partition column of every type."""
    columns = {
        "flag": ("BOOLEAN", "true", "false"),
        "tiny": ("TINYINT", "-1Y", "1Y"),
        "big": ("BIGINT", "-9223372036854775808L", "0L"),
        "single": ("FLOAT", "FLOAT(0.1)", "FLOAT('NaN')"),
        "real": ("DOUBLE", "1e21D", "DOUBLE('-0.0')"),
        "price": ("DECIMAL(10, 2)", "1.10", "-0.05"),
        "raw": ("BINARY", "X'c3a9ff'", "X'2f25'"),
        "day": ("DATE", "DATE'1969-12-31'", "DATE'9999-12-31'"),
        "at": ("TIMESTAMP", "TIMESTAMP'2026-11-01T06:07:08.123456'", "TIMESTAMP'1969-12-31T23:59:59'"),
    }
    typed = ", ".join(f"{name} {text}" for name, (text, *_) in columns.items())
    create(spark, table, f"id INT, {typed}", partition_by=", ".join(columns))
    rows = [", ".join(values) for values in zip(*(values for _, *values in columns.values()), strict=True)]
    rows += [", ".join(["NULL"] * len(columns))]
    insert(spark, table, ", ".join(f"({n}, {values})" for n, values in enumerate(rows)))


FEATURES = (
    row_tracking,
    row_tracking_backfilled,
    in_commit_timestamps,
    mapping_name,
    mapping_id,
    mapping_upgraded,
    type_widening,
    change_feed,
    constraints,
    append_only,
    timestamp_ntz,
    clustered,
    protocol_checks,
    variant,
    partition_paths,
    partition_types,
)
