"""Tables with deletes of every kind, as Iceberg Java writes them."""

from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.golden_shapes import BY_DAY, ORDERS, days, order

ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}


def upserts(java: IcebergJava, table: Table, version: int) -> None:
    """Three checkpoints by one key: equality deletes of older rows, position deletes or vectors of their own."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.cdc(table, [("+I", order(n)) for n in range(8)], keys=("id",))
    java.cdc(table, [("+I", order(1, 2, "new")), ("+I", order(1, 3, "newer")), ("-D", order(2))], keys=("id",))
    java.cdc(table, [("+U", order(n, 4, "last")) for n in (2, 3)], keys=("id",))


def upserts_of_two_keys(java: IcebergJava, table: Table, version: int) -> None:
    """In partitions by a column of the key; nothing follows a row from one to the other."""
    java.create(table, ORDERS, Layout(BY_DAY, version))
    java.cdc(table, [("+I", row) for row in days(range(8))], keys=("id", "day"))
    java.cdc(table, [("+I", order(n, 1 + n % 2, "new")) for n in (0, 1, 1, 2)], keys=("id", "day"))
    java.cdc(table, [("-D", order(4, 1)), ("-D", order(5, 1)), ("+I", order(9, 3))], keys=("id", "day"))


def changelog(java: IcebergJava, table: Table, version: int) -> None:
    """Before-images: equality deletes with whole rows, of which the key counts."""
    java.create(table, ORDERS, Layout(BY_DAY, version))
    java.cdc(table, [("+I", row) for row in days(range(6))], keys=("id", "day"), upsert=False)
    moved = [("-U", order(0, 1)), ("+U", order(0, 2, "moved")), ("-D", order(3, 2, "not its name"))]
    java.cdc(table, moved, keys=("id", "day"), upsert=False)


def mixed_keys(java: IcebergJava, table: Table, version: int) -> None:
    """Deletes by id, by name, and by id and day, one over the other."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, days(range(10)))
    java.commit(table, java.equality_deletes(table, [[1], [2]], keys=("id",)))
    java.append(table, [order(1, 2, "name 7")])
    java.commit(table, java.equality_deletes(table, [["name 7"], ["none"]], keys=("name",)))
    java.commit(table, java.equality_deletes(table, [[3, "2026-11-02"], [4, "2026-11-02"]], keys=("id", "day")))
    java.append(table, [order(3, 2, "again")])


def null_keys(java: IcebergJava, table: Table, version: int) -> None:
    """A null matches a null, in one key and beside a value."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, [order(1, 1, None), order(2, None), order(3, None, None), order(4)])
    java.commit(table, java.equality_deletes(table, [["2026-11-01", None], [None, "name 2"]], keys=("day", "name")))
    java.append(table, [order(5, 1, None), order(6, None, None)])
    java.commit(table, java.equality_deletes(table, [[None]], keys=("day",)))
    java.append(table, [order(7, None, None)])


def float_keys(java: IcebergJava, table: Table, version: int) -> None:
    """NaN matches NaN, and 0.0 does not match -0.0; a file of deletes has NaN alone or never."""
    java.create(table, (("id", "int"), ("f", "float"), ("d", "double")), Layout(format_version=version))
    values = [0.0, -0.0, "NaN", 1.5, None, "Infinity"]
    java.append(table, [[n, value, value] for n, value in enumerate(values)])
    java.commit(table, java.equality_deletes(table, [[-0.0], [1.5]], keys=("f",)))
    java.append(table, [[n, value, value] for n, value in enumerate(values, 10)])
    java.commit(table, java.equality_deletes(table, [["NaN"]], keys=("d",)))
    java.commit(table, java.equality_deletes(table, [[10, -0.0], [11, -0.0], [14, None]], keys=("id", "d")))


def renamed_key(java: IcebergJava, table: Table, version: int) -> None:
    """The key column has another name in each delete file."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, days(range(6)))
    java.commit(table, java.equality_deletes(table, [[1]], keys=("id",)))
    java.alter(table, {"change": "rename_column", "name": "id", "to": "number"})
    java.commit(table, java.equality_deletes(table, [[2]], keys=("number",)))


def widened_key(java: IcebergJava, table: Table, version: int) -> None:
    """An int, a float and a decimal that grew: rows and deletes of both widths."""
    columns = (("id", "int", True), ("price", "decimal(9,2)"), ("name", "string"))
    java.create(table, columns, Layout(format_version=version))
    java.append(table, [[n, f"{n}.50", f"n{n}"] for n in range(6)])
    java.commit(table, java.equality_deletes(table, [[1], [-1]], keys=("id",)))
    java.alter(
        table,
        {"change": "change_type", "name": "id", "type": "long"},
        {"change": "change_type", "name": "price", "type": "decimal(20,2)"},
    )
    java.append(table, [[2**40 + n, f"{n}.75", "late"] for n in range(3)])
    java.commit(table, java.equality_deletes(table, [[2], [2**40]], keys=("id",)))
    java.commit(table, java.equality_deletes(table, [["3.50"], ["1.75"]], keys=("price",)))


def added_key(java: IcebergJava, table: Table, version: int) -> None:
    """A key column that older files lack: its value in them is null."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, days(range(4)))
    java.alter(table, {"change": "add_column", "name": "shop", "type": "int"})
    java.append(table, [[*order(4), 1], [*order(5), None]])
    java.commit(table, java.equality_deletes(table, [[1, None], [2, 1], [4, 1]], keys=("id", "shop")))


def defaulted_key(java: IcebergJava, table: Table) -> None:
    """A key column that older files lack and that has an initial default."""
    java.create(table, ORDERS, Layout(format_version=3))
    java.append(table, days(range(4)))
    java.alter(table, {"change": "add_column", "name": "shop", "type": "int", "default": 7})
    java.append(table, [[*order(4), 1], [*order(5), 7]])
    java.commit(table, java.equality_deletes(table, [[1, 7], [2, None], [5, 7]], keys=("id", "shop")))


def dropped_key(java: IcebergJava, table: Table, version: int) -> None:
    """The key column is gone from the schema; its deletes still hold."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, days(range(6)))
    java.commit(table, java.equality_deletes(table, [["name 1"], ["name 2"]], keys=("name",)))
    java.alter(table, {"change": "drop_column", "name": "name"})
    java.append(table, [[6, "2026-11-01", "6.25"]])


def full_rows(java: IcebergJava, table: Table, version: int) -> None:
    """Deletes of rows by all of their columns, one of which differs."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, days(range(5)))
    keys = ("id", "day", "name", "price")
    java.commit(table, java.equality_deletes(table, [order(1, 2), order(2, 2)], keys=keys))
    java.commit(table, java.equality_deletes(table, [order(3, 9, "else")], keys=("id",), full=True))


def same_sequence(java: IcebergJava, table: Table, version: int) -> None:
    """Rows and deletes of their keys in one commit: the rows stay."""
    java.create(table, ORDERS, Layout(format_version=version))
    java.append(table, days(range(4)))
    rows = java.rows(table, [order(1, 2, "new"), order(2, 2, "new")])
    java.commit(table, rows, java.equality_deletes(table, [[1], [2], [3]], keys=("id",)))


def dead_files(java: IcebergJava, table: Table, version: int) -> None:
    """A file whose rows are all deleted, a delete file that no file is left for, one that matches nothing."""
    java.create(table, ORDERS, Layout(BY_DAY, version))
    java.append(table, days(range(6)))
    gone = [[n, "2026-11-01"] for n in range(0, 6, 2)]
    java.commit(table, java.equality_deletes(table, gone, keys=("id", "day"), partition=("2026-11-01",)))
    other = java.equality_deletes(table, [[1, "2026-12-01"]], keys=("id", "day"), partition=("2026-12-01",))
    java.commit(table, other)


def positions(java: IcebergJava, table: Table) -> None:
    """Position deletes of one data file, and of all files of a partition in one file."""
    java.create(table, ORDERS, Layout(BY_DAY))
    rows = java.rows(table, days(range(16)), rows_per_file=4)
    java.commit(table, rows, kind="append")
    each = java.position_deletes(table, [(path, 0) for path in rows.paths[:2]], granularity="file")
    java.commit(table, each)
    java.commit(table, java.position_deletes(table, sorted((path, n) for path in rows.paths for n in (1, 3))))


def vectors(java: IcebergJava, table: Table) -> None:
    """One Puffin file with vectors of three data files; then one of them grows."""
    java.create(table, ORDERS, Layout(format_version=3))
    rows = java.rows(table, days(range(16)), rows_per_file=4)
    java.commit(table, rows, kind="append")
    java.commit(table, java.vectors(table, [(path, n) for path in rows.paths[:3] for n in (0, 2)]))
    java.commit(table, java.vectors(table, [(rows.paths[0], 1)]))


def vectors_named_parquet(java: IcebergJava, table: Table) -> None:
    """Puffin files under the name that Flink's writer gives them."""
    java.create(table, ORDERS, Layout(BY_DAY, 3))
    rows = java.rows(table, days(range(8)))
    java.commit(table, rows, kind="append")
    java.commit(table, java.vectors(table, [(path, 1) for path in rows.paths], flink_name=True))


def upgraded(java: IcebergJava, table: Table) -> None:
    """Position deletes of the second version in a table of the third; a vector has taken one file's over."""
    positions(java, table)
    java.alter(table, {"change": "set_properties", "properties": {"format-version": "3"}})
    path = min(task["file_path"] for task in java.tasks(table))
    java.commit(table, java.vectors(table, [(path, 2)]))
    java.append(table, days(range(16, 20)))


def upgraded_upserts(java: IcebergJava, table: Table) -> None:
    """Upserts of both versions."""
    upserts(java, table, 2)
    java.alter(table, {"change": "set_properties", "properties": {"format-version": "3"}})
    java.cdc(table, [("+I", order(3, 5, "v3")), ("+I", order(3, 6, "v3 too")), ("-D", order(4))], keys=("id",))


def many(java: IcebergJava, table: Table, version: int) -> None:
    """A few hundred rows: columns with dictionaries, deletes in thirds, several manifests."""
    java.create(table, ORDERS, Layout(BY_DAY, version))
    for start in range(0, 300, 100):
        java.append(table, [order(n, 1 + n % 3, f"name {n % 7}") for n in range(start, start + 100)])
    changes = [("+I", order(n, 1 + n % 3, "new")) for n in range(0, 300, 3)]
    java.cdc(table, [*changes, *[("-D", order(n, 1 + n % 3)) for n in range(1, 300, 10)]], keys=("id", "day"))


def merge_on_read(spark: IcebergSpark, table: Table, version: int) -> None:
    """Spark's own deletes, updates and merge, on read."""
    spark.attach(table.warehouse)
    properties = ", ".join(f"'{name}'='{value}'" for name, value in {**ON_READ, "format-version": version}.items())
    source = "SELECT id, 'merged' AS name FROM VALUES (1L), (6L), (99L) AS s(id)"
    spark.sql(
        f"CREATE NAMESPACE IF NOT EXISTS {table.sql.rpartition('.')[0]}",
        f"CREATE TABLE {table.sql} (id BIGINT, day DATE, name STRING) USING iceberg"
        f" PARTITIONED BY (day) TBLPROPERTIES ({properties})",
        f"INSERT INTO {table.sql} SELECT /*+ COALESCE(1) */ id, date_add(DATE'2026-11-01', CAST(id % 2 AS INT)),"
        " concat('n', id) FROM range(12)",
        f"DELETE FROM {table.sql} WHERE id IN (2, 3)",
        f"UPDATE {table.sql} SET name = 'updated' WHERE id BETWEEN 4 AND 5",
        f"MERGE INTO {table.sql} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
        " WHEN NOT MATCHED THEN INSERT (id, day, name) VALUES (s.id, DATE'2026-11-03', s.name)",
    )
