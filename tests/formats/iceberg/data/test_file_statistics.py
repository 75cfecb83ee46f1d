"""Metrics of data files: those that Iceberg Java writes for the same rows, and nothing that a row contradicts."""

import math
import struct
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import (
    BinaryType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse, array, mapping
from tests.drivers.iceberg_tables import struct as structs
from tests.formats.iceberg.shown import STORAGE, only_unit, snapshot_of
from tests.support.examples import examples

from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.file_statistics import IcebergFileStats
from nightkeep.formats.iceberg.data.write import IcebergFileWriter
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.leaf_columns import StatsModes, leaves
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.model import Run

RUN = Run("run", "0123456789ab", 1, 0)
RESERVED = 2_147_483_447
"""Field ids above are not of columns."""
MAPS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
COLUMNS = [
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
    ("tn", "timestamp_ns"),
    ("s", "string"),
    ("u", "uuid"),
    ("x", "fixed[20]"),
    ("y", "binary"),
    ("st", structs(("p", "int"), ("q", structs(("r", "string"))))),
    ("li", array("double")),
    ("m", mapping("string", structs(("p", "long")))),
]
TEXTS = (
    "",
    "a",
    "exactly sixteen!",
    "more than sixteen",
    "z" * 40,
    "\u00e9" * 20,
    "\U0001f600" * 17,
    "\U0010ffff" * 17,
    "a" * 15 + "\U0010ffff" * 3,
    "\ud7ff" * 17,
    "a" * 15 + "\uffff\uffff",
    "\uff5e",
    "\U00010000",
)
BYTES = ("", "00", "ff" * 16, "ff" * 17, "ab" * 20, "ab" + "ff" * 30, "00" * 17)


def value(kind: Any, random: Random) -> Any:
    if random.random() < 0.25:
        return None
    match kind:
        case {"type": "struct"}:
            return {name: value(inner, random) for name, inner in kind["columns"]}
        case {"type": "list"}:
            return [value(kind["element"], random) for _ in range(2)]
        case {"type": "map"}:
            return [["k", value(kind["value"], random)]]
    number = random.randrange(-(10**6), 10**6)
    return {
        "boolean": number % 2 == 0,
        "int": number,
        "long": number << 40,
        "float": random.choice([number / 4, "NaN", "Infinity", "-Infinity"]),
        "double": random.choice([number / 4, "NaN"]),
        "decimal(9, 2)": f"{number % 1000 - 500}.25",
        "decimal(18, 3)": f"{number}.125",
        "decimal(38, 10)": f"{number << 60}.0000000001",
        "date": f"{1500 + number % 1000}-02-03",
        "time": f"{number % 24:02d}:01:02.000003",
        "timestamp": f"{1500 + number % 1000}-02-03T00:00:00.000001",
        "timestamptz": f"{1500 + number % 1000}-02-03T00:00:00.000001Z",
        "timestamp_ns": f"{1900 + number % 100}-02-03T00:00:00.000000001",
        "string": random.choice(TEXTS),
        "uuid": f"{number & 0xFFFFFFFF:08x}-677c-4bbd-a479-3f349cb785e7",
        "fixed[20]": f"{number & 0xFFFF:04x}" * 10,
        "binary": random.choice(BYTES),
    }[kind]


def told(raw: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
    """By field id, of the table's own columns, whoever tells it; bounds as hex."""
    found: dict[str, dict[int, Any]] = {}
    for name in MAPS:
        values = {int(number): each for number, each in (raw[name] or {}).items() if int(number) < RESERVED}
        found[name] = {number: each.hex() if isinstance(each, bytes) else each for number, each in values.items()}
    return found


def safer(found: dict[str, dict[int, Any]], uuids: Collection[int] = ()) -> dict[str, dict[int, Any]]:
    """What Java tells, without what lets Spark miss NaN among what is above a value, and Java itself miss uuids."""
    nans, values = found["nan_value_counts"], found["value_counts"]
    lows = {number: bound for number, bound in found["lower_bounds"].items() if number not in uuids}
    highs = {number: bound for number, bound in found["upper_bounds"].items() if not nans.get(number)}
    highs = {number: bound for number, bound in highs.items() if number not in uuids}
    counts = {number: count for number, count in nans.items() if count != values[number]}
    return {**found, "lower_bounds": lows, "upper_bounds": highs, "nan_value_counts": counts}


def uuids_of(table: Table) -> set[int]:
    fields = index_by_id(snapshot_of(table).schema.current)
    return {number for number, field in fields.items() if isinstance(field.field_type, UUIDType)}


def rewritten(table: Table) -> list[tuple[list[dict[str, Any]], tuple[ContentFile, ...]]]:
    """What we tell of each file's rows, and the files as their manifests have them, by unit."""
    found = []
    for unit in snapshot_of(table).units:
        fields = tuple(unit.schema.current.fields)
        ours = []
        for file in unit.files:
            stats = IcebergFileStats(fields, StatsModes(unit.schema))
            reader = IcebergFileReader(STORAGE, unit.schema, file)
            for batch in reader.batches([field.name for field in fields], batch_rows=3):
                stats.add(batch)
            ours.append(stats.metrics())
        found.append((ours, unit.files))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_metrics_are_those_of_java(iceberg_java: IcebergJava, iceberg: Warehouse, seed: int) -> None:
    random, table = Random(seed), iceberg.table()
    iceberg_java.create(table, COLUMNS, Layout(format_version=3))
    rows = [{name: value(kind, random) for name, kind in COLUMNS} for _ in range(12)]
    iceberg_java.append(table, rows, rows_per_file=4)

    ((ours, files),) = rewritten(table)

    assert len(files) == 3
    for metrics, file in zip(ours, files, strict=True):
        assert told(metrics) == safer(told(file.raw), uuids_of(table))


@pytest.mark.parametrize("name", ["types_v3", "transforms_v3", "upserts_v3", "merge_on_read_v2", "merge_on_read_v3"])
def test_metrics_are_those_of_files_that_engines_wrote(golden: Callable[[str], Table], name: str) -> None:
    table = golden(name)
    pairs = [pair for metrics, files in rewritten(table) for pair in zip(metrics, files, strict=True)]

    assert pairs
    for metrics, file in pairs:
        assert told(metrics) == safer(told(file.raw), uuids_of(table))


MODES = (
    {},
    {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.s": "full"},
    {"write.metadata.metrics.default": "counts", "write.metadata.metrics.column.st.q.r": "truncate(2)"},
    {"write.metadata.metrics.default": "FULL", "write.metadata.metrics.column.i": "none"},
    {"write.metadata.metrics.default": "truncate(1)", "write.metadata.metrics.column.y": "nonsense"},
    {"write.metadata.metrics.max-inferred-column-defaults": "5"},
    {"write.metadata.metrics.max-inferred-column-defaults": "18", "write.metadata.metrics.column.li.element": "full"},
)


@pytest.mark.parametrize("properties", MODES)
def test_modes_are_those_of_java(iceberg_java: IcebergJava, iceberg: Warehouse, properties: dict[str, str]) -> None:
    random, table = Random(1), iceberg.table()
    iceberg_java.create(table, COLUMNS, Layout(format_version=3, properties=properties))
    iceberg_java.append(table, [{name: value(kind, random) for name, kind in COLUMNS} for _ in range(6)])

    ((ours, (file,)),) = rewritten(table)

    assert told(ours[0]) == safer(told(file.raw), uuids_of(table))
    unit = only_unit(table)
    rows = IcebergFileReader(STORAGE, unit.schema, file).read()
    writer = IcebergFileWriter(STORAGE, unit.schema, IcebergNaming(RUN), spec_id=0, values=())
    (written,) = writer.write([rows], rows_per_file=100)
    sizes = written.file.raw["column_sizes"]
    assert isinstance(sizes, dict)
    assert sizes.keys() - {2147483540, 2147483539} == file.raw["column_sizes"].keys()


def table_of(*fields: NestedField, **properties: str) -> IcebergSchema:
    schema = Schema(*fields)
    return IcebergSchema("db.t", 2, "/t", schema, {0: schema}, {0: PartitionSpec()}, 0, properties)


def metrics(kind: IcebergType, *chunks: pa.Array, **properties: str) -> dict[str, Any]:  # type: ignore[type-arg]
    schema = table_of(NestedField(1, "c", kind), **properties)
    stats = IcebergFileStats(tuple(schema.current.fields), StatsModes(schema))
    for chunk in chunks:
        stats.add(pa.table({"c": chunk}))
    return stats.metrics()


@given(st.lists(st.lists(st.text() | st.none())), st.integers(1, 4))
@settings(max_examples=examples(200), deadline=None)
def test_bounds_of_texts_hold_and_are_short(chunks: list[list[str | None]], length: int) -> None:
    arrays = [pa.array(chunk, pa.string()) for chunk in chunks]
    mode = {"write.metadata.metrics.default": f"truncate({length})"}
    found = metrics(StringType(), *arrays, **mode)
    values = [value for chunk in chunks for value in chunk if value is not None]

    low, high = (found[side].get(1) for side in ("lower_bounds", "upper_bounds"))
    assert found["value_counts"] == {1: sum(map(len, chunks))}
    assert found["null_value_counts"] == {1: sum(value is None for chunk in chunks for value in chunk)}
    assert (low is None) == (not values)
    for value in values:
        assert low <= value.encode()
        assert high is None or value.encode() <= high
    assert max((len(bound.decode()) for bound in (low, high) if bound is not None), default=0) <= length
    if values and high is None:
        assert set(max(value.encode() for value in values).decode()[:length]) == {"\U0010ffff"}


@given(st.lists(st.binary(max_size=6), min_size=1))
@settings(max_examples=examples(200), deadline=None)
def test_bounds_of_bytes_hold_and_are_short(values: list[bytes]) -> None:
    found = metrics(BinaryType(), pa.array(values), **{"write.metadata.metrics.default": "truncate(2)"})

    low, high = (found[side].get(1) for side in ("lower_bounds", "upper_bounds"))
    assert low == min(values)[:2]
    assert high is None or (max(values) <= high and len(high) <= 2)
    assert high is not None or max(values)[:2] == b"\xff\xff"


@given(st.lists(st.lists(st.floats() | st.none() | st.just(-0.0))))
@settings(max_examples=examples(200), deadline=None)
def test_bounds_of_floats_hold_for_every_order_of_nan_and_zeros(chunks: list[list[float | None]]) -> None:
    found = metrics(DoubleType(), *[pa.array(chunk, pa.float64()) for chunk in chunks])
    values = [value for chunk in chunks for value in chunk if value is not None]
    ordered = sorted(value for value in values if not math.isnan(value))

    nans, rows = len(values) - len(ordered), sum(map(len, chunks))
    assert found["nan_value_counts"] == ({1: nans} if chunks and nans != rows else {})
    assert found["lower_bounds"].keys() == ({1} if ordered else set())
    assert found["upper_bounds"].keys() == ({1} if ordered and not nans else set())
    for side, extreme, sign in (("lower_bounds", min, -1), ("upper_bounds", max, 1)):
        for data in found[side].values():
            (bound,) = struct.unpack("<d", data)
            assert bound == extreme(ordered)
            assert bound != 0 or math.copysign(1, bound) == sign


def test_values_below_a_null_struct_are_null() -> None:
    schema = table_of(NestedField(1, "s", StructType(NestedField(2, "f", DoubleType(), required=True))))
    stats = IcebergFileStats(tuple(schema.current.fields), StatsModes(schema))
    held = pa.StructArray.from_arrays([pa.array([1.0, 2.0, 3.0])], ["f"], mask=pa.array([False, True, False]))
    stats.add(pa.table({"s": held}))

    assert stats.metrics()["null_value_counts"] == {2: 1}
    assert stats.metrics()["upper_bounds"] == {2: struct.pack("<d", 3.0)}


def test_leaves_are_columns_and_fields_of_structs() -> None:
    schema = table_of(
        NestedField(1, "a", IntegerType()),
        NestedField(2, "s", StructType(NestedField(3, "b", StringType()), NestedField(4, "t", StructType()))),
        NestedField(5, "l", ListType(6, IntegerType())),
        NestedField(7, "m", MapType(8, StringType(), 9, IntegerType())),
    )

    assert [(leaf.path, leaf.ordered) for leaf in leaves(schema)] == [
        (("a",), True),
        (("s", "b"), True),
        (("l",), False),
        (("m",), False),
    ]
