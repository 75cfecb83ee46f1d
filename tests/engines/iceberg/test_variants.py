"""Columns of type variant: Spark writes them, and shows the same values after nights of ours and on top of them."""

from collections.abc import Iterator
from pathlib import Path

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.formats.iceberg import runs
from tests.formats.iceberg.sweeping import old

import nightkeep
from nightkeep.checking.check import check
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

pytestmark = pytest.mark.slow

COLUMNS = "id BIGINT, v VARIANT, s STRUCT<a: VARIANT, b: INT>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>"
PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    # The vectorised reader of 1.12 fails where a table has variants and a query reads none of them.
    "read.parquet.vectorization.enabled": "false",
}
TEXTS = ('{"a": 1, "b": [true, null, "x"]}', "5", "null", '"a text"', "[]", "1.5")
SHOWN = (
    "id, schema_of_variant(v), to_json(v), to_json(s.a), s.b, to_json(get(l, 0)), size(l), "
    "to_json(m['k']), to_json(late), _row_id, _last_updated_sequence_number"
)


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


def create(spark: IcebergSpark, table: Table, columns: str = COLUMNS, **properties: str) -> None:
    stated = ", ".join(f"'{name}'='{value}'" for name, value in {**PROPERTIES, **properties}.items())
    spark.attach(table.warehouse)
    spark.sql(
        f"CREATE NAMESPACE IF NOT EXISTS {table.warehouse.name}.db",
        f"CREATE TABLE {table.sql} ({columns}) USING iceberg TBLPROPERTIES ({stated})",
    )


def write(spark: IcebergSpark, table: Table, **properties: str) -> None:
    """Files of before and after a column of variants, with nulls at every level, and a row that is deleted."""
    create(spark, table, **properties)
    rows = ", ".join(
        f"({n}, parse_json('{text}'), named_struct('a', parse_json('{text}'), 'b', {n}), "
        f"array(parse_json('{text}'), NULL), map('k', parse_json('{text}'), 'n', NULL))"
        for n, text in enumerate(TEXTS)
    )
    spark.sql(
        f"INSERT INTO {table.sql} VALUES {rows}, (100, NULL, NULL, NULL, NULL)",
        f"INSERT INTO {table.sql} VALUES (101, parse_json('7'), named_struct('a', NULL, 'b', NULL), array(), map())",
        f"ALTER TABLE {table.sql} ADD COLUMN late VARIANT",
        f"INSERT INTO {table.sql} VALUES (102, NULL, NULL, array(NULL), NULL, parse_json('[1]')), "
        f"(103, parse_json('8'), NULL, NULL, NULL, NULL)",
        f"DELETE FROM {table.sql} WHERE id = 1",
    )


def shown(spark: IcebergSpark, table: Table) -> Rows:
    return spark.sql(f"SELECT {SHOWN} FROM {table.sql} ORDER BY id")


def text_of(variant: dict[str, bytes] | None) -> str | None:
    """As Spark's own decoder prints it."""
    return None if variant is None else VariantVal(variant["value"], variant["metadata"]).toJson()


@pytest.mark.few(1)
@pytest.mark.parametrize("written", ["parquet", "avro"])
@pytest.mark.parametrize("operation", [Operation.OPTIMIZE, Operation.PERSIST_DELETES])
def test_variants_are_packed_as_they_are_stored(
    iceberg_spark: IcebergSpark,
    iceberg_java: IcebergJava,
    spark: SparkSession,
    warehouse: Warehouse,
    operation: Operation,
    written: str,
) -> None:
    table = warehouse.table()
    write(iceberg_spark, table, **{"write.format.default": written})
    iceberg_spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('write.format.default'='parquet')")
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"id": 2}], keys=["id"]))
    before = shown(iceberg_spark, table)
    assert [row[0] for row in before.rows] == [0, 3, 4, 5, 100, 101, 102, 103]
    found = nightkeep.read(str(runs.address(table))).read_all().sort_by("id").to_pylist()
    assert [(row["id"], text_of(row["v"]), text_of(row["late"])) for row in found] == [
        (row[0], row[2], row[8]) for row in before.rows
    ]
    done = runs.care_for(table, operation=operation)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert shown(iceberg_spark, table) == before
    told = check(CheckRequest(runs.address(table), version=done.committed_version), spark=spark)
    assert told.status is CheckStatus.PASSED, told


@pytest.mark.extended
def test_spark_and_others_go_on_after_a_night(
    iceberg_spark: IcebergSpark, spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    """Sorted by the table's own order, in partitions, on a branch; then audited, expired and swept."""
    table = warehouse.table()
    write(iceberg_spark, table)
    called = f"CALL {warehouse.name}.system"
    iceberg_spark.sql(
        f"ALTER TABLE {table.sql} WRITE ORDERED BY id DESC",
        f"ALTER TABLE {table.sql} ADD PARTITION FIELD bucket(2, id)",
        f"INSERT INTO {table.sql} SELECT id + 200, v, s, l, m, late FROM {table.sql}",
        f"ALTER TABLE {table.sql} CREATE BRANCH dev",
    )
    before, on_branch = shown(iceberg_spark, table), f"{runs.address(table)}$branch_dev"
    for address in (str(runs.address(table)), on_branch):
        done = nightkeep.run(address, operation="optimize", full=True, reports=tmp_path / "reports", spark=spark)
        assert [each.outcome for each in done] == [Outcome.VERIFIED], done
        assert done[0].expectations.status == "passed"
    assert shown(iceberg_spark, table) == before
    iceberg_spark.sql(
        f"UPDATE {table.sql} SET v = s.a WHERE id = 3",
        f"DELETE FROM {table.sql} WHERE v IS NULL",
        f"INSERT INTO {table.sql} VALUES (400, parse_json('[1]'), NULL, NULL, NULL, NULL)",
        f"{called}.rewrite_data_files(table => '{table.name}', options => map('rewrite-all', 'true'))",
        f"UPDATE {table.sql} SET late = v WHERE id = 400",
    )
    before = shown(iceberg_spark, table)
    assert before.rows[-1][8] == "[1]"
    again = runs.care_for(table, run_id="again", operation=Operation.OPTIMIZE, full=True)
    assert again.outcome is Outcome.VERIFIED, again.reason
    assert shown(iceberg_spark, table) == before
    address, reports = str(runs.address(table)), tmp_path / "reports"
    audited = nightkeep.audit(address, since=0, files=True, reports=reports, spark=spark)
    assert audited.outcome is Outcome.VERIFIED, audited
    iceberg_spark.sql(f"ALTER TABLE {table.sql} DROP BRANCH dev", f"ALTER TABLE {table.sql} DROP COLUMN v")
    old(table)
    expired = nightkeep.expire(address, delete=True, retain_last=1, reports=reports, spark=spark)
    assert expired.outcome is Outcome.VERIFIED and len(table.document()["snapshots"]) == 1, expired.reason
    found = nightkeep.read(address, columns=["id", "late"]).read_all().sort_by("id").to_pylist()
    assert [(row["id"], text_of(row["late"])) for row in found] == [(row[0], row[8]) for row in before.rows]
    last = runs.care_for(table, run_id="last", operation=Operation.OPTIMIZE, full=True)
    assert last.outcome is Outcome.VERIFIED, last.reason
    assert iceberg_spark.sql(f"SELECT id, to_json(late) FROM {table.sql} ORDER BY id").rows == tuple(
        (row[0], row[8]) for row in before.rows
    )


def test_metrics_are_those_of_spark(iceberg_spark: IcebergSpark, warehouse: Warehouse) -> None:
    """Counts of plain variants, and neither bounds nor the sizes of their parts."""
    table = warehouse.table()
    write(iceberg_spark, table)
    query = (
        "SELECT value_counts, null_value_counts, array_sort(map_keys(column_sizes)), lower_bounds, upper_bounds "
        f"FROM {table.sql}.files WHERE content = 0"
    )
    done = runs.care_for(table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.VERIFIED, done.reason
    ours = iceberg_spark.sql(query).rows
    iceberg_spark.sql(
        f"CALL {warehouse.name}.system.rewrite_data_files(table => '{table.name}', "
        "options => map('rewrite-all', 'true'))"
    )
    assert iceberg_spark.sql(query).rows == ours
    ((values, nulls, *_),) = ours
    by_id = dict(nulls)
    top = {each["name"]: each["id"] for each in table.document()["schemas"][-1]["fields"]}
    assert (len(values), by_id[top["v"]], by_id[top["late"]]) == (7, 2, 8)


@pytest.fixture(scope="module")
def kept(iceberg_spark: IcebergSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table that no test changes."""
    warehouse = Warehouse("keptvariants", tmp_path_factory.mktemp("kept"))
    with runs.configured(warehouse):
        table = warehouse.table()
        write(iceberg_spark, table)
        yield table


@pytest.fixture
def untouched(kept: Table) -> Iterator[Table]:
    before = runs.contents(kept)
    yield kept
    assert runs.contents(kept) == before


@pytest.mark.parametrize("condition", ["v = 5", "v IS NULL AND v > 1", "v.value = X'00'", "v IN (1)", "s.a = 5"])
def test_no_row_is_chosen_by_the_values_of_a_variant(untouched: Table, condition: str) -> None:
    with pytest.raises(UsageError, match="condition on rows"):
        nightkeep.read(str(runs.address(untouched)), where=condition)


def test_rows_are_chosen_where_a_variant_is_null(untouched: Table) -> None:
    found = nightkeep.read(str(runs.address(untouched)), where="v IS NULL").read_all()
    assert sorted(found.column("id").to_pylist()) == [100, 102]


def test_nothing_is_clustered_by_a_variant(untouched: Table) -> None:
    with pytest.raises(UsageError, match=r"cluster by v: its type .* has no order"):
        nightkeep.run(str(runs.address(untouched)), operation="optimize", zorder=["v"], full=True)


def test_equality_deletes_by_a_variant_are_refused(
    iceberg_spark: IcebergSpark, iceberg_java: IcebergJava, warehouse: Warehouse
) -> None:
    """Java writes none; a file of its deletes by `id` states the variant's field in its place."""
    table = warehouse.table()
    write(iceberg_spark, table)
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"id": 2}], keys=["id"]))
    (manifest,) = (
        path
        for each in iceberg_java.manifests(table)
        if each["content"] == 1 and (path := Path(each["manifest_path"].removeprefix("file:"))) and equality(path)
    )
    with manifest.open("rb") as source:
        reader = fastavro.reader(source)
        entries, stated, kind = list(reader), reader.metadata, reader.writer_schema
    for entry in entries:
        entry["data_file"]["equality_ids"] = [2]
    with manifest.open("wb") as sink:
        fastavro.writer(sink, kind, entries, codec="deflate", metadata=stated)
    for operation in (Operation.OPTIMIZE, Operation.PERSIST_DELETES):
        done = runs.care_for(table, run_id=str(operation), operation=operation)
        assert done.outcome is Outcome.REFUSED and "variant" in str(done.reason), (done.outcome, done.reason)


def equality(manifest: Path) -> bool:
    with manifest.open("rb") as source:
        return any(entry["data_file"]["content"] == 2 for entry in fastavro.reader(source))


def test_orc_files_of_a_table_with_variants_are_refused(iceberg_spark: IcebergSpark, warehouse: Warehouse) -> None:
    table = warehouse.table()
    create(iceberg_spark, table, "id BIGINT", **{"write.format.default": "orc"})
    iceberg_spark.sql(
        *(f"INSERT INTO {table.sql} VALUES ({number})" for number in range(3)),
        f"ALTER TABLE {table.sql} ADD COLUMN v VARIANT",
    )
    with pytest.raises(EngineError, match="iPrimitive"):
        iceberg_spark.sql(f"INSERT INTO {table.sql} VALUES (3, NULL)")
    iceberg_spark.sql(
        f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('write.format.default'='parquet')",
        f"INSERT INTO {table.sql} VALUES (3, parse_json('7'))",
    )
    with pytest.raises(EngineError):
        iceberg_spark.sql(f"SELECT to_json(v) FROM {table.sql}")
    before = runs.contents(table)
    done = runs.care_for(table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.REFUSED and "variants in ORC files" in str(done.reason), done.reason
    with pytest.raises(RefusedTable, match="variants in ORC files"):
        nightkeep.read(str(runs.address(table))).read_all()
    assert runs.contents(table) == before
    iceberg_spark.sql(f"ALTER TABLE {table.sql} DROP COLUMN v")
    assert runs.care_for(table, run_id="b", operation=Operation.OPTIMIZE, full=True).outcome is Outcome.VERIFIED
