"""What plain Spark makes of a snapshot, against what Iceberg's own readers show of it."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import NestedField, TimestampNanoType, TimestamptzNanoType, TimeType, UUIDType
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse, array, mapping, struct
from tests.drivers.lake_rows import Rows, rows_of
from tests.formats.iceberg.catalog_world import address_of, configure
from tests.formats.iceberg.content_made import equality_of, schema_of
from tests.formats.iceberg.golden_tables import KEPT, NOT_READ_BY_JAVA, RECIPES, known
from tests.formats.iceberg.runs import care_for
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema, parse
from nightkeep.formats.iceberg.metadata.snapshot import NO_SNAPSHOT
from nightkeep.formats.iceberg.spark import deletes
from nightkeep.formats.views import open_view
from nightkeep.model import Operation, Outcome, View
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.document import CheckStatus
from nightkeep.spark.view import Side, TableView, column

Made = Callable[[str], Table]


def _chosen() -> list[str]:
    """Every recipe once: of two versions the one that is kept as bytes, or the newer one."""
    held = {name.removesuffix("_v2").removesuffix("_v3"): name for name in (*RECIPES, *KEPT)}
    return [name for shape, name in held.items() if shape != "empty"]


@pytest.fixture
def known_table(made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A table of RECIPES whose catalog we know."""

    def find(name: str) -> Table:
        table = made(name)
        configure(monkeypatch, table.warehouse)
        return table

    return find


@pytest.fixture
def table(iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Table:
    configure(monkeypatch, iceberg)
    return iceberg.table("db.events")


def plain_columns(schema: IcebergSchema) -> list[tuple[int, NestedField]]:
    return [(i, field) for i, field in enumerate(schema.current.fields) if field.field_type.is_primitive]


def opened(spark: SparkSession, table: Table) -> TableView:
    return open_view(address_of(table), spark)


def spark_rows(spark: SparkSession, table: Table, number: int | None = None) -> Rows:
    """Rows of every unit in plain columns, and what row lineage keeps, in the form in which Java answers."""
    relation = opened(spark, table)
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
    assert version.rows_stated == version.rows_listed >= len(found.rows)
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


@pytest.mark.few(2)
@pytest.mark.parametrize("name", some_extended(_chosen(), keep=10))
def test_spark_sees_what_iceberg_sees(
    name: str, known_table: Made, spark: SparkSession, iceberg_java: IcebergJava, request: pytest.FixtureRequest
) -> None:
    table = known_table(name)
    found = spark_rows(spark, table)
    if known(NOT_READ_BY_JAVA, name):
        engine: IcebergSpark = request.getfixturevalue("iceberg_spark")
        same(engine.read(table, columns=found.columns), found)
    else:
        same(iceberg_java.read(table, columns=found.columns), found)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["types_v3", "partition_types_v2", "evolved_v2", "foreign_v3", "positions"])
def test_statistics_that_java_wrote_hold(name: str, known_table: Made, spark: SparkSession) -> None:
    relation = opened(spark, known_table(name))
    version, nothing = relation.version(relation.latest()), relation.version(NO_SNAPSHOT)
    assert version and nothing
    assert relation.misstated(version.number, nothing.number, sorted(version.units)) == dict.fromkeys(version.units, 0)


@pytest.mark.parametrize(("name", "keys"), [("history_v2", ("id",)), ("positions", ())])
def test_identifier_fields_are_declared_keys(
    name: str, keys: tuple[str, ...], known_table: Made, spark: SparkSession
) -> None:
    assert opened(spark, known_table(name)).declared_keys == keys


def test_times_and_nanoseconds_are_compared_as_numbers(
    spark: SparkSession, iceberg_java: IcebergJava, table: Table
) -> None:
    columns = (("id", "int"), ("t", "time"), ("n", "timestamp_ns"), ("z", "timestamptz_ns"))
    iceberg_java.create(table, columns, Layout((("t", "identity"),), format_version=3))
    row = [1, "12:34:56.123456", "2026-11-01T12:30:00.123456789", "1969-12-31T23:59:59.999999999Z"]
    iceberg_java.append(table, [row, [2, None, None, None]])
    found = spark_rows(spark, table)
    same(iceberg_java.read(table, columns=found.columns), found)
    relation = opened(spark, table)
    assert [field.dataType.simpleString() for field in relation.schema[:4]] == ["int", "bigint", "bigint", "bigint"]
    assert relation.version(NO_SNAPSHOT) and (version := relation.version(relation.latest()))
    assert relation.misstated(version.number, NO_SNAPSHOT, sorted(version.units)) == dict.fromkeys(version.units, 0)


DEFAULTS: dict[str, Any] = {
    "boolean": True,
    "int": -3,
    "long": 2**40,
    "float": 0.5,
    "double": 0.25,
    "decimal(9, 2)": "-1.25",
    "decimal(38, 10)": "1.0000000000",
    "date": "1969-12-30",
    "time": "01:02:03.000004",
    "timestamp": "1969-12-31T23:59:59.999999",
    "timestamptz": "2026-11-21T22:00:00.000001Z",
    "string": "a'b",
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "fixed[3]": "0102ff",
    "binary": "00ff",
}


def test_columns_that_files_lack_have_the_defaults_that_java_reads(
    iceberg_java: IcebergJava, spark: SparkSession, table: Table
) -> None:
    """Of every primitive type, at the top and in a struct; once a commit of ours has written them, too."""
    iceberg_java.create(table, [("id", "int"), ("st", struct(("a", "int")))], Layout(format_version=3))
    iceberg_java.append(table, [{"id": 1, "st": {"a": 1}}], rows_per_file=1)
    iceberg_java.append(table, [{"id": 2}], rows_per_file=1)
    for number, (kind, value) in enumerate(DEFAULTS.items()):
        added = {"change": "add_column", "type": kind, "default": value}
        iceberg_java.alter(table, {**added, "name": f"c{number}"}, {**added, "name": f"n{number}", "parent": "st"})
    iceberg_java.append(table, [{"id": 3}], rows_per_file=1)
    plain = [field.name for _, field in plain_columns(parse(table.document(), table=table.name))]
    truth, nested = iceberg_java.read(table, columns=plain), nested_text(spark, table)
    lacking = json.loads(next(text for text in nested[1] if text is not None))

    found = spark_rows(spark, table)
    document = care_for(table, operation=Operation.OPTIMIZE)
    report = check(CheckRequest(address_of(table)), spark=spark)

    at = [found.columns.index(name) for name in plain]
    assert tuple(tuple(row[i] for i in at) for row in found.rows) == truth.rows
    assert {name: lacking[name] for name in lacking if name.startswith("n")} == NESTED_DEFAULTS
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert report.status is CheckStatus.PASSED, report
    assert nested_text(spark, table) == nested
    assert iceberg_java.read(table, columns=plain).rows == truth.rows


NESTED_DEFAULTS = {
    "n0": True,
    "n1": -3,
    "n2": 2**40,
    "n3": "0.5",
    "n4": "0.25",
    "n5": "-1.25",
    "n6": "1.0000000000",
    "n7": "1969-12-30",
    "n8": str(((1 * 60 + 2) * 60 + 3) * 1_000_000 + 4),
    "n9": "1969-12-31 23:59:59.999999",
    "n10": "2026-11-21 22:00:00.000001",
    "n11": "a'b",
    "n12": "F79C3E09677C4BBDA4793F349CB785E7",
    "n13": "0102FF",
    "n14": "00FF",
}
"""As the check's text has them."""


def nested_text(spark: SparkSession, table: Table) -> dict[int, tuple[str | None, ...]]:
    """Columns after the first by its values, as they are compared."""
    relation = opened(spark, table)
    version = relation.version(relation.latest())
    assert version is not None
    payload = {f"v{i}": F.col(column(i)) for i in range(len(relation.schema.fields))}
    rows = relation.rows(Side(version.number, View.RAW), sorted(version.units), payload=payload)
    return {row[0]: tuple(row[1:]) for row in rows.drop("unit", "sound").collect()}


def test_nested_values_are_text_that_loses_nothing(
    spark: SparkSession, iceberg_java: IcebergJava, table: Table
) -> None:
    """Also where their fields were renamed, added with a default, dropped and widened since."""
    deep = struct(("r", "double"), ("raw", "binary"), ("n", "int"))
    columns = (
        ("id", "int"),
        ("s", struct(("x", "int"), ("deep", deep))),
        ("a", array("string")),
        ("m", mapping("string", struct(("at", "timestamptz")))),
    )
    iceberg_java.create(table, columns, Layout(format_version=3))
    at = "2026-11-01T00:00:00.000001Z"
    iceberg_java.append(
        table,
        [
            [1, {"x": None, "deep": {"r": "-0.0", "raw": "00ff", "n": 7}}, [], []],
            [2, None, None, None],
            [3, {"x": 1, "deep": None}, ["", None, "a,b"], [["k", {"at": at}]]],
        ],
    )
    iceberg_java.alter(
        table,
        {"change": "rename_column", "name": "s.deep", "to": "deeper"},
        {"change": "drop_column", "name": "s.deeper.raw"},
        {"change": "change_type", "name": "s.deeper.n", "type": "long"},
        {"change": "add_column", "parent": "s", "name": "late", "type": "int", "default": 5},
        {"change": "add_column", "parent": "m.value", "name": "new", "type": "string"},
    )
    iceberg_java.append(table, [[4, {"x": 2, "deeper": {"r": "NaN", "n": 2**40}, "late": None}, [None], []]])
    found = {number: values[:3] for number, values in nested_text(spark, table).items()}
    assert found == {
        1: ('{"x":null,"deeper":{"r":"-0.0","n":7},"late":5}', "[]", "[]"),
        2: (None, None, None),
        3: (
            '{"x":1,"deeper":null,"late":5}',
            '["",null,"a,b"]',
            '[{"key":"k","value":{"at":"2026-11-01 00:00:00.000001","new":null}}]',
        ),
        4: ('{"x":2,"deeper":{"r":"NaN","n":1099511627776},"late":null}', "[null]", "[]"),
    }


def test_a_version_states_who_made_it_and_what_it_touched(
    spark: SparkSession, iceberg_java: IcebergJava, table: Table
) -> None:
    iceberg_java.create(table, [("id", "long"), ("day", "string")], Layout((("day", "identity"),)))
    first = iceberg_java.append(table, [[1, "a"], [2, "b"]])
    second = iceberg_java.cdc(table, [("-D", [1, "a"])], keys=("id", "day"))
    rewriting = iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"})
    third = iceberg_java.commit_rewrite(table, rewriting)
    relation = opened(spark, table)
    append, delete, replace = (relation.version(number) for number in (first, second, third))
    assert append and delete and replace
    assert (append.parent, delete.parent, replace.parent) == (NO_SNAPSHOT, first, second)
    assert append.changes_rows == "its operation is append" and delete.changes_rows == "its operation is delete"
    assert replace.changes_rows is None
    assert {str(key) for key in delete.touched} == {"day=a"}
    assert [(each.rows_stated, each.rows_listed) for each in (append, delete, replace)] == [(2, 2), (2, 2), (1, 1)]
    assert [state.rows for _, state in sorted(delete.units.items())] == [None, 1]
    assert relation.latest() == third and relation.version(17) is None
    iceberg_java.expire(table, snapshots=[first])
    assert relation.version(first) is None
    assert [row["id"] for row in spark_rows(spark, table, second).dicts()] == [2]


def test_a_table_without_a_snapshot_has_nothing_to_check(spark: SparkSession, known_table: Made) -> None:
    relation = opened(spark, known_table("empty_v2"))
    version = relation.version(relation.latest())
    assert version and version.changes_rows == "nothing was ever written"
    assert (relation.keys, relation.published, relation.notes) == ((), View.RAW, ())


def test_deletes_that_are_many_are_joined_by_shuffles(
    spark: SparkSession, known_table: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = known_table("specs_deleted_v2")
    found = spark_rows(spark, table)
    monkeypatch.setattr(deletes, "BROADCAST_ROWS", 0)
    assert spark_rows(spark, table) == found


def test_keys_without_one_meaning_of_equal_are_refused() -> None:
    inner = {"type": "struct", "fields": [{"id": 9, "name": "deep", "required": False, "type": "int"}]}
    schema = schema_of((("id", "long"), ("x", "double"), ("s", inner)))
    deletes.refuse_deletes(schema, [equality_of("e", 1, 1, 2)])
    for number, message in ((3, "by s, which is nested"), (9, "by deep, which is nested")):
        with pytest.raises(RefusedTable, match=message):
            deletes.refuse_deletes(schema, [equality_of("e", 1, 1), equality_of("f", 1, 1, number)])
