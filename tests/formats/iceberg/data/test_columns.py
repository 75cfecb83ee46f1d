"""Data files of Iceberg Java, and odd files of others, read as the table's own rows."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from pyroaring import BitMap64
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse, array, mapping, schema, struct
from tests.formats.iceberg.shown import canonical_rows, shown, snapshot_of
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedRows, RefusedTable
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.conform import ConformRules, conform
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.storage import LocalStorage

pytestmark = pytest.mark.in_turn("version")

EVERY = [
    ("b", "boolean"),
    ("i", "int"),
    ("l", "long"),
    ("f", "float"),
    ("d", "double"),
    ("dec9", "decimal(9, 2)"),
    ("dec18", "decimal(18, 3)"),
    ("dec38", "decimal(38, 10)"),
    ("day", "date"),
    ("at", "time"),
    ("ts", "timestamp"),
    ("tstz", "timestamptz"),
    ("s", "string"),
    ("u", "uuid"),
    ("x", "fixed[5]"),
    ("y", "binary"),
    ("st", struct(("p", "int"), ("q", struct(("r", "string"), ("s.t", "float"))))),
    ("li", array("int")),
    ("ls", array(struct(("p", "int"), ("q", "string")))),
    ("m", mapping("string", "int")),
    ("ms", mapping("int", struct(("p", "long"), ("q", array("float"))))),
]
NANOS = [("tn", "timestamp_ns"), ("tzn", "timestamptz_ns")]
FULL: dict[str, Any] = {
    "b": True,
    "i": -7,
    "l": 2**40,
    "f": 1.5,
    "d": "-0.0",
    "dec9": "-1.25",
    "dec18": "12345678901234.567",
    "dec38": "1234567890123456789012345678.0123456789",
    "day": "1969-12-31",
    "at": "23:59:59.999999",
    "ts": "1600-02-29T01:02:03.000004",
    "tstz": "2026-11-21T22:00:00.123456Z",
    "s": "z\u00e9\U0001f600",
    "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "x": "0102030405",
    "y": "00ff",
    "st": {"p": 1, "q": {"r": "r", "s.t": 0.5}},
    "li": [1, None, 3],
    "ls": [{"p": 1, "q": None}, None],
    "m": [["k", 1], ["n", None]],
    "ms": [[1, {"p": 2**40, "q": [1.5, None]}], [2, None]],
    "tn": "2026-11-21T22:00:00.123456789",
    "tzn": "2026-11-21T22:00:00.123456789Z",
}


@pytest.fixture
def lake(iceberg: Warehouse) -> Table:
    return iceberg.table()


def assert_as_java(java: IcebergJava, table: Table) -> None:
    found = canonical_rows(shown(table), snapshot_of(table).schema)
    expected = java.read(table)
    assert found.rows == expected.rows
    assert found.columns == expected.columns


@pytest.mark.parametrize("version", [2, 3])
def test_values_of_every_type_are_those_java_reads(iceberg_java: IcebergJava, lake: Table, version: int) -> None:
    columns = [*EVERY, *(NANOS if version == 3 else [])]
    iceberg_java.create(lake, columns, Layout(format_version=version))
    names = [name for name, *_ in columns]
    iceberg_java.append(lake, [{name: FULL[name] for name in names}, {}, {"i": 1, "st": {}, "li": [], "ms": []}])

    assert_as_java(iceberg_java, lake)


def test_changes_at_every_depth_are_resolved_by_id(iceberg_java: IcebergJava, lake: Table) -> None:
    iceberg_java.create(lake, EVERY, Layout(format_version=3))
    names = [name for name, *_ in EVERY]
    iceberg_java.append(lake, [{name: FULL[name] for name in names}, {}])
    iceberg_java.alter(
        lake,
        {"change": "change_type", "name": "i", "type": "long"},
        {"change": "change_type", "name": "f", "type": "double"},
        {"change": "change_type", "name": "dec9", "type": "decimal(20, 2)"},
        {"change": "change_type", "name": "st.q.s.t", "type": "double"},
        {"change": "change_type", "name": "li.element", "type": "long"},
        {"change": "change_type", "name": "m.value", "type": "long"},
        {"change": "change_type", "name": "ms.value.q.element", "type": "double"},
        {"change": "rename_column", "name": "s", "to": "was s"},
        {"change": "rename_column", "name": "l", "to": "s"},
        {"change": "rename_column", "name": "ls.element.p", "to": "pp"},
        {"change": "rename_column", "name": "ms.value.p", "to": "pp"},
        {"change": "drop_column", "name": "st.p"},
        {"change": "add_column", "name": "p", "parent": "st", "type": "string", "default": "new"},
        {"change": "add_column", "name": "w", "parent": "ls.element", "type": "int", "default": 7},
        {"change": "add_column", "name": "w", "parent": "ms.value", "type": "date"},
        {"change": "drop_column", "name": "day"},
        {"change": "add_column", "name": "day", "type": "decimal(9, 2)", "default": "1.50"},
        {"change": "first", "name": "u"},
    )
    iceberg_java.append(lake, [{"i": 2**40, "st": {"q": None}, "ls": [{"pp": 1, "w": 3}]}, {}])

    assert_as_java(iceberg_java, lake)


def test_a_struct_of_new_fields_alone_is_what_java_reads(iceberg_java: IcebergJava, lake: Table) -> None:
    iceberg_java.create(lake, [("id", "int"), ("st", struct(("a", "int")))], Layout(format_version=3))
    iceberg_java.append(lake, [{"id": 1, "st": {"a": 1}}, {"id": 2}])
    iceberg_java.alter(lake, {"change": "add_column", "name": "z", "parent": "st", "type": "int"})
    iceberg_java.alter(lake, {"change": "drop_column", "name": "st.a"})

    assert_as_java(iceberg_java, lake)


DEFAULTS: dict[str, Any] = {
    "boolean": True,
    "int": -3,
    "long": 2**40,
    "float": 0.5,
    "double": 0.25,
    "date": "1969-12-31",
    "timestamp": "1969-12-31T23:59:59.999999",
    "timestamptz": "2026-11-21T22:00:00.000001Z",
    "string": "a'b",
    "decimal(9, 2)": "-1.25",
    "decimal(38, 10)": "1.0000000000",
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "time": "01:02:03.000004",
}


def test_missing_columns_have_their_initial_defaults(iceberg_java: IcebergJava, lake: Table) -> None:
    iceberg_java.create(lake, [("id", "int")], Layout(format_version=3))
    iceberg_java.append(lake, [{"id": 1}])
    changes = [
        {"change": "add_column", "name": f"c{number}", "type": kind, "default": value, "required": number % 2 == 0}
        for number, (kind, value) in enumerate(DEFAULTS.items())
    ]
    iceberg_java.alter(lake, *changes)

    assert_as_java(iceberg_java, lake)


def test_rows_have_the_ids_that_java_gives_them(iceberg_java: IcebergJava, lake: Table) -> None:
    iceberg_java.create(lake, [("id", "int")], Layout(format_version=3))
    iceberg_java.append(lake, [[n] for n in range(5)], rows_per_file=2)
    iceberg_java.append(lake, [[n] for n in range(5, 9)])
    rewriting = iceberg_java.begin_rewrite(lake, options={"rewrite-all": "true"})
    iceberg_java.commit_rewrite(lake, rewriting)
    iceberg_java.append(lake, [[9]])
    columns = ("id", "_row_id", "_last_updated_sequence_number")

    found = canonical_rows(shown(lake), snapshot_of(lake).schema, columns)

    assert found.rows == iceberg_java.read(lake, columns=columns).rows
    assert len(set(found.column("_row_id"))) == 10
    assert set(found.column("_last_updated_sequence_number")) == {1, 2, 4}


def test_rows_have_no_ids_until_a_table_of_version_3_is_written_to(iceberg_java: IcebergJava, lake: Table) -> None:
    iceberg_java.create(lake, [("id", "int")])
    iceberg_java.append(lake, [[1]])
    iceberg_java.alter(lake, {"change": "set_properties", "properties": {"format-version": "3"}})
    columns = ("id", "_row_id", "_last_updated_sequence_number")

    before = canonical_rows(shown(lake), snapshot_of(lake).schema, columns)
    assert before.rows == iceberg_java.read(lake, columns=columns).rows == ((1, None, None),)
    iceberg_java.append(lake, [[2]])
    after = canonical_rows(shown(lake), snapshot_of(lake).schema, columns)

    assert after.rows == iceberg_java.read(lake, columns=columns).rows
    assert None not in after.column("_row_id")


KINDS: tuple[Callable[[Random], Any], ...] = (
    lambda r: "int",
    lambda r: "float",
    lambda r: "string",
    lambda r: "decimal(9, 2)",
    lambda r: "date",
    lambda r: struct(*((name, kind(r)) for name, kind in zip("abc", picked(r, 3), strict=True))),
    lambda r: array(picked(r, 1)[0](r)),
    lambda r: mapping(r.choice(["int", "string"]), picked(r, 1)[0](r)),
)
WIDER = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(12, 2)"}


def picked(random: Random, count: int) -> list[Callable[[Random], Any]]:
    return random.choices(KINDS, weights=[4, 3, 3, 2, 2, 2, 1, 1], k=count)


def value(kind: Any, random: Random) -> Any:
    """Of a type as a schema's JSON has it."""
    if random.random() < 0.2:
        return None
    if isinstance(kind, dict):
        match kind["type"]:
            case "struct":
                return {field["name"]: value(field["type"], random) for field in kind["fields"]}
            case "list":
                return [value(kind["element"], random) for _ in range(random.randrange(3))]
        keys = {key for _ in range(random.randrange(3)) if (key := value(kind["key"], random)) is not None}
        return [[key, value(kind["value"], random)] for key in keys]
    number = random.randrange(-99, 99)
    if kind.startswith("decimal"):
        return f"{number}.25"
    return {"string": f"t{number}", "date": f"20{abs(number):02d}-01-01", "float": 0.5, "double": 0.1}.get(kind, number)


Change = dict[str, Any]


def evolved(schema: dict[str, Any], random: Random, number: int) -> list[Change]:
    """Changes of some fields, named by paths from the top, of any depth."""
    return list(_below(schema["fields"], "", random, number))


def _below(fields: list[dict[str, Any]], prefix: str, random: Random, number: int) -> Iterator[Change]:
    for place, field in enumerate(fields):
        path = prefix + field["name"]
        yield from _within(field["type"], path, random, number)
        if random.random() < 0.2:
            yield {"change": "rename_column", "name": path, "to": f"r{number}_{place}"}
        elif place and random.random() < 0.15:
            yield {"change": "drop_column", "name": path}


def _within(kind: Any, path: str, random: Random, number: int) -> Iterator[Change]:
    if not isinstance(kind, dict):
        if kind in WIDER and random.random() < 0.3:
            yield {"change": "change_type", "name": path, "type": WIDER[kind]}
    elif kind["type"] == "list":
        yield from _within(kind["element"], f"{path}.element", random, number)
    elif kind["type"] == "map":
        yield from _within(kind["value"], f"{path}.value", random, number)
    else:
        yield from _below(kind["fields"], f"{path}.", random, number)
        if random.random() < 0.4:
            added = type_of(picked(random, 1)[0](random))
            yield {"change": "add_column", "name": f"n{number}", "parent": path, "type": added}


def type_of(kind: Any) -> Any:
    return schema([("x", kind)])["fields"][0]["type"]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(6))
def test_random_histories_of_columns_read_as_in_java(iceberg_java: IcebergJava, lake: Table, seed: int) -> None:
    random = Random(seed)
    columns = [(f"c{number}", kind(random)) for number, kind in enumerate(picked(random, 6))]
    told = iceberg_java.create(lake, columns, Layout(format_version=3))
    for number in range(4):
        rows = [{field["name"]: value(field["type"], random) for field in told["schema"]["fields"]} for _ in range(5)]
        iceberg_java.append(lake, rows)
        told = iceberg_java.alter(lake, *evolved(told["schema"], random, number))

    assert_as_java(iceberg_java, lake)


@pytest.fixture
def plain(tmp_path: Path) -> Callable[..., str]:
    """Writes a Parquet file without field ids, as Hive or plain Spark does."""

    def write(table: pa.Table, **settings: Any) -> str:
        path = tmp_path / "plain.parquet"
        pq.write_table(table, path, store_schema=False, **settings)
        return str(path)

    return write


def test_files_without_ids_are_read_by_the_name_mapping(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lake: Table, plain: Callable[..., str]
) -> None:
    columns = [
        ("id", "long"),
        ("st", struct(("a", "int"), ("b", "string"))),
        ("li", array(struct(("a", "int")))),
        ("m", mapping("string", "double")),
        ("at", "timestamptz"),
        ("small", "int"),
        ("lacks", "string"),
    ]
    iceberg_java.create(lake, columns)
    held = pa.table(
        {
            "other": ["x", "y"],
            "at": pa.array([-1, 10**15], pa.timestamp("us", "UTC")),
            "li": pa.array(
                [[{"extra": 1, "a": 2}], None], pa.list_(pa.struct([("extra", pa.int32()), ("a", pa.int32())]))
            ),
            "st": [{"b": "v", "a": 1}, None],
            "id": pa.array([1, 2], pa.int32()),
            "m": pa.array([[("k", 0.5)], []], pa.map_(pa.string(), pa.float32())),
            "small": pa.array([1, None], pa.int8()),
        }
    )
    path = plain(held, use_deprecated_int96_timestamps=True)
    iceberg_java.commit(lake, iceberg_java.adopt(lake, path), kind="append")
    iceberg_java.alter(
        lake,
        {"change": "rename_column", "name": "id", "to": "key"},
        {"change": "rename_column", "name": "st.b", "to": "other"},
        {"change": "change_type", "name": "st.a", "type": "long"},
    )

    # Java's generic reader takes no mapping, and pyiceberg no column that is not mapped.
    assert canonical_rows(shown(lake), snapshot_of(lake).schema).rows == iceberg_spark.read(lake).rows
    assert shown(lake).column("key").to_pylist() == [1, 2]
    assert shown(lake).column("st").to_pylist() == [{"a": 1, "other": "v"}, None]
    assert shown(lake).column("at").cast(pa.int64()).to_pylist() == [-1, 10**15]


def test_partition_columns_that_files_lack_come_from_metadata(
    iceberg_java: IcebergJava, lake: Table, plain: Callable[..., str]
) -> None:
    columns = [("id", "int"), ("day", "date"), ("name", "string"), ("amount", "decimal(9, 2)")]
    layout = Layout(partition=(("day", "identity"), ("name", "identity"), ("amount", "identity"), ("id", "bucket[2]")))
    iceberg_java.create(lake, columns, layout)
    path = plain(pa.table({"id": pa.array([1, 2], pa.int32())}))
    partition = ["2026-11-21", None, "-1.25", 0]
    iceberg_java.commit(lake, iceberg_java.adopt(lake, path, partition=partition), kind="append")

    found = shown(lake).to_pylist()

    assert found == [
        {"id": number, "day": date(2026, 11, 21), "name": None, "amount": Decimal("-1.25")} for number in (1, 2)
    ]
    assert_as_java(iceberg_java, lake)


class Written:
    """A table of this schema's columns, and one Parquet file of it; no engine is asked."""

    def __init__(self, folder: Path, held: pa.Table, *fields: NestedField, **settings: Any) -> None:
        self.storage = LocalStorage(str(folder))
        pq.write_table(held, folder / "f.parquet", **settings)
        current = Schema(*fields)
        self.schema = IcebergSchema("db.t", 3, f"file:{folder}", current, {0: current}, {0: PartitionSpec()}, 0, {})
        self.file = ContentFile(
            FileContent.DATA,
            "file:/f.parquet",
            "f.parquet",
            "parquet",
            0,
            (),
            held.num_rows,
            1,
            5,
            5,
            1,
            first_row_id=100,
        )

    @property
    def reader(self) -> IcebergFileReader:
        return IcebergFileReader(self.storage, self.schema, self.file)


def with_id(name: str, kind: pa.DataType, number: int) -> "pa.Field[Any]":
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def numbered(count: int) -> pa.Table:
    values = pa.array(range(count), pa.int64())
    texts = [f"t{number}" for number in range(count)]
    return pa.table([values, texts], schema=pa.schema([with_id("n", pa.int64(), 1), with_id("t", pa.string(), 2)]))


NUMBERS = (NestedField(1, "n", LongType()), NestedField(2, "t", StringType()))


@given(st.sets(st.integers(0, 40)), st.integers(1, 50), st.integers(1, 12))
@settings(max_examples=examples(30), deadline=None)
def test_positions_are_ordinals_of_rows(positions: set[int], count: int, group: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader = Written(Path(folder), numbered(count), *NUMBERS, row_group_size=group).reader
        wanted = BitMap64({position for position in positions if position < count})

        found = [row for piece in reader.taken(["t", "_row_id"], wanted) for row in piece.to_pylist()]

        assert found == [{"t": f"t{number}", "_row_id": 100 + number} for number in sorted(wanted)]
        batches = list(reader.batches(["n"], batch_rows=5))
        assert [row["n"] for piece in batches for row in piece.to_pylist()] == list(range(count))
        assert max(piece.num_rows for piece in batches) <= 5


def test_a_sample_has_as_many_rows_as_asked_for(tmp_path: Path) -> None:
    reader = Written(tmp_path, numbered(100), *NUMBERS, row_group_size=7).reader

    found = reader.sampled(["n"], 10, seed=1).column("n").to_pylist()

    assert len(set(found)) == 10
    assert found == sorted(found) == reader.sampled(["n"], 10, seed=1).column("n").to_pylist()
    assert reader.sampled(None, 1000, seed=1).equals(reader.read())


INNER = StructType(NestedField(4, "x", IntegerType()), NestedField(5, "y", StringType()))


def test_keys_are_read_by_id_wherever_they_are(tmp_path: Path) -> None:
    held = pa.struct([with_id("y", pa.string(), 5), with_id("old", pa.int32(), 9), with_id("x", pa.int32(), 4)])
    nested = pa.array([{"y": "a", "old": 1, "x": 2}, None, {"y": None, "old": 3, "x": 4}], held)
    schema = pa.schema([with_id("n", pa.int32(), 1), with_id("s", held, 3)])
    written = Written(tmp_path, pa.table([pa.array([1, None, 3], pa.int32()), nested], schema=schema), *NUMBERS)
    before = Schema(NestedField(3, "s", INNER), NestedField(9, "gone", IntegerType()))
    written.schema = replace(written.schema, schemas={**written.schema.schemas, 1: before})
    added = NestedField(7, "d", StringType(), initial_default="new")
    written.schema = replace(written.schema, current=Schema(*NUMBERS, added))

    (found,) = written.reader.keys([5, 1, 4, 9, 2, 7])

    assert found.schema.field("1").type == pa.int64()
    assert found.to_pydict() == {
        "5": ["a", None, None],
        "1": [1, None, 3],
        "4": [2, None, 4],
        "9": [1, None, 3],
        "2": [None] * 3,
        "7": ["new"] * 3,
    }


def test_an_equality_delete_file_holds_its_own_keys(tmp_path: Path) -> None:
    written = Written(tmp_path, numbered(3).select(["n"]), *NUMBERS)
    written.file = replace(written.file, content=FileContent.EQUALITY_DELETES, equality_ids=(1, 2))

    assert [piece.column("1").to_pylist() for piece in written.reader.keys([1])] == [[0, 1, 2]]
    with pytest.raises(CorruptMetadata, match=r"f.parquet: expected a column with field id 2, found none"):
        list(written.reader.keys([1, 2]))


@pytest.mark.parametrize(
    ("held", "kind", "found"),
    [
        (pa.array([1], pa.int64()), IntegerType(), "int64, which is not read as int32"),
        (pa.array([2**40], pa.int64()), FloatType(), "int64"),
        (pa.array([1.5], pa.float64()), FloatType(), "double"),
        (pa.array([Decimal("1.25")], pa.decimal128(9, 2)), DecimalType(9, 1), r"decimal128\(9, 2\)"),
        (pa.array([Decimal("1.25")], pa.decimal128(9, 2)), DecimalType(8, 2), r"decimal128\(9, 2\)"),
        (pa.array(["1"]), IntegerType(), "string"),
        (pa.array([[1]]), IntegerType(), "list"),
        (pa.array([{"a": 1}]), ListType(2, IntegerType(), element_required=False), "struct"),
        (pa.array([10**15 + 1], pa.timestamp("ns")), TimestampType(), "lose data"),
    ],
)
def test_what_cannot_be_read_is_reported_by_file_and_column(
    tmp_path: Path, held: Any, kind: IcebergType, found: str
) -> None:
    table = pa.table([held], schema=pa.schema([with_id("then", held.type, 1)]))
    written = Written(tmp_path, table, NestedField(1, "now", kind))

    with pytest.raises((RefusedRows), match=rf"file:/f.parquet column now \(id 1\): expected .*{found}"):
        written.reader.read()


def test_lists_whose_elements_have_another_id_are_not_read(tmp_path: Path) -> None:
    kind = pa.list_(with_id("element", pa.int32(), 3))
    table = pa.table([pa.array([[1]], kind)], schema=pa.schema([with_id("l", kind, 1)]))
    written = Written(tmp_path, table, NestedField(1, "l", ListType(2, IntegerType(), element_required=False)))

    with pytest.raises(RefusedRows, match="elements with id 3, not 2"):
        written.reader.read()


def test_two_fields_of_one_id_are_a_doubt(tmp_path: Path) -> None:
    table = pa.table([[1], [2]], schema=pa.schema([with_id("a", pa.int64(), 1), with_id("b", pa.int64(), 1)]))

    with pytest.raises(
        CorruptMetadata, match=r"f.parquet: expected fields with an id each, found ValueError: two fields with id 1"
    ):
        _ = Written(tmp_path, table, *NUMBERS).reader


def test_a_file_without_ids_needs_a_mapping(tmp_path: Path) -> None:
    written = Written(tmp_path, pa.table({"n": [1]}), *NUMBERS)

    with pytest.raises(RefusedTable, match=r"schema.name-mapping.default"):
        _ = written.reader
    written.schema = replace(written.schema, properties={"schema.name-mapping.default": '[{"field-id": "x"}]'})
    with pytest.raises(CorruptMetadata, match="a name mapping"):
        _ = written.reader


def test_damage_is_reported(tmp_path: Path) -> None:
    written = Written(tmp_path, numbered(1000), *NUMBERS, write_page_checksum=True, compression="none")
    path = tmp_path / "f.parquet"
    data = bytearray(path.read_bytes())
    data[200] ^= 4
    path.write_bytes(data)
    with pytest.raises(CorruptMetadata, match=r"file:/f.parquet: expected pages of a Parquet file"):
        written.reader.read()
    path.write_bytes(b"PAR1")
    with pytest.raises(CorruptMetadata, match=r"file:/f.parquet: expected a Parquet file"):
        _ = written.reader
    path.unlink()
    with pytest.raises(MissingFile, match=r"/f.parquet: expected a file that metadata names"):
        _ = written.reader


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.large_binary(), pa.binary_view()], ids=str)
def test_types_that_only_arrow_has_are_read_as_the_tables(kind: pa.DataType) -> None:
    """pyiceberg's copy-on-write leaves them in the schema that a Parquet file keeps for Arrow."""
    text = "string" in str(kind)
    wanted: IcebergType = StringType() if text else BinaryType()
    values = ["a", None, ""] if text else [b"a", None, b""]
    plain: Any = pa.string() if text else pa.binary()
    assert conform(pa.array(values, kind), kind, wanted, ConformRules(_no_fill)).equals(pa.array(values, plain))
    many = pa.large_list(pa.field("element", kind, metadata={"PARQUET:field_id": "5"}))
    found = conform(
        pa.array([values, [], None], many), many, ListType(5, wanted, element_required=False), ConformRules(_no_fill)
    )
    assert found.to_pylist() == [values, [], None] and found.type == pa.list_(pa.field("element", plain))


def _no_fill(field: NestedField, rows: int) -> Any:
    raise AssertionError(f"{field.name}: expected in the file")
