"""Shredded variants of Delta: kept where files are shredded alike, else put together; judged by delta-spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import reduce
from operator import add
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lake_rows import Rows
from tests.engines.delta.test_variants import added
from tests.formats.delta.lake import Lake
from tests.formats.delta.runs import delete_where, opened, optimize, policy
from tests.formats.delta.variant_sabotage import SCHEMA
from tests.support.table_storage import storage_of
from tests.support.variant_values import Encoder, Value, part_type

import nightkeep
from nightkeep.checking.check import check
from nightkeep.formats.delta.gate.scan import rows, survivors
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Fingerprint, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.variant_type import shredded_type
from nightkeep.records import CheckStatus

ORDERS = (
    "parse_json('{\"id\": ' || id || ', \"price\": ' || (id / 4) || ', \"k' || (id % 7) || '\": null,"
    ' "buyer": {"name": "n\' || id || \'", "tags": ["x", \' || id || \']}}\')'
)
"""An object with a nested one, an array of two types, and a name that few rows have."""
TYPES = (
    "to_variant_object(named_struct('i', cast(id % 100 as tinyint), 'd', cast(id as decimal(9, 2)), 'b', X'00ff',"
    " 'f', cast(id / 3 as float), 'g', id / 3D, 't', timestamp'2020-01-01 00:00:00.000001', 'day', date'1582-10-04',"
    " 'n', timestamp_ntz'1960-01-01 00:00:00', 'o', id % 2 = 0, 's', repeat('long ', 20), 'l', array(id, null),"
    " 'm', map('k', id), 'w', cast(-123456789012345678901234567890 as decimal(38, 0))))"
)
SCALARS = "CASE id % 3 WHEN 0 THEN id::variant WHEN 1 THEN parse_json('null') END"
SHOWN = "id, to_json(v), schema_of_variant(v), to_json(s), to_json(l), to_json(m)"
EXTRACTED = "id, variant_get(v, '$.i', 'int'), variant_get(v, '$.s', 'string'), variant_get(v, '$.d', 'decimal(9, 2)')"
"""What Spark reads of typed columns alone. Its interpreter has no such cast, so that it needs generated code."""
CODE = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
LONG_PART = pa.field("element", part_type(pa.int64()), nullable=False)
COLUMNS = "id BIGINT, v VARIANT, s STRUCT<x: VARIANT, n: INT>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>"


def create(spark: DeltaSpark, table: Path, *, mapping: str = "none") -> None:
    properties = f"'delta.columnMapping.mode' = '{mapping}', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"CREATE TABLE {named(table)} ({COLUMNS}) USING delta TBLPROPERTIES ({properties})")


def insert(spark: DeltaSpark, table: Path, variant: str, start: int, *, shredded: bool = True, rows: int = 40) -> None:
    """A file of `rows` rows, the fifth of which has nulls."""
    variant = f"CASE WHEN id % 5 < 4 THEN {variant} END"
    nested = f"named_struct('x', {variant}, 'n', 1), array({variant}, NULL), map('k', {variant})"
    spark.sql(
        f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('delta.enableVariantShredding' = '{str(shredded).lower()}')",
        f"INSERT INTO {named(table)} SELECT id, {variant}, {nested} FROM range({start}, {start + rows}, 1, 1)",
    )


def shown(spark: DeltaSpark, table: Path) -> Rows:
    return spark.sql(f"SELECT {SHOWN} FROM {named(table)} ORDER BY id")


def decimals(text: str | None) -> object:
    return text and json.loads(text, parse_int=Decimal, parse_float=Decimal)


def extracted(spark: DeltaSpark, table: Path) -> Rows:
    with spark.configured(CODE):
        return spark.sql(
            f"SELECT {EXTRACTED} FROM {named(table)} WHERE variant_get(v, '$.i', 'int') BETWEEN 3 AND 20 ORDER BY id"
        )


def is_shredded(table: Path) -> list[bool]:
    """Of each file that the newest commit added."""
    return ["typed_value" in str(pq.ParquetFile(table / file["path"]).schema) for file in added(table)]


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_files_that_are_shredded_alike_stay_shredded(
    delta_spark: DeltaSpark, spark: SparkSession, tmp_path: Path, mapping: str
) -> None:
    """delta-spark reads, deletes, appends and optimizes on top; the check by Spark SQL passes, and so does an audit."""
    table = tmp_path / "t"
    create(delta_spark, table, mapping=mapping)
    for start in (0, 100, 200):
        insert(delta_spark, table, TYPES, start)
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id % 10 = 3")
    before, parts = shown(delta_spark, table), extracted(delta_spark, table)
    done = optimize(table)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert is_shredded(table) == [True]
    assert extracted(delta_spark, table) == parts and len(parts.rows) > 20
    report = check(CheckRequest(policy(table).address, done.committed_version), spark=spark)
    assert report.status is CheckStatus.PASSED, report
    assert shown(delta_spark, table) == before
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE to_json(v) LIKE '%\"i\":5,%'", f"OPTIMIZE {named(table)}")
    insert(delta_spark, table, TYPES, 300)
    kept = [row for row in before.rows if row[0] not in (5, 105, 205)]
    assert [row for row in shown(delta_spark, table).rows if row[0] < 300] == kept
    assert nightkeep.audit(f"delta:{table}", since=0, reports=tmp_path / "reports").outcome is Outcome.VERIFIED


@pytest.mark.slow
def test_files_that_are_shredded_otherwise_come_together_plain(
    delta_spark: DeltaSpark, spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    create(delta_spark, table)
    for number, variant in enumerate((ORDERS, TYPES, SCALARS, ORDERS)):
        insert(delta_spark, table, variant, 100 * number, shredded=number < 3)
    before = shown(delta_spark, table)
    read = nightkeep.read(f"delta:{table}").read_all().sort_by("id").to_pylist()
    found = {row["id"]: row["v"] and VariantVal(row["v"]["value"], row["v"]["metadata"]).toJson() for row in read}
    # Spark in Python prints floats in its own way, and decimals with their zeros.
    assert {row[0]: decimals(row[1]) for row in before.rows if not 100 <= row[0] < 140} == {
        number: decimals(text) for number, text in found.items() if not 100 <= number < 140
    }
    done = optimize(table)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert is_shredded(table) == [False]
    assert shown(delta_spark, table) == before
    report = check(CheckRequest(policy(table).address, done.committed_version), spark=spark)
    assert report.status is CheckStatus.PASSED, report
    deleted = delete_where(table, "v IS NULL")
    assert deleted.outcome is Outcome.VERIFIED, deleted.reason
    assert shown(delta_spark, table).rows == tuple(row for row in before.rows if row[1] is not None)


@pytest.mark.slow
@pytest.mark.extended
def test_shredded_files_are_clustered(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    create(delta_spark, table)
    for start in (20, 0):
        insert(delta_spark, table, ORDERS, start)
    before = shown(delta_spark, table)
    reports = tmp_path / "reports"
    (done,) = nightkeep.run(f"delta:{table}", operation="optimize", zorder=["id"], full=True, reports=reports)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert shown(delta_spark, table) == before


def total(table: Path, at: int | None = None) -> Fingerprint:
    """What the gate compares of the rows of a version."""
    snapshot = opened(table).snapshot(at)
    storage = storage_of(opened(table))
    batches = [batch for unit in snapshot.units for batch in rows(storage, unit, survivors(storage, unit))]
    return reduce(add, map(fingerprint, batches), Fingerprint())


@pytest.mark.slow
def test_what_spark_shreds_has_the_hash_of_what_it_does_not(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """Golden values of the kernel: the same rows, once shredded; and one row whose value changed, within a type."""
    tables = {name: tmp_path / name for name in ("plain", "shredded", "changed")}
    for name, table in tables.items():
        create(delta_spark, table)
        for number, variant in enumerate((ORDERS, TYPES, SCALARS)):
            insert(delta_spark, table, variant, 100 * number, shredded=name == "shredded")
    delta_spark.sql(
        f"UPDATE {named(tables['changed'])} SET v = parse_json(replace(to_json(v), '\"n7\"', '\"n8\"')) WHERE id = 7"
    )
    found = {name: total(table) for name, table in tables.items()}
    assert found["plain"] == found["shredded"] != found["changed"]


@contextmanager
def rewritten(file: Path) -> Iterator[list[pa.Table]]:
    """The rows of a file, to be replaced in the list."""
    held = [pq.read_table(file, partitioning=None)]
    yield held
    pq.write_table(held[0], file, store_schema=False)


@pytest.mark.slow
def test_a_variant_that_readers_may_take_for_two_values_is_refused(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """A value beside a typed one: delta-spark takes the typed one, and others the other."""
    table = tmp_path / "t"
    create(delta_spark, table)
    for start in (0, 100):
        insert(delta_spark, table, "id::variant", start, rows=4)
    (file,) = (table / each["path"] for each in added(table))
    (table / f".{file.name}.crc").unlink(missing_ok=True)
    with rewritten(file) as held:
        variant = held[0].column("v").combine_chunks()
        values = pa.array([b"\x0c\x07"] * len(variant), pa.binary())
        parts = [variant.field("metadata"), values, variant.field("typed_value")]
        doubled = pa.StructArray.from_arrays(parts, fields=list(variant.type))
        held[0] = held[0].set_column(1, held[0].schema.field("v"), doubled)
    done = optimize(table)
    assert done.outcome is Outcome.REFUSED, (done.outcome, done.reason)
    assert "a value beside one of type int64" in str(done.reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "typed", "path", "what"),
    [
        (("object", (("a", ("exact", 7, 0)),)), pa.struct([LONG_PART.with_name("a")]), "$.a", "an object"),
        (("array", (("exact", 7, 0),)), pa.list_(LONG_PART), "$[0]", "an array"),
    ],
    ids=("object", "array"),
)
def test_an_object_or_array_beside_no_typed_one_is_refused(
    value: Value, typed: pa.DataType, path: str, what: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    """delta-spark finds what is in it where it reads the whole variant, and not where it reads typed columns alone."""
    encoder, lake = Encoder(["a"], Random(1)), Lake(tmp_path / "t", SCHEMA)
    row = {"metadata": encoder.metadata, "value": encoder.encoded(value)}
    for number in range(2):
        held = pa.array([row], shredded_type(pa.binary(), typed))
        lake.append(pa.table({"id": pa.array([number], pa.int64()), "v": held}))
    found = []
    for pushed in ("false", "true"):
        with delta_spark.configured({**CODE, "spark.sql.variant.pushVariantIntoScan": pushed}):
            query = f"SELECT variant_get(v, '{path}', 'int') FROM {named(lake.folder)}"
            found.append(delta_spark.sql(query).rows)
    assert found == [((7,), (7,)), ((None,), (None,))]
    done = optimize(lake.folder)
    assert done.outcome is Outcome.REFUSED, (done.outcome, done.reason)
    assert f"{what} in its value, and none in its typed column" in str(done.reason)


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("seed", range(20))
def test_any_history_of_shredded_and_plain_files(delta_spark: DeltaSpark, tmp_path: Path, seed: int) -> None:
    random, table = Random(seed), tmp_path / "t"
    create(delta_spark, table, mapping=random.choice(["none", "name"]))
    start = 0
    for _ in range(random.randint(5, 8)):
        step = random.choice(["insert", "insert", "insert", "delete", "optimize", "ours", "our delete"])
        if step == "insert":
            variant = random.choice([ORDERS, TYPES, SCALARS])
            insert(delta_spark, table, variant, start, shredded=random.random() < 0.7, rows=random.randint(1, 30))
            start += 100
        elif step == "delete":
            delta_spark.sql(f"DELETE FROM {named(table)} WHERE id % 11 = {random.randint(0, 10)}")
        elif step == "optimize":
            delta_spark.sql(f"OPTIMIZE {named(table)}")
        else:
            _ours(delta_spark, table, step, random.randint(0, 10))
    _ours(delta_spark, table, "ours", 0)
    document = nightkeep.audit(f"delta:{table}", since=0, reports=tmp_path / "reports")
    assert document.outcome in (Outcome.VERIFIED, Outcome.SKIPPED), document.reason


def _ours(spark: DeltaSpark, table: Path, step: str, fifth: int) -> None:
    before = shown(spark, table)
    expected: Sequence[tuple[object, ...]] = before.rows
    if step == "ours":
        done = optimize(table)
    else:
        first = 20 * fifth
        done = delete_where(table, f"id >= {first} AND id < {first + 5}")
        expected = [row for row in before.rows if not first <= row[0] < first + 5]
    assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
    assert list(shown(spark, table).rows) == list(expected)
