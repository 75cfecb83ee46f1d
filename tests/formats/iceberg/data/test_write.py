"""Data files as Iceberg writes them: read by engines as their own, with what a commit needs to know of them."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
    UUIDType,
)
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_catalog
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse, array, mapping, struct
from tests.formats.iceberg.shown import STORAGE, canonical_rows, only_unit, shown
from tests.support.examples import examples

from nightkeep.errors import RefusedRows, RefusedTable
from nightkeep.formats.iceberg.data.columns import LAST_UPDATED, ROW_ID, IcebergFileReader
from nightkeep.formats.iceberg.data.conform import constant
from nightkeep.formats.iceberg.data.write import IcebergFileWriter, Lineage, WrittenIcebergFile
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.kernels import row_groups
from nightkeep.model import Run

STRUCT, MAP = pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32())
RUN = Run("run", "0123456789ab", 1, 0)
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
    ("s", "string", True),
    ("u", "uuid"),
    ("x", "fixed[3]"),
    ("y", "binary"),
    ("st", struct(("p", "int"), ("q", struct(("r", "string", True))))),
    ("ls", array(struct(("p", "uuid")), required=True)),
    ("m", mapping("string", array("double"))),
]
UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
ROWS: list[dict[str, Any]] = [
    {
        "b": True,
        "i": -7,
        "l": 2**40,
        "f": "NaN",
        "d": "-0.0",
        "dec9": "-1.25",
        "dec18": "12345678901234.567",
        "dec38": "1234567890123456789012345678.0123456789",
        "day": "1969-12-31",
        "at": "23:59:59.999999",
        "ts": "1600-02-29T01:02:03.000004",
        "tstz": "2026-11-21T22:00:00.123456Z",
        "s": "z\u00e9\U0001f600",
        "u": UUID,
        "x": "010203",
        "y": "00ff",
        "st": {"p": 1, "q": {"r": "r"}},
        "ls": [{"p": UUID}, {}],
        "m": [["k", [1.5, None]], ["n", None]],
    },
    {"s": ""},
    {"s": "x" * 40, "st": {"q": None}, "ls": [], "m": []},
]


def committed(table: Table, files: Sequence[WrittenIcebergFile]) -> None:
    """Put by pyiceberg into one snapshot, in place of every file there is."""
    with pyiceberg_catalog(table.warehouse) as catalog:
        loaded = catalog.load_table(table.name)
        old = [task.file for task in loaded.scan().plan_files()]
        with loaded.transaction() as change, change.update_snapshot().overwrite() as update:
            for file in old:
                update.delete_data_file(file)
            for written in files:
                update.append_data_file(data_file(written.file.raw))


def data_file(raw: Mapping[str, Any]) -> DataFile:
    told = {name: each for name, each in raw.items() if name not in ("content", "file_format", "partition")}
    return DataFile.from_args(
        content=DataFileContent.DATA, file_format=FileFormat.PARQUET, partition=Record(), spec_id=0, **told
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "uncompressed"])
def test_engines_read_what_we_write(
    iceberg_java: IcebergJava, iceberg: Warehouse, iceberg_spark: IcebergSpark, codec: str
) -> None:
    table = iceberg.table()
    iceberg_java.create(table, COLUMNS, Layout(properties={"write.parquet.compression-codec": codec}))
    iceberg_java.append(table, ROWS)
    expected, unit = iceberg_java.read(table), only_unit(table)
    writer = IcebergFileWriter(STORAGE, unit.schema, IcebergNaming(RUN), spec_id=0, values=())
    rows = shown(table)

    files = writer.write([rows], rows_per_file=2)
    committed(table, files)

    assert [file.rows for file in files] == [2, 1]
    assert canonical_rows(shown(table), unit.schema) == canonical_rows(rows, unit.schema)
    assert iceberg_java.read(table).rows == expected.rows
    assert only_unit(table).files[0].path in {file.file.path for file in files}
    # A type that Spark does not know: it reads no file that has such a column.
    iceberg_java.alter(table, {"change": "drop_column", "name": "at"})
    schema = only_unit(table).schema
    writer = IcebergFileWriter(STORAGE, schema, IcebergNaming(RUN), spec_id=0, values=())
    committed(table, writer.write([shown(table)], target_bytes=1 << 20))
    assert iceberg_spark.read(table).rows == iceberg_java.read(table).rows


def test_java_finds_rows_by_our_bloom_filters(iceberg_java: IcebergJava, iceberg: Warehouse) -> None:
    table = iceberg.table()
    columns = [("n", "long"), ("st", struct(("t", "string"))), ("plain", "int"), ("b", "boolean")]
    enabled = "write.parquet.bloom-filter-enabled.column."
    properties = {f"{enabled}{name}": "true" for name in ("n", "st.t", "b", "gone")}
    iceberg_java.create(table, columns, Layout(properties=properties))
    iceberg_java.append(table, [[2 * number, {"t": f"t{number}"}, number, True] for number in range(100)])
    unit = only_unit(table)
    writer = IcebergFileWriter(STORAGE, unit.schema, IcebergNaming(RUN), spec_id=0, values=())
    (file,) = writer.write([shown(table)], rows_per_file=100)
    committed(table, [file])

    group = pq.read_metadata(f"/{file.name}").row_group(0)
    assert [group.column(at).bloom_filter_offset is not None for at in range(4)] == [True, True, False, False]
    for value, found in ((40, (20,)), (41, ())):
        where = {"type": "eq", "term": "n", "value": value}
        assert iceberg_java.read(table, where=where).column("plain") == found


def test_spark_finds_nan_and_zeros_by_filters(
    iceberg_java: IcebergJava, iceberg: Warehouse, iceberg_spark: IcebergSpark
) -> None:
    table = iceberg.table()
    iceberg_java.create(table, [("id", "int"), ("d", "double")])
    iceberg_java.append(table, [[0, 1.0], [1, "NaN"], [2, "-0.0"]])
    unit = only_unit(table)
    writer = IcebergFileWriter(STORAGE, unit.schema, IcebergNaming(RUN), spec_id=0, values=())
    committed(table, writer.write([shown(table).sort_by("id")], rows_per_file=1))

    assert iceberg_spark.read(table, where="d > 5").column("id") == (1,)
    assert iceberg_spark.read(table, where="d = 0.0").column("id") == (2,)
    assert iceberg_spark.read(table, where="d <= 1").column("id") == (0, 2)


def table_of(folder: Path | str, *fields: NestedField, version: int = 2, **properties: str) -> IcebergSchema:
    schema = Schema(*fields)
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "n"), spec_id=1)
    return IcebergSchema(
        "db.t", version, f"file:{folder}", schema, {0: schema}, {0: PartitionSpec(), 1: spec}, 0, properties
    )


def written(schema: IcebergSchema, *chunks: pa.Table, **limit: int) -> list[WrittenIcebergFile]:
    return IcebergFileWriter(STORAGE, schema, IcebergNaming(RUN), spec_id=0, values=()).write(chunks, **limit)


def read(schema: IcebergSchema, files: Sequence[WrittenIcebergFile], names: Sequence[str]) -> list[list[Any]]:
    """The columns of all files, in their order."""
    found = []
    for file in files:
        told = ContentFile(
            FileContent.DATA, file.file.path, file.name, "parquet", 0, (), file.rows, file.bytes, 1, 1, 1
        )
        found.append(IcebergFileReader(STORAGE, schema, told).read(names))
    return [pa.concat_tables(found).column(name).to_pylist() if found else [] for name in names]


NUMBER = NestedField(1, "n", LongType())


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6), st.integers(1, 30), st.integers(1, 20))
def test_files_are_cut_to_the_row(sizes: list[int], rows_per_file: int, group: int) -> None:
    numbers = iter(range(10**6))
    chunks = [pa.table({"n": pa.array([next(numbers) for _ in range(size)], pa.int64())}) for size in sizes]
    total = sum(sizes)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_groups, "ROW_GROUP_ROWS", group)
        schema = table_of(folder, NUMBER)

        files = written(schema, *chunks, rows_per_file=rows_per_file)

        assert read(schema, files, ["n"]) == [list(range(total))]
        full, rest = divmod(total, rows_per_file)
        assert [file.rows for file in files] == [rows_per_file] * full + [rest] * (rest > 0)
        for file in files:
            footer = pq.read_metadata(f"/{file.name}")
            groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
            assert max(each.num_rows for each in groups) <= group
            assert file.file.raw["split_offsets"] == [each.column(0).data_page_offset for each in groups] or (
                file.file.raw["split_offsets"] == [each.column(0).dictionary_page_offset for each in groups]
            )
            sizes_told: Any = file.file.raw["column_sizes"]
            assert sizes_told == {1: sum(each.column(0).total_compressed_size for each in groups)}
            assert file.bytes == Path(f"/{file.name}").stat().st_size == file.file.raw["file_size_in_bytes"]


def test_files_come_near_their_target(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 2**62, 300_000)
    rows = pa.table({"n": values})
    schema = table_of(tmp_path, NUMBER)

    files = written(schema, *[rows.slice(at, 7_919) for at in range(0, 300_000, 7_919)], target_bytes=500_000)

    assert read(schema, files, ["n"]) == [values.tolist()]
    assert all(0.8 * 500_000 < file.bytes < 1.2 * 500_000 for file in files[:-1])


def test_properties_decide_row_groups_pages_and_levels(tmp_path: Path) -> None:
    texts = [f"{number % 97} the quick brown fox {number * 7919 % 1009} jumps" for number in range(20_000)]
    sizes = {}
    for level in ("1", "19"):
        properties = {"write.parquet.compression-level": level, "write.parquet.row-group-size-bytes": "300000"}
        schema = table_of(tmp_path, NestedField(1, "t", StringType()), **properties)
        (file,) = written(schema, pa.table({"t": texts}), rows_per_file=20_000)
        assert pq.read_metadata(f"/{file.name}").num_row_groups == 3
        sizes[level] = file.bytes
    assert sizes["19"] < 0.95 * sizes["1"]


def test_row_groups_are_as_small_as_asked_for_and_pages_have_an_index(tmp_path: Path) -> None:
    """Also where the table's property allows larger ones. Floating columns have no bounds."""
    schema = table_of(tmp_path, NestedField(1, "n", LongType()), NestedField(2, "d", DoubleType()))
    writer = IcebergFileWriter(STORAGE, schema, IcebergNaming(RUN), spec_id=0, values=(), group_bytes=32 << 10)
    numbers = np.random.default_rng(0).integers(0, 1 << 60, 50_000)
    (file,) = writer.write([pa.table({"n": numbers, "d": numbers / 3})], rows_per_file=50_000)
    footer = pq.read_metadata(f"/{file.name}")
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    stored = [group.column(0).total_compressed_size + group.column(1).total_compressed_size for group in groups]
    assert len(groups) > 20 and max(stored) < 36 << 10
    assert len(file.file.raw["split_offsets"]) == len(groups)
    assert [groups[1].column(at).has_column_index for at in (0, 1)] == [True, False]


def test_files_lie_where_their_partition_does(tmp_path: Path) -> None:
    schema = table_of(tmp_path, NUMBER)
    writer = IcebergFileWriter(STORAGE, schema, IcebergNaming(RUN), spec_id=1, values=(7,), sequence_number=5)

    (file,) = writer.write([pa.table({"n": [7, 7]})], rows_per_file=10)

    assert file.file.path.startswith(f"file:{tmp_path}/data/n=7/00000-nk-0123456789ab-")
    assert file.name == file.file.path.removeprefix("file:/")
    assert (file.file.spec_id, file.file.raw["partition"], file.file.sequence_number) == (1, (7,), 5)


def test_ids_of_rows_are_carried_on(tmp_path: Path) -> None:
    schema = table_of(tmp_path, NUMBER, version=3)
    rows = pa.table({"n": [1, 2], ROW_ID: [70, 60], LAST_UPDATED: pa.array([3, None], pa.int64())})
    writer = IcebergFileWriter(STORAGE, schema, IcebergNaming(RUN), spec_id=0, values=())
    new = IcebergFileWriter(STORAGE, schema, IcebergNaming(RUN), spec_id=0, values=(), lineage=Lineage.NEW)

    (file,) = writer.write([rows], rows_per_file=10)
    (other,) = new.write([rows], rows_per_file=10)

    assert (writer.columns, new.columns) == (("n", ROW_ID, LAST_UPDATED), ("n",))
    told = ContentFile(FileContent.DATA, file.file.path, file.name, "parquet", 0, (), 2, 1, 9, 9, 1, first_row_id=100)
    assert IcebergFileReader(STORAGE, schema, told).read().to_pydict() == {
        "n": [1, 2],
        ROW_ID: [70, 60],
        LAST_UPDATED: [3, 9],
    }
    told = replace(told, path=other.file.path, name=other.name)
    assert IcebergFileReader(STORAGE, schema, told).read([ROW_ID]).to_pydict() == {ROW_ID: [100, 101]}


def test_files_state_what_schema_they_have(tmp_path: Path) -> None:
    inner = StructType(NestedField(5, "u", UUIDType(), required=True))
    fields = (
        NestedField(1, "n", LongType(), required=True),
        NestedField(2, "l", ListType(3, inner, element_required=False)),
        NestedField(6, "m", MapType(7, StringType(), 8, IntegerType(), value_required=True)),
        NestedField(9, "never", UnknownType()),
    )
    schema = table_of(tmp_path, *fields, version=3)
    lists = pa.array([None], pa.list_(pa.struct([("u", pa.binary(16))])))
    rows = pa.table([[1], lists, pa.array([[("k", 1)]], MAP)], names=["n", "l", "m"])
    writer = IcebergFileWriter(STORAGE, schema, IcebergNaming(RUN), spec_id=0, values=(), lineage=Lineage.NEW)

    (file,) = writer.write([rows], rows_per_file=1)

    parquet = pq.ParquetFile(f"/{file.name}")
    assert [str(parquet.schema.column(at).logical_type) for at in range(4)] == ["None", "UUID", "String", "None"]
    text = str(parquet.schema)
    for told in (
        "required int64 field_id=1 n",
        "field_id=3 element",
        "required fixed_len_byte_array(16) field_id=5 u",
        "required int32 field_id=8 value",
        "required binary field_id=7 key",
    ):
        assert told in text
    assert json.loads(parquet.metadata.metadata[b"iceberg.schema"])["fields"][0]["name"] == "n"


REQUIRED = StructType(NestedField(2, "a", IntegerType(), required=True))


@pytest.mark.parametrize(
    ("kind", "values", "found"),
    [
        (LongType(), pa.array([1, None], pa.int64()), "column c: expected no nulls, found 1 of 2"),
        (REQUIRED, pa.array([{"a": None}, {"a": 1}], STRUCT), "column c.a"),
        (ListType(2, IntegerType()), pa.array([[1, None]], pa.list_(pa.int32())), "column c.element"),
        (MapType(2, StringType(), 3, IntegerType()), pa.array([[("k", None)]], MAP), "column c.value"),
        (LongType(), pa.array(["x"]), "string, which is not read as int64"),
    ],
)
def test_rows_that_the_schema_does_not_allow_are_not_written(
    tmp_path: Path, kind: IcebergType, values: Any, found: str
) -> None:
    schema = table_of(tmp_path, NestedField(1, "c", kind, required=True))

    with pytest.raises(RefusedRows, match=found):
        written(schema, pa.table({"c": values}), rows_per_file=10)


def test_nulls_below_a_null_struct_are_none_of_its_fields(tmp_path: Path) -> None:
    schema = table_of(tmp_path, NestedField(1, "c", REQUIRED))
    held = pa.array([None, {"a": 1}, None], STRUCT)

    files = written(schema, pa.table({"c": held}).slice(1), rows_per_file=10)

    assert read(schema, files, ["c"]) == [[{"a": 1}, None]]


def test_a_struct_that_files_lack_is_null_and_its_required_fields_are_none(tmp_path: Path) -> None:
    """As rows come of files from before the column."""
    schema = table_of(tmp_path, NestedField(1, "c", REQUIRED))

    files = written(schema, pa.table({"c": constant(None, STRUCT, 2)}), rows_per_file=10)

    assert read(schema, files, ["c"]) == [[None, None]]


def test_row_groups_have_no_bounds_of_what_may_be_nan(tmp_path: Path) -> None:
    schema = table_of(tmp_path, NestedField(1, "d", DoubleType()), NestedField(2, "n", LongType()))

    (file,) = written(schema, pa.table({"d": [1.0, float("nan")], "n": [1, 2]}), rows_per_file=2)

    group = pq.read_metadata(f"/{file.name}").row_group(0)
    assert not group.column(0).is_stats_set
    assert group.column(1).statistics.max == 2


@pytest.mark.parametrize(
    ("key", "text", "error", "found"),
    [
        ("write.parquet.compression-codec", "lz4", RefusedTable, "compression lz4 is not handled"),
        ("write.parquet.page-size-bytes", "1 MB", RefusedTable, "'1 MB', which is not a whole number"),
    ],
)
def test_properties_that_we_cannot_follow_are_reported(
    tmp_path: Path, key: str, text: str, error: type[Exception], found: str
) -> None:
    with pytest.raises(error, match=found):
        written(table_of(tmp_path, NUMBER, **{key: text}), rows_per_file=1)
