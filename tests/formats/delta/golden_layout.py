"""Tables whose files, vectors, commits and checkpoints are worth keeping."""

import json
from pathlib import Path
from typing import Any

from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, named
from tests.formats.delta.golden_statements import VECTORS, create, insert, numbered


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


LAYOUT = (
    optimize,
    optimize_zorder,
    optimize_vectors,
    vectors,
    vectors_of_whole_files,
    vectors_of_partitions,
    random_prefixes,
    inline_vector,
    merge,
    reorg_purge,
    vacuum,
    overwrite,
    empty,
    checkpoint_v1,
    checkpoint_v1_parts,
    checkpoint_v1_struct,
    checkpoint_v2_parquet,
    checkpoint_v2_json,
)

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
