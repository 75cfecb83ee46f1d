"""What the stories of the golden tables are told with."""

from pathlib import Path

from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, named

VECTORS = {"delta.enableDeletionVectors": "true"}


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
