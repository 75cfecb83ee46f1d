"""What plain Spark makes of a snapshot, against what Iceberg's own readers show of it."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import NestedField, TimestampNanoType, TimestamptzNanoType, TimeType, UUIDType
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.engines.iceberg_java import IcebergJava
from tests.engines.iceberg_spark import IcebergSpark
from tests.engines.iceberg_tables import Table
from tests.engines.lake_rows import Rows, rows_of
from tests.iceberg.catalog_world import address_of, configure
from tests.iceberg.golden_tables import NOT_READ_BY_JAVA, RECIPES, known

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.schema import TableSchema, parse
from nightkeep.model import View
from nightkeep.relation import Side, column, open_relation

Made = Callable[[str], Table]
REFUSED = {
    "empty_v2", "empty_v3", "first_version", "avro_data_v2", "avro_data_v3", "orc_data_v2", "orc_data_v3",
    "nanoseconds",
}  # fmt: skip
"""And those without a snapshot; tests of their own say why."""


@pytest.fixture(autouse=True)
def catalogs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[[Table], None]:
    return lambda table: configure(monkeypatch, table.warehouse)


def plain_columns(schema: TableSchema) -> list[tuple[int, NestedField]]:
    return [(i, field) for i, field in enumerate(schema.current.fields) if field.field_type.is_primitive]


def spark_rows(spark: SparkSession, table: Table, number: int | None = None) -> Rows:
    """Rows of every unit in plain columns, and what row lineage keeps, in the form in which Java answers."""
    relation = open_relation(address_of(table), spark)
    version = relation.version(relation.latest() if number is None else number)
    assert version is not None
    schema = parse(table.document(), table=table.name)
    columns = plain_columns(schema)
    lineage = [i for i, name in enumerate(relation.schema.fieldNames()) if i >= len(schema.current.fields)]
    payload = {f"v{i}": F.col(column(i)) for i in (*(i for i, _ in columns), *lineage)}
    frame = relation.rows(Side(version.number, View.RAW), sorted(version.units), payload=payload)
    assert frame.where("NOT sound").isEmpty()
    held = frame.drop("unit", "sound").toArrow()
    names = [relation.schema.fieldNames()[int(name[1:])] for name in payload]
    fields = [field for _, field in columns]
    arrays = [as_iceberg(held.column(i), fields[i] if i < len(fields) else None) for i in range(len(names))]
    found = rows_of(pa.table(arrays, names=names)).ordered()
    states = [state.rows for state in version.units.values()]
    if None not in states:
        assert sum(rows or 0 for rows in states) == len(found.rows)
    assert version.rows_told == version.rows_listed >= len(found.rows)
    return found


def as_iceberg(values: "pa.ChunkedArray[Any]", field: NestedField | None) -> "pa.ChunkedArray[Any]":
    """What Spark has as a long or as bytes."""
    match field and field.field_type:
        case TimeType():
            return values.cast(pa.time64("us"))
        case TimestampNanoType():
            return values.cast(pa.timestamp("ns"))
        case TimestamptzNanoType():
            return values.cast(pa.timestamp("ns", "UTC"))
        case UUIDType():
            plain = values.cast(pa.binary(16))
            return pa.chunked_array([pa.ExtensionArray.from_storage(pa.uuid(), chunk) for chunk in plain.chunks])
        case _:
            return values


def same(judged: Rows, found: Rows) -> None:
    assert (found.columns, found.rows) == (judged.columns, judged.rows)


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in REFUSED])
def test_spark_sees_what_iceberg_sees(
    name: str,
    made: Made,
    spark: SparkSession,
    iceberg_java: IcebergJava,
    catalogs: Callable[[Table], None],
    request: pytest.FixtureRequest,
) -> None:
    table = made(name)
    catalogs(table)
    found = spark_rows(spark, table)
    if known(NOT_READ_BY_JAVA, name):
        engine: IcebergSpark = request.getfixturevalue("iceberg_spark")
        same(engine.read(table, columns=found.columns), found)
    else:
        same(iceberg_java.read(table, columns=found.columns), found)
