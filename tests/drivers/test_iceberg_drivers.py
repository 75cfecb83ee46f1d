"""Four readers of Iceberg agree on odd values, deletes and lineage: what other tests are judged by is judged here."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.fault_proxy import Way
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_catalog, pyiceberg_read
from tests.drivers.iceberg_rest import IcebergRest
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Column, Table, Warehouse, array, mapping, struct
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.rest_faults import COMMIT, RestFaults

pytestmark = [pytest.mark.in_turn("version"), pytest.mark.extended]

Warehouses = Callable[[], Warehouse]

EVERY_TYPE: tuple[Column, ...] = (
    ("id", "int", True),
    ("flag", "boolean"),
    ("big", "long"),
    ("single", "float"),
    ("real", "double"),
    ("price", "decimal(9,2)"),
    ("precise", "decimal(38,10)"),
    ("text", "string"),
    ("raw", "binary"),
    ("three", "fixed[3]"),
    ("code", "uuid"),
    ("day", "date"),
    ("at", "timestamptz"),
    ("local_at", "timestamp"),
    ("place", struct(("x", "int"), ("name", "string"), ("sub", struct(("at", "timestamptz"))))),
    ("tags", array("string")),
    ("counts", mapping("string", "int")),
)
ODD_ROWS = (
    [0] + [None] * 16,
    [
        1,
        True,
        -(2**63),
        "NaN",
        "NaN",
        "-9999999.99",
        "-9999999999999999999999999999.0123456789",
        "",
        "",
        "000000",
        "00000000-0000-0000-0000-000000000000",
        "1969-12-31",
        "1969-12-31T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999",
        {"x": None, "name": None, "sub": None},
        [],
        [],
    ],
    [
        2,
        False,
        2**63 - 1,
        "-0.0",
        "-0.0",
        "0.00",
        "0.0000000001",
        "na\u00efve \u4e2d\U0001f600",
        "00ff7f",
        "ffffff",
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "9999-12-31",
        "2026-11-01T00:00:00.000001Z",
        "2026-11-01T00:00:00.000001",
        {"x": 1, "name": "n", "sub": {"at": "2000-01-01T00:00:00.000000Z"}},
        ["a", None, ""],
        [["a", None], ["b", 2]],
    ],
    [
        3,
        True,
        0,
        "Infinity",
        "-Infinity",
        "1.10",
        "1.1000000000",
        "it's",
        "27",
        "010203",
        "f79c3e09-677c-4bbd-a479-3f349cb785e8",
        "0001-01-01",
        "2026-11-01T12:30:00.123456Z",
        "0001-01-01T00:00:00.000000",
        {"x": 2, "name": "", "sub": {"at": None}},
        ["z"],
        [["", 0]],
    ],
)
ORDERS: tuple[Column, ...] = (("id", "long", True), ("day", "date"), ("name", "string"))
TRANSFORMS = (
    ("day", "identity"),
    ("id", "bucket[4]"),
    ("name", "truncate[2]"),
    ("at", "year"),
    ("at", "month", "m"),
    ("at", "day", "d"),
    ("at", "hour", "h"),
    ("name", "void"),
)
both_versions = pytest.mark.parametrize("version", (2, 3))


@pytest.fixture
def table(iceberg: Warehouse) -> Table:
    return iceberg.table("db.t")


def orders(java: IcebergJava, table: Table, layout: Layout | None = None) -> tuple[str, ...]:
    """Ten rows in two files of five; returns the files' paths in order."""
    java.create(table, ORDERS, layout or Layout())
    rows = java.rows(table, ([n, "2026-11-01", f"n{n}"] for n in range(10)), rows_per_file=5)
    java.commit(table, rows, kind="append")
    return rows.paths


def ids(rows: Rows) -> list[int]:
    return sorted(rows.column("id"))


# Rows


@pytest.mark.extended
@both_versions
def test_every_type_reads_alike(
    version: int, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table
) -> None:
    iceberg_java.create(table, EVERY_TYPE, Layout(format_version=version))
    iceberg_java.append(table, ODD_ROWS)
    rows = iceberg_java.read(table)
    assert [list(row) for row in rows.rows] == [list(row) for row in ODD_ROWS]
    assert iceberg_spark.read(table) == rows
    assert lakes.duckdb_read_iceberg(table.metadata) == rows
    assert pyiceberg_read(table.metadata) == rows


def test_times_and_nanoseconds_read_alike_where_engines_have_them(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, iceberg: Warehouse
) -> None:
    times, nanos = iceberg.table("db.times"), iceberg.table("db.nanos")
    iceberg_java.create(times, (("id", "int"), ("t", "time")))
    iceberg_java.append(times, [[1, "12:34:56.123456"], [2, None], [3, "00:00:00.000000"]])
    rows = iceberg_java.read(times)
    assert rows.column("t") == ("12:34:56.123456", None, "00:00:00.000000")
    assert lakes.duckdb_read_iceberg(times.metadata) == pyiceberg_read(times.metadata) == rows
    with pytest.raises(EngineError, match="time"):
        iceberg_spark.read(times)
    columns = (("id", "int"), ("n", "timestamp_ns"), ("z", "timestamptz_ns"))
    iceberg_java.create(nanos, columns, Layout(format_version=3))
    iceberg_java.append(nanos, [[1, "2026-11-01T12:30:00.123456789", "1969-12-31T23:59:59.999999999Z"]])
    assert iceberg_java.read(nanos) == pyiceberg_read(nanos.metadata)
    assert iceberg_java.read(nanos).rows[0][1:] == ("2026-11-01T12:30:00.123456789", "1969-12-31T23:59:59.999999999Z")


@both_versions
def test_every_transform_reads_alike(
    version: int, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table
) -> None:
    columns: tuple[Column, ...] = (*ORDERS, ("at", "timestamptz"))
    iceberg_java.create(table, columns, Layout(TRANSFORMS[:4], version))
    for column, transform, *name in TRANSFORMS[4:7]:
        change = {"change": "add_partition_field", "column": column, "transform": transform, "name": name[0]}
        if transform != "month":
            iceberg_java.alter(table, {"change": "remove_partition_field", "name": "m" if transform == "day" else "d"})
        else:
            iceberg_java.alter(table, {"change": "remove_partition_field", "name": "at_year"})
        iceberg_java.alter(table, change)
    rows = [[n, f"2026-11-0{n}", f"name {n}", f"2026-1{n % 3}-01T0{n}:00:00Z"] for n in range(1, 5)]
    iceberg_java.append(table, [*rows, [9, None, None, None]])
    (partition, *_) = [entry["partition"] for entry in iceberg_java.entries(table) if entry["record_count"]]
    assert partition[:1] == ["2026-11-01"] and partition[2] == "na" and isinstance(partition[-1], int)
    found = iceberg_java.read(table)
    assert len(found.rows) == 5
    assert iceberg_spark.read(table) == found
    assert lakes.duckdb_read_iceberg(table.metadata) == pyiceberg_read(table.metadata) == found


def test_a_void_transform_is_null_in_the_partition(iceberg_java: IcebergJava, table: Table) -> None:
    iceberg_java.create(table, ORDERS, Layout((("name", "void"), ("day", "identity"))))
    iceberg_java.append(table, [[1, "2026-11-01", "x"]])
    assert [entry["partition"] for entry in iceberg_java.entries(table)] == [[None, "2026-11-01"]]


# Deletes


@both_versions
def test_a_checkpoint_of_upserts_reads_alike(
    version: int, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table
) -> None:
    orders(iceberg_java, table, Layout((("day", "identity"),), version))
    changes = [
        ("+I", [1, "2026-11-01", "new"]),
        ("-D", [2, "2026-11-01", None]),
        ("+U", [1, "2026-11-01", "newer"]),
        ("-U", [3, "2026-11-01", "ignored"]),
    ]
    written = iceberg_java.checkpoint(table, changes, keys=("id", "day"))
    kinds = [(file["content"], file["file_format"], file["record_count"]) for file in written.files]
    # Two rows of data, of which the first is deleted by position; keys 1 and 2 by equality.
    positions = (1, "PUFFIN", 1) if version > 2 else (1, "PARQUET", 1)
    assert sorted(kinds) == [(0, "PARQUET", 2), positions, (2, "PARQUET", 2)]
    assert ids(iceberg_java.read(table)) == list(range(10))
    iceberg_java.commit(table, written)
    rows = iceberg_java.read(table)
    assert ids(rows) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert rows.dicts()[1]["name"] == "newer"
    assert iceberg_spark.read(table) == lakes.duckdb_read_iceberg(table.metadata) == rows
    with pytest.raises(ValueError, match="equality delete"):
        pyiceberg_read(table.metadata)


def test_changelog_deletes_carry_whole_rows(iceberg_java: IcebergJava, table: Table) -> None:
    orders(iceberg_java, table)
    changes = [("-U", [1, "2026-11-01", "n1"]), ("+U", [1, "2026-11-01", "x"]), ("-D", [2, "2026-11-01", "n2"])]
    written = iceberg_java.checkpoint(table, changes, keys=("id",), upsert=False)
    (deletes,) = [file for file in written.files if file["content"] == 2]
    assert (deletes["equality_ids"], set(deletes["value_counts"])) == ([1], {"1", "2", "3"})
    iceberg_java.commit(table, written)
    assert iceberg_java.read(table).column("name")[:3] == ("n0", "x", "n3")


def test_an_equality_delete_of_the_same_commit_deletes_nothing(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table
) -> None:
    orders(iceberg_java, table)
    rows = iceberg_java.rows(table, [[3, None, "again"]])
    iceberg_java.commit(table, rows, iceberg_java.equality_deletes(table, [[3]], keys=("id",)))
    found = iceberg_java.read(table)
    assert [row["name"] for row in found.dicts() if row["id"] == 3] == ["again"]
    assert iceberg_spark.read(table) == found


def test_a_delete_under_no_partitions_reaches_all(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table
) -> None:
    iceberg_java.create(table, ORDERS)
    iceberg_java.alter(table, {"change": "add_partition_field", "column": "day", "transform": "identity"})
    iceberg_java.append(table, [[n, f"2026-11-0{n}", "x"] for n in range(1, 5)])
    every = iceberg_java.equality_deletes(table, [[2], [3]], keys=("id",), spec_id=0)
    here = iceberg_java.equality_deletes(table, [[1], [4]], keys=("id",), partition=("2026-11-04",))
    iceberg_java.commit(table, every, here)
    assert ids(iceberg_java.read(table)) == ids(iceberg_spark.read(table)) == [1]
    # Bounds of keys tell that no delete can be of the first file.
    assert sorted(len(task["deletes"]) for task in iceberg_java.tasks(table)) == [0, 1, 1, 1]


def test_position_deletes_have_the_granularity_asked_for(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table
) -> None:
    one, two = orders(iceberg_java, table)
    whole = iceberg_java.position_deletes(table, sorted([(one, 0), (two, 1), (two, 4)]))
    single = iceberg_java.position_deletes(table, sorted([(one, 1), (two, 2)]), granularity="file")
    assert [file["record_count"] for file in (*whole.files, *single.files)] == [3, 1, 1]
    # Without bounds a file is of its partition; with equal bounds it is of one data file.
    assert whole.files[0]["lower_bounds"] is None and single.files[0]["lower_bounds"]
    assert single.files[0]["lower_bounds"] == single.files[0]["upper_bounds"]
    iceberg_java.commit(table, whole, single)
    rows = iceberg_java.read(table)
    assert ids(rows) == [2, 3, 4, 5, 8]
    assert iceberg_spark.read(table) == lakes.duckdb_read_iceberg(table.metadata) == rows
    assert pyiceberg_read(table.metadata) == rows


def test_vectors_take_over_what_was_deleted_before(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table
) -> None:
    one, two = orders(iceberg_java, table)
    iceberg_java.commit(table, iceberg_java.position_deletes(table, [(one, 0)], granularity="file"))
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"format-version": "3"}})
    vectors = iceberg_java.vectors(table, [(one, 1), (two, 2)], flink_name=True)
    assert {file["referenced_data_file"]: file["record_count"] for file in vectors.files} == {one: 2, two: 1}
    assert len(set(vectors.paths)) == 1 and vectors.paths[0].endswith(".parquet")
    iceberg_java.commit(table, vectors)
    rows = iceberg_java.read(table)
    assert ids(rows) == [2, 3, 4, 5, 6, 8, 9]
    assert iceberg_spark.read(table) == lakes.duckdb_read_iceberg(table.metadata) == rows
    assert pyiceberg_read(table.metadata) == rows
    live = [entry for entry in iceberg_java.entries(table) if entry["status"] != 2]
    assert sorted(entry["file_format"] for entry in live) == ["PARQUET", "PARQUET", "PUFFIN", "PUFFIN"]


def test_spark_merges_on_read(iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table) -> None:
    modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
    orders(iceberg_java, table, Layout(format_version=3, properties=modes))
    iceberg_spark.attach(table.warehouse)
    source = "SELECT * FROM VALUES (1L, 'one'), (11L, 'eleven') AS s(id, name)"
    iceberg_spark.sql(
        f"MERGE INTO {table.sql} t USING ({source}) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    rows = iceberg_java.read(table, columns=("id", "name", "_row_id", "_last_updated_sequence_number"))
    assert rows.dicts()[1] == {"id": 1, "name": "one", "_row_id": 1, "_last_updated_sequence_number": 2}
    assert iceberg_spark.read(table, columns=rows.columns) == rows
    assert "PUFFIN" in iceberg_spark.inspect(table, "delete_files").column("file_format")


# Schemas, snapshots, statistics


def test_schemas_evolve(iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table) -> None:
    iceberg_java.create(table, (("id", "int"), ("name", "string"), ("x", "float")), Layout(format_version=3))
    iceberg_java.append(table, [[1, "a", 1.5]])
    described = iceberg_java.alter(
        table,
        {"change": "change_type", "name": "id", "type": "long"},
        {"change": "rename_column", "name": "name", "to": "label"},
        {"change": "drop_column", "name": "x"},
        {"change": "add_column", "name": "y", "type": "int", "default": 7},
        {
            "change": "add_column",
            "name": "z",
            "type": {"type": "list", "element-id": 9, "element": "string", "element-required": False},
        },
    )
    fields = [(field["id"], field["name"]) for field in described["schema"]["fields"]]
    assert fields == [(1, "id"), (2, "label"), (4, "y"), (5, "z")]
    iceberg_java.append(table, [{"id": 2**40, "label": "b", "z": ["q"]}])
    rows = iceberg_java.read(table)
    assert rows.rows == ((1, "a", 7, None), (2**40, "b", None, ["q"]))
    assert iceberg_spark.read(table) == rows


def test_filters_find_what_they_ask_for(iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table) -> None:
    orders(iceberg_java, table)
    where: dict[str, Any] = {"type": "gt-eq", "term": "id", "value": 7}
    rows = iceberg_java.read(table, where=where)
    assert ids(rows) == [7, 8, 9] and len(iceberg_java.tasks(table, where=where)) == 1
    assert iceberg_spark.read(table, where="id >= 7") == rows
    assert pyiceberg_read(table.metadata, where="id >= 7") == rows


def test_snapshots_branches_and_tags_are_read(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table
) -> None:
    iceberg_java.create(table, ORDERS)
    first = iceberg_java.append(table, [[1, None, "a"]])
    iceberg_java.refs(
        table,
        {"change": "create_branch", "name": "dev", "snapshot": first},
        {"change": "create_tag", "name": "v1", "snapshot": first},
    )
    iceberg_java.append(table, [[2, None, "b"]])
    iceberg_java.append(table, [[3, None, "c"]], branch="dev")
    assert ids(iceberg_java.read(table)) == ids(iceberg_spark.read(table)) == [1, 2]
    assert ids(iceberg_java.read(table, ref="dev")) == ids(iceberg_spark.read(table, ref="dev")) == [1, 3]
    assert ids(iceberg_java.read(table, ref="v1")) == ids(iceberg_spark.read(table, snapshot=first)) == [1]
    assert ids(lakes.duckdb_read_iceberg(table.metadata, snapshot=first)) == [1]
    iceberg_java.refs(table, {"change": "rollback", "snapshot": first})
    assert ids(iceberg_java.read(table)) == ids(pyiceberg_read(table.metadata)) == [1]


def test_statistics_are_registered(iceberg_java: IcebergJava, table: Table) -> None:
    orders(iceberg_java, table, Layout((("day", "identity"),)))
    paths = {iceberg_java.statistics(table), iceberg_java.statistics(table, kind="partition")}
    document = table.document()
    found = {file["statistics-path"] for key in ("statistics", "partition-statistics") for file in document[key]}
    assert found == paths and iceberg_java.metadata(table)["statistics"] == document["statistics"]


# Compactions


@both_versions
def test_a_compaction_in_two_steps_races_with_what_comes_between(
    version: int, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table
) -> None:
    one, _ = orders(iceberg_java, table, Layout(format_version=version))
    before = iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"})
    assert len(before.inputs) == 2 and len(before.outputs) == 1
    iceberg_java.append(table, [[11, None, "late"]])
    iceberg_java.commit_rewrite(table, before)
    assert ids(iceberg_java.read(table)) == ids(iceberg_spark.read(table)) == [*range(10), 11]
    assert {task["sequence_number"] for task in iceberg_java.tasks(table)} == {1, 2}
    (path,) = before.outputs
    again = iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"})
    deletes = iceberg_java.vectors if version > 2 else iceberg_java.position_deletes
    iceberg_java.commit(table, deletes(table, [(path, 0)]))
    with pytest.raises(EngineError, match="found new position delete"):
        iceberg_java.commit_rewrite(table, again)
    assert one not in iceberg_java.expire(table, older_than_millis=2**45, retain_last=9)


def test_a_compaction_keeps_the_lineage_of_rows(iceberg_java: IcebergJava, table: Table) -> None:
    orders(iceberg_java, table, Layout(format_version=3))
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    rows = iceberg_java.read(table, columns=columns)
    assert rows.rows == tuple((n, n, 1) for n in range(10))
    rewriting = iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"}, rows_per_file=3)
    iceberg_java.commit_rewrite(table, rewriting)
    iceberg_java.rewrite_manifests(table)
    assert iceberg_java.read(table, columns=columns) == rows
    assert [entry["first_row_id"] for entry in iceberg_java.entries(table)] == [10, 13, 16, 19]


def test_what_would_expire_is_reported(iceberg_java: IcebergJava, table: Table) -> None:
    paths = orders(iceberg_java, table)
    iceberg_java.commit_rewrite(table, iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"}))
    # Iceberg deletes a file when the snapshot expires that removed it.
    assert not set(paths) & set(iceberg_java.expire(table, older_than_millis=2**45, retain_last=1))
    iceberg_java.append(table, [[11, None, None]])
    assert set(paths) <= set(iceberg_java.expire(table, older_than_millis=2**45, retain_last=1, keep_files=True))
    assert all(Path(path.removeprefix("file:")).exists() for path in paths)


def test_files_of_expired_snapshots_are_deleted(iceberg_java: IcebergJava, table: Table) -> None:
    paths = orders(iceberg_java, table)
    iceberg_java.commit_rewrite(table, iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"}))
    iceberg_java.append(table, [[11, None, None]])
    iceberg_java.expire(table, older_than_millis=2**45, retain_last=1)
    assert not any(Path(path.removeprefix("file:")).exists() for path in paths)


def test_procedures_of_spark_run(iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table) -> None:
    orders(iceberg_java, table)
    iceberg_spark.attach(table.warehouse)
    options = "map('rewrite-all', 'true')"
    call = f"CALL {table.warehouse.name}.system.rewrite_data_files(table => '{table.name}', options => {options})"
    assert iceberg_spark.sql(call).column("rewritten_data_files_count") == (2,)
    assert iceberg_spark.inspect(table, "snapshots").column("operation") == ("append", "replace")


# Files of other kinds


@pytest.mark.parametrize("kind", ("avro", "orc"))
def test_other_formats_than_parquet_are_written(
    kind: str, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table
) -> None:
    orders(iceberg_java, table, Layout(properties={"write.format.default": kind}))
    iceberg_java.cdc(table, [("-D", [1, None, None])], keys=("id",))
    rows = iceberg_java.read(table)
    assert ids(rows) == [0, *range(2, 10)] and iceberg_spark.read(table) == rows
    assert {entry["file_format"] for entry in iceberg_java.entries(table)} == {kind.upper()}


def test_files_without_ids_are_read_by_the_name_mapping(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", None]}), foreign)
    iceberg_java.create(table, (("id", "long"), ("name", "string")))
    iceberg_java.commit(table, iceberg_java.adopt(table, foreign), kind="append")
    assert iceberg_java.read(table).rows == ((1, "a"), (2, None))
    assert iceberg_spark.read(table) == iceberg_java.read(table) == pyiceberg_read(table.metadata)


# Catalogs


def test_pyiceberg_shares_the_sqlite_catalog(iceberg_java: IcebergJava, table: Table) -> None:
    orders(iceberg_java, table)
    with pyiceberg_catalog(table.warehouse) as catalog:
        found = catalog.load_table(table.name)
        assert found.metadata_location.removeprefix("file:") == str(table.metadata)
        with found.transaction() as transaction:
            transaction.set_properties(owner="nobody")
    assert iceberg_java.metadata(table)["properties"]["owner"] == "nobody"


@pytest.fixture
def faults(iceberg_rest: IcebergRest, iceberg: Warehouse) -> Iterator[RestFaults]:
    with RestFaults(iceberg_rest.serve(iceberg)) as proxy:
        yield proxy


@pytest.fixture
def remote(faults: RestFaults, iceberg: Warehouse) -> Table:
    return Warehouse(f"{iceberg.name}_rest", iceberg.folder, faults.endpoint).table("db.t")


def test_a_rest_catalog_serves_every_engine(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, remote: Table, table: Table
) -> None:
    orders(iceberg_java, remote)
    iceberg_java.cdc(remote, [("+I", [1, "2026-11-01", "new"])], keys=("id",))
    rows = iceberg_java.read(remote)
    assert rows.dicts()[1]["name"] == "new"
    assert iceberg_spark.read(remote) == iceberg_java.read(table) == rows
    assert iceberg_spark.sql(f"INSERT INTO {remote.sql} VALUES (77, NULL, 'x')").rows == ()
    assert 77 in ids(iceberg_java.read(table))


def test_pyiceberg_speaks_to_the_rest_catalog(iceberg_java: IcebergJava, remote: Table) -> None:
    orders(iceberg_java, remote)
    with pyiceberg_catalog(remote.warehouse) as catalog:
        found = catalog.load_table(remote.name)
        with found.transaction() as transaction:
            transaction.set_properties(owner="nobody")
        assert catalog.list_tables("db") == [("db", "t")]
    assert iceberg_java.metadata(remote)["properties"]["owner"] == "nobody"


@pytest.mark.parametrize("status", (500, 502, 503, 504))
@pytest.mark.parametrize("way", [Way.BEFORE, Way.AFTER])
def test_a_failed_commit_may_have_been_done(
    status: int, way: Way, iceberg_java: IcebergJava, faults: RestFaults, remote: Table, table: Table
) -> None:
    orders(iceberg_java, remote)
    fault = faults.fail(status, request=COMMIT, way=way)
    # Java looks for its snapshot in the table before it gives up.
    refused = pytest.raises(EngineError) if way is Way.BEFORE else contextlib.nullcontext()
    with refused:
        iceberg_java.append(remote, [[11, None, "x"]])
    assert len(fault.seen) == 1
    assert (11 in ids(iceberg_java.read(table))) == (way is Way.AFTER)


def test_a_conflict_is_tried_again(iceberg_java: IcebergJava, faults: RestFaults, remote: Table) -> None:
    orders(iceberg_java, remote)
    fault = faults.fail(409, request=COMMIT, times=2)
    iceberg_java.append(remote, [[11, None, "x"]])
    assert len(fault.seen) == 2 and 11 in ids(iceberg_java.read(remote))


def test_an_answer_may_be_lost(iceberg_java: IcebergJava, faults: RestFaults, remote: Table, table: Table) -> None:
    orders(iceberg_java, remote)
    fault = faults.drop(request=COMMIT)
    with pytest.raises(EngineError):
        iceberg_java.append(remote, [[11, None, "x"]])
    assert fault.seen and ids(iceberg_java.read(table)).count(11) == 1


def test_a_request_waits_until_it_is_let_go(
    iceberg_java: IcebergJava, faults: RestFaults, remote: Table, table: Table
) -> None:
    orders(iceberg_java, remote)
    with IcebergJava() as other, faults.paused(request=COMMIT) as fault:
        late = threading.Thread(target=other.append, args=(remote, [[11, None, "late"]]))
        late.start()
        fault.wait()
        iceberg_java.append(table, [[12, None, "early"]])
        assert 11 not in ids(iceberg_java.read(table))
        fault.release()
        late.join(60)
    assert {11, 12} <= set(ids(iceberg_java.read(table)))
