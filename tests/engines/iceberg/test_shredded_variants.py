"""Shredded variants of Iceberg: kept where files are shredded alike, else put together; judged by Iceberg's Spark."""

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.engines.iceberg.test_variants import create, shown, text_of
from tests.formats.iceberg import runs
from tests.support.variant_values import Typed, Value, exact, shredded_column

import nightkeep
from nightkeep.checking.check import check
from nightkeep.encodings.parquet_settings import SETTINGS
from nightkeep.encodings.variant_groups import parquet_output
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

pytestmark = pytest.mark.slow

SHREDS = {"write.parquet.shred-variants": "true"}
OBJECTS = """'{"a": ' || id || ', "b": "x' || id || '", "c": [1, {"d": ' || id || '}], "e": {"f": 1.5, "g": null}}'"""
SHREDDED = (
    OBJECTS,
    """'"text ' || id || '"'""",
    """'{"a": "' || id || '", "z": ' || id || '.5}'""",
    """'[' || id || ', "x"]'""",
)
"""Values of a file each, which Spark shreds into typed columns of one kind each."""


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


def insert(spark: IcebergSpark, table: Table, text: str, start: int, rows: int = 60) -> None:
    """A file, with nulls. Spark shreds columns at the top, and no others."""
    parts = f"IF(id % 7 = 1, NULL, parse_json({text})), NULL, NULL, NULL, IF(id % 3 = 0, parse_json({text}), NULL)"
    spark.sql(f"INSERT INTO {table.sql} SELECT id, {parts} FROM range({start}, {start + rows}, 1, 1)")


def files(spark: IcebergSpark, table: Table) -> list[Path]:
    found = spark.sql(f"SELECT file_path FROM {table.sql}.files WHERE content = 0").rows
    return [Path(path.removeprefix("file:")) for (path,) in found]


def is_shredded(file: Path) -> bool:
    return "typed_value" in str(pq.ParquetFile(file).schema)


def bounded(spark: IcebergSpark, table: Table) -> set[int]:
    """The fields that data files have bounds of."""
    lists = spark.sql(f"SELECT map_keys(lower_bounds) FROM {table.sql}.files WHERE content = 0").rows
    return {number for (some,) in lists for number in some}


def require_checked(table: Table, version: int | None, spark: SparkSession) -> None:
    found = check(CheckRequest(runs.address(table), version=version), spark=spark)
    assert found.status is CheckStatus.PASSED, found


def compact(spark: IcebergSpark, table: Table) -> None:
    spark.sql(
        f"CALL {table.warehouse.name}.system.rewrite_data_files(table => '{table.name}', "
        "options => map('rewrite-all', 'true'))"
    )


ORDERS: dict[str, str | None] = {"packed": None, "sorted": "WRITE ORDERED BY id DESC"}


@pytest.mark.few(1)
@pytest.mark.parametrize("order", ORDERS)
def test_files_that_are_shredded_alike_stay_shredded(
    iceberg_spark: IcebergSpark,
    iceberg_java: IcebergJava,
    spark: SparkSession,
    warehouse: Warehouse,
    tmp_path: Path,
    order: str,
) -> None:
    """With vectors, equality deletes and lineage. Spark reads, updates, deletes, appends and compacts on top."""
    table = warehouse.table()
    create(iceberg_spark, table, **SHREDS)
    iceberg_spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN late VARIANT")
    for start in (1000, 2000, 3000):
        insert(iceberg_spark, table, OBJECTS, start)
    if statement := ORDERS[order]:
        iceberg_spark.sql(f"ALTER TABLE {table.sql} {statement}")
    iceberg_spark.sql(f"DELETE FROM {table.sql} WHERE id % 6 = 2")
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"id": 1003}, {"id": 3006}], keys=["id"]))
    top = {each["name"]: each["id"] for each in table.document()["schemas"][-1]["fields"]}
    assert bounded(iceberg_spark, table) == {top["id"], top["v"], top["late"]}
    before, address = shown(iceberg_spark, table), str(runs.address(table))
    done = runs.care_for(table, operation=Operation.OPTIMIZE)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert shown(iceberg_spark, table) == before
    assert [is_shredded(file) for file in files(iceberg_spark, table)] == [True]
    assert top["v"] not in bounded(iceberg_spark, table)
    require_checked(table, done.committed_version, spark)
    insert(iceberg_spark, table, OBJECTS, 4000)
    iceberg_spark.sql(
        f"UPDATE {table.sql} SET late = v WHERE id % 10 = 4",
        f"DELETE FROM {table.sql} WHERE variant_get(v, '$.a', 'int') = 2005",
    )
    compact(iceberg_spark, table)
    changed = shown(iceberg_spark, table)
    kept = [row[:3] for row in before.rows if row[0] != 2005]
    assert [row[:3] for row in changed.rows if row[0] < 4000] == kept
    updated = [row for row in changed.rows if row[0] % 10 == 4]
    assert len(updated) > 10 and [row[8] for row in updated] == [row[2] for row in updated]
    insert(iceberg_spark, table, OBJECTS, 5000)
    changed = shown(iceberg_spark, table)
    again = runs.care_for(table, run_id="again", operation=Operation.OPTIMIZE, full=True)
    assert again.outcome is Outcome.VERIFIED, again.reason
    assert shown(iceberg_spark, table) == changed
    audited = nightkeep.audit(address, since=0, files=True, reports=tmp_path / "reports", spark=spark)
    assert audited.outcome is Outcome.VERIFIED, audited


@pytest.mark.few(1)
@pytest.mark.parametrize("operation", [Operation.OPTIMIZE, Operation.PERSIST_DELETES])
def test_files_that_are_shredded_otherwise_come_together_plain(
    iceberg_spark: IcebergSpark,
    iceberg_java: IcebergJava,
    spark: SparkSession,
    warehouse: Warehouse,
    tmp_path: Path,
    operation: Operation,
) -> None:
    """Files that are shredded in several ways, and plain ones; Spark shreds again, which an audit proves."""
    table = warehouse.table()
    create(iceberg_spark, table, **SHREDS)
    iceberg_spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN late VARIANT")
    for number, text in enumerate(SHREDDED):
        insert(iceberg_spark, table, text, 100 * number)
    iceberg_spark.sql(
        f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('write.parquet.shred-variants'='false')",
        f"INSERT INTO {table.sql} SELECT id + 1000, v, s, l, m, v FROM {table.sql} WHERE id % 5 = 0",
        f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('write.parquet.shred-variants'='true')",
        f"DELETE FROM {table.sql} WHERE id % 6 = 2",
    )
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"id": 3}, {"id": 104}], keys=["id"]))
    stored = [str(pq.read_schema(path)) for path in runs.folder(table).rglob("data/*.parquet")]
    assert len({text for text in stored if "typed_value" in text}) > 2
    assert any("typed_value" not in text for text in stored)
    before, address = shown(iceberg_spark, table), str(runs.address(table))
    found = nightkeep.read(address).read_all().sort_by("id").to_pylist()
    assert [(row["id"], text_of(row["v"]), text_of(row["late"])) for row in found] == [
        (row[0], row[2], row[8]) for row in before.rows
    ]
    done = runs.care_for(table, operation=operation)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert done.plan is not None and shown(iceberg_spark, table) == before
    is_noted = any("become files of plain variants" in note for note in done.plan.notes)
    assert is_noted is (operation is Operation.OPTIMIZE)
    assert any(map(is_shredded, files(iceberg_spark, table))) is (operation is Operation.PERSIST_DELETES)
    require_checked(table, done.committed_version, spark)
    compact(iceberg_spark, table)
    assert shown(iceberg_spark, table) == before
    audited = nightkeep.audit(address, since=0, files=True, reports=tmp_path / "reports", spark=spark)
    assert audited.outcome is Outcome.VERIFIED, audited


AFTER_NANOS = 10**19
"""A time that is encoded in microseconds, as nanoseconds have no room for it: Spark has none of these."""


def an_object(number: int) -> Value:
    """Every type that Spark has, and a UUID, which it shows as a text."""
    fields: dict[str, Value] = {
        "a": ("exact", number, 0),
        "b": ("binary", b"\0\xff"),
        "d": exact(10 * number + 5, 1),
        "f": ("float", struct.pack("<f", number)),
        "g": ("double", struct.pack("<d", number / 3)),
        "l": ("array", (("exact", number, 0), ("null",))),
        "n": ("timestamp_ntz", AFTER_NANOS + 1000 * number),
        "o": ("object", (("in", ("string", b"x" * number)),)),
        "t": ("timestamp", AFTER_NANOS - 1000 * number),
        "u": ("uuid", bytes(range(number, number + 16))),
        "y": ("bool", number % 2 == 0),
        "z": ("date", -141_428),
    }
    return ("object", tuple(fields.items()))


EVERY_TYPE: Typed = {  # But UUIDs, which Spark's own reader does not find in typed columns.
    "a": pa.int8(),
    "b": pa.binary(),
    "d": pa.decimal128(9, 1),
    "f": pa.float32(),
    "g": pa.float64(),
    "l": [pa.int64()],
    "n": pa.timestamp("us"),
    "o": {"in": pa.string()},
    "t": pa.timestamp("us", "UTC"),
    "y": pa.bool_(),
    "z": pa.date32(),
}


def nested(start: int) -> pa.Table:
    """Rows whose variants are shredded at every level."""
    values = [None if number % 5 == 4 else an_object(number) for number in range(20)]
    held = [shredded_column(values, EVERY_TYPE, Random(start + seed)) for seed in range(4)]
    ids = pa.array(range(start, start + len(values)), pa.int64())
    ends = pa.array(range(len(values) + 1), pa.int32())
    columns = {
        "id": ids,
        "v": held[0],
        "s": pa.StructArray.from_arrays([held[1], ids.cast(pa.int32())], ["a", "b"]),
        "l": pa.ListArray.from_arrays(ends, held[2]),
        "m": pa.MapArray.from_arrays(ends, pa.array(["k"] * len(values)), held[3]),
    }
    return pa.table(columns)


def test_variants_shredded_at_every_level_stay_so(
    iceberg_spark: IcebergSpark, iceberg_java: IcebergJava, spark: SparkSession, warehouse: Warehouse
) -> None:
    """In structs, lists and maps, where Spark reads shredded variants and writes none: the files are adopted."""
    table = warehouse.table()
    create(iceberg_spark, table, **SHREDS)
    for start in (0, 100):
        rows, file = nested(start), runs.folder(table) / f"adopted {start}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as sink, parquet_output(sink, rows.schema, **SETTINGS) as writer:
            writer.write_table(rows)
        iceberg_java.commit(table, iceberg_java.adopt(table, file), kind="append")
    iceberg_spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN late VARIANT", f"DELETE FROM {table.sql} WHERE id % 10 = 2")
    before = shown(iceberg_spark, table)
    done = runs.care_for(table, operation=Operation.OPTIMIZE)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert shown(iceberg_spark, table) == before
    (file,) = files(iceberg_spark, table)
    groups = str(pq.ParquetFile(file).schema)
    assert groups.count("(Variant(1)) {") == 5
    assert groups.count("group field_id=-1 typed_value") >= 4
    require_checked(table, done.committed_version, spark)
    iceberg_spark.sql(f"UPDATE {table.sql} SET late = s.a WHERE id < 10", f"DELETE FROM {table.sql} WHERE id = 100")
    changed = shown(iceberg_spark, table)
    compact(iceberg_spark, table)
    assert shown(iceberg_spark, table) == changed
    assert [row[:8] for row in changed.rows] == [row[:8] for row in before.rows if row[0] != 100]
