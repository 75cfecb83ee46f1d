"""Statements -> small tables written by delta-spark 4.4.0, each beside its rows as delta-spark reads them.

Same rows and actions on every run; names, ids and times are Delta's own. Run from the repository:
python -m tests.delta.make_golden [name ...]
"""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.delta.golden_statistics import STATISTICS
from tests.engines.delta_spark import DeltaSpark, Generated, Writing, named
from tests.engines.lake_rows import Rows

GOLDEN = Path(__file__).parent / "golden"
VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
ROW_IDS = ("id", "_metadata.row_id", "_metadata.row_commit_version")

Story = Callable[[DeltaSpark, Path], None]


def create(
    spark: DeltaSpark, table: Path, columns: str, *, partition_by: str = "", properties: dict[str, str] | None = None
) -> None:
    partitioned = f" PARTITIONED BY ({partition_by})" if partition_by else ""
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in (properties or {}).items())
    wanted = f" TBLPROPERTIES ({listed})" if listed else ""
    spark.sql(f"CREATE TABLE {named(table)} ({columns}) USING delta{partitioned}{wanted}")


def insert(spark: DeltaSpark, table: Path, *batches: str) -> None:
    """A commit with one file per partition for each batch of VALUES rows."""
    for rows in batches:
        spark.sql(f"INSERT INTO {named(table)} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")


def numbered(spark: DeltaSpark, table: Path, rows: int, *, files: int = 1, **properties: str) -> None:
    """Columns id, k = id % 5, text (null where id % 7 = 0)."""
    select = ("id", "CAST(id % 5 AS INT) AS k", "IF(id % 7 = 0, NULL, 'text ' || id) AS text")
    spark.write(table, Generated(rows, select), Writing(files=files, properties=properties))


# Layout


def optimize(spark: DeltaSpark, table: Path) -> None:
    """Three files in each of two partitions: one partition compacted, then the whole table. Keeps version checksums."""
    create(spark, table, "id INT, p STRING, v DOUBLE", partition_by="p")
    insert(spark, table, *(f"({n}, 'a', {n}.5), ({n + 10}, NULL, NULL)" for n in range(3)))
    spark.sql(f"OPTIMIZE {named(table)} WHERE p = 'a'", f"OPTIMIZE {named(table)}")


def optimize_zorder(spark: DeltaSpark, table: Path) -> None:
    """ZORDER BY a column and a nested leaf, into several files."""
    select = ("CAST(id AS INT) AS id", "named_struct('x', (id * 37) % 101, 'y', 'n' || id) AS place")
    spark.write(table, Generated(200, select), Writing(files=4, properties=VECTORS))
    with spark.configured({"spark.databricks.delta.optimize.maxFileSize": "3000"}):
        spark.sql(f"OPTIMIZE {named(table)} ZORDER BY (id, place.x)")


def optimize_vectors(spark: DeltaSpark, table: Path) -> None:
    """OPTIMIZE of files with vectors: the removes repeat them."""
    numbered(spark, table, 60, files=3, **VECTORS)
    spark.sql(f"DELETE FROM {named(table)} WHERE k = 2", f"OPTIMIZE {named(table)}")


def vectors(spark: DeltaSpark, table: Path) -> None:
    """Several vectors in one file, some extended by a second DELETE, files removed once nothing is left."""
    numbered(spark, table, 120, files=4, **VECTORS)
    third = "id BETWEEN 60 AND 89 AND text IS"
    for condition in ("k = 3", "id < 40 AND k = 1", f"{third} NOT NULL", f"{third} NULL", "id >= 90"):
        spark.sql(f"DELETE FROM {named(table)} WHERE {condition}")


def vectors_of_whole_files(spark: DeltaSpark, table: Path) -> None:
    """Vectors that leave nothing of a partition: Delta keeps such files where no statistics told it their rows."""
    writing = Writing(files=2, partition_by=("p",), properties=VECTORS)
    with spark.configured({"spark.databricks.delta.stats.collect": "false"}):
        spark.write(table, Generated(40, ("id", "id % 2 AS p")), writing)
    spark.sql(f"DELETE FROM {named(table)} WHERE p = 1 AND id >= 0")


def vectors_of_partitions(spark: DeltaSpark, table: Path) -> None:
    """Vectors of files in odd partitions, and an UPDATE, which marks the old rows and adds a file."""
    create(spark, table, "id INT, p STRING", partition_by="p", properties=VECTORS)
    insert(spark, table, ", ".join(f"({n}, {p})" for n in range(40) for p in ("'a b/0'", "'50%'", "NULL")))
    spark.sql(f"DELETE FROM {named(table)} WHERE id % 9 = 0", f"UPDATE {named(table)} SET id = id + 100 WHERE id = 5")


def random_prefixes(spark: DeltaSpark, table: Path) -> None:
    """Data files and vectors in folders of random names, which descriptors put before the id of a vector file."""
    numbered(spark, table, 40, files=2, **VECTORS, **{"delta.randomizeFilePrefixes": "true"})
    spark.sql(f"DELETE FROM {named(table)} WHERE k = 3")


def inline_vector(spark: DeltaSpark, table: Path) -> None:
    """delta-spark writes no inline vectors: here its own vector is moved into the log, which it then reads."""
    numbered(spark, table, 50, **VECTORS)
    spark.sql(f"DELETE FROM {named(table)} WHERE k = 0 OR id > 44")
    commit = table / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            _move_into_log(table, action["add"]["deletionVector"])
    commit.write_text("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions))
    spark.forget()


def merge(spark: DeltaSpark, table: Path) -> None:
    """MERGE with matched updates, deletes and inserts on a table with vectors."""
    numbered(spark, table, 40, files=2, **VECTORS)
    spark.sql(
        f"""MERGE INTO {named(table)} t USING (SELECT id * 3 AS id FROM range(20)) s ON t.id = s.id
        WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET text = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, k, text) VALUES (s.id, 9, 'new')"""
    )


def reorg_purge(spark: DeltaSpark, table: Path) -> None:
    """A lone file with a vector: OPTIMIZE leaves it, REORG rewrites it."""
    numbered(spark, table, 50, **VECTORS)
    statements = ("DELETE FROM {} WHERE k = 2", "OPTIMIZE {}", "REORG TABLE {} APPLY (PURGE)")
    spark.sql(*(statement.format(named(table)) for statement in statements))


def vacuum(spark: DeltaSpark, table: Path) -> None:
    """The two empty commits of VACUUM, after files of an OPTIMIZE were really deleted."""
    numbered(spark, table, 30, files=3)
    spark.sql(f"OPTIMIZE {named(table)}")
    with spark.configured({"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        spark.sql(f"VACUUM {named(table)} RETAIN 0 HOURS")


def overwrite(spark: DeltaSpark, table: Path) -> None:
    """An overwrite with another schema, then RESTORE to the first version: files come back to life."""
    numbered(spark, table, 20, files=2)
    options = {"overwriteSchema": "true"}
    spark.write(table, Generated(5, ("id", "'x' AS other")), Writing(mode="overwrite", options=options))
    spark.sql(f"RESTORE TABLE {named(table)} TO VERSION AS OF 0")


def empty(spark: DeltaSpark, table: Path) -> None:
    """A table that never had a row."""
    create(spark, table, "id INT NOT NULL COMMENT 'a key', v STRING")


# Checkpoints


def checkpointed(spark: DeltaSpark, table: Path) -> None:
    """Vectors, removes, a tag-less OPTIMIZE, an application's transaction: what a checkpoint must keep."""
    options = {"txnAppId": "writer", "txnVersion": "7"}
    spark.write(table, Generated(30, ("id", "id % 3 AS k")), Writing(partition_by=("k",), options=options, files=2))
    spark.sql(f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {named(table)} WHERE id IN (4, 5, 20)", f"OPTIMIZE {named(table)} WHERE k = 0")
    spark.checkpoint(table)
    insert(spark, table, "(100, 0), (101, 1)")


def checkpoint_v1(spark: DeltaSpark, table: Path) -> None:
    """One Parquet file, and a commit after it."""
    checkpointed(spark, table)


def checkpoint_v1_parts(spark: DeltaSpark, table: Path) -> None:
    """Several Parquet files."""
    with spark.configured({"spark.databricks.delta.checkpoint.partSize": "4"}):
        checkpointed(spark, table)


def checkpoint_v1_struct(spark: DeltaSpark, table: Path) -> None:
    """Statistics and partition values as structs only: the JSON of statistics is null."""
    create(
        spark,
        table,
        "id INT, day DATE, p STRING, at TIMESTAMP, price DECIMAL(10, 2), real DOUBLE, place STRUCT<x: INT>",
        partition_by="day, p",
        properties={
            **VECTORS,
            "delta.checkpoint.writeStatsAsStruct": "true",
            "delta.checkpoint.writeStatsAsJson": "false",
        },
    )
    at, place = "TIMESTAMP'2026-11-01T06:07:08.123456'", "named_struct('x', 3)"
    rows = f"(1, DATE'2026-11-01', 'a b', {at}, 1.25, 0.5, {place}), (2, NULL, NULL, NULL, NULL, NULL, NULL)"
    insert(spark, table, rows, f"(3, DATE'1969-12-31', '50%', {at}, -1.25, DOUBLE('NaN'), {place})")
    spark.checkpoint(table)


def checkpoint_v2_parquet(spark: DeltaSpark, table: Path) -> None:
    """A manifest in Parquet with sidecars."""
    _checkpoint_v2(spark, table, "parquet")


def checkpoint_v2_json(spark: DeltaSpark, table: Path) -> None:
    """A manifest in JSON with sidecars."""
    _checkpoint_v2(spark, table, "json")


def _checkpoint_v2(spark: DeltaSpark, table: Path, manifest: str) -> None:
    settings = {"checkpointV2.topLevelFileFormat": manifest, "checkpoint.partSize": "4"}
    properties = {"spark.databricks.delta.properties.defaults.checkpointPolicy": "v2"}
    delta = {f"spark.databricks.delta.{name}": value for name, value in settings.items()}
    with spark.configured({**delta, **properties}):
        checkpointed(spark, table)


# Features


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


STORIES: tuple[Story, ...] = (
    optimize, optimize_zorder, optimize_vectors, vectors, vectors_of_whole_files, vectors_of_partitions,
    random_prefixes, inline_vector, merge, reorg_purge, vacuum, overwrite, empty, checkpoint_v1, checkpoint_v1_parts,
    checkpoint_v1_struct, checkpoint_v2_parquet, checkpoint_v2_json, row_tracking, row_tracking_backfilled,
    in_commit_timestamps, mapping_name, mapping_id, mapping_upgraded, type_widening, change_feed, constraints,
    append_only, timestamp_ntz, clustered, protocol_checks, variant, partition_paths, partition_types, *STATISTICS,
)  # fmt: skip


def main(names: Sequence[str]) -> None:
    with DeltaSpark() as spark:
        for story in STORIES:
            if not names or story.__name__ in names:
                _make(spark, story)


def _make(spark: DeltaSpark, story: Story) -> None:
    folder = GOLDEN / story.__name__
    shutil.rmtree(folder, ignore_errors=True)
    table = folder / "table"
    folder.mkdir(parents=True)
    story(spark, table)
    _tidy(table, keep_checksums=story is optimize)
    spark.forget()
    if story is not variant:
        _write_rows(folder / "rows.json", spark.read(table))
    if "row_tracking" in story.__name__:
        _write_rows(folder / "row_ids.json", spark.read(table, columns=ROW_IDS))


def _tidy(table: Path, *, keep_checksums: bool) -> None:
    """Without Hadoop's checksums, without Delta's where one table suffices, without empty folders."""
    for file in sorted(table.rglob("*")):
        if file.name.endswith(".crc") and (file.name.startswith(".") or not keep_checksums):
            file.unlink()
    for folder in sorted((path for path in table.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _write_rows(file: Path, rows: Rows) -> None:
    """One row per line."""
    lines = ",\n  ".join(json.dumps(row) for row in rows.rows)
    head = f'{{"columns": {json.dumps(rows.columns)},\n "types": {json.dumps(rows.types)},\n "rows": [\n  '
    file.write_text(f"{head}{lines}\n]}}\n" if rows.rows else f"{head}]}}\n")


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def _move_into_log(table: Path, descriptor: dict[str, Any]) -> None:
    (file,) = table.glob("deletion_vector_*.bin")
    start = descriptor.pop("offset") + 4
    payload = file.read_bytes()[start : start + descriptor["sizeInBytes"]]
    file.unlink()
    padded = payload + b"\0" * (-len(payload) % 4)
    words = [int.from_bytes(padded[at : at + 4], "big") for at in range(0, len(padded), 4)]
    text = "".join(_Z85[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))
    descriptor.update(storageType="i", pathOrInlineDv=text)


if __name__ == "__main__":
    main(sys.argv[1:])
