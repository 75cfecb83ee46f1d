"""New data files: what is written is read again, by us and by three engines, in files of the size asked for."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lake_rows import rows_of
from tests.drivers.lakes_oracle import Lakes
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, RefusedRows, RefusedTable
from nightkeep.formats.delta.data.columns import COMMIT_VERSION, ROW_ID, DeltaFileReader
from nightkeep.formats.delta.data.file_statistics import DeltaFileStats
from nightkeep.formats.delta.data.write import DeltaFileWriter, WrittenDeltaFile
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.naming import DeltaNaming
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema, RowTracking
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit, load
from nightkeep.kernels import row_groups
from nightkeep.model import Address, Run, UnitKey
from nightkeep.storage import LocalStorage

NOW_MS = 1_795_000_000_000
UTC_MICROS, MICROS = pa.timestamp("us", "UTC"), pa.timestamp("us")


def field(name: str, kind: pa.DataType, *, nullable: bool = True) -> DeltaField:
    return DeltaField(name, name, None, kind, kind, nullable)


def schema(*fields: DeltaField, partitions: tuple[str, ...] = (), **more: Any) -> DeltaSchema:
    settings = MappingProxyType(more.pop("settings", {}))
    return DeltaSchema(fields, partitions, more.pop("mapping", ColumnMapping.NONE), settings, **more)


class Writing:
    """A writer of a table in this folder."""

    def __init__(self, folder: Path, table: DeltaSchema, **settings: Any) -> None:
        self.storage, self.schema, self.folder = LocalStorage(str(folder)), table, folder
        partition = settings.pop("partition", {})
        naming = DeltaNaming(Run("run", "f" * 16, "0", NOW_MS), UnitKey("", None))
        self.writer = DeltaFileWriter(self.storage, table, naming, partition, now_ms=NOW_MS, **settings)

    def write(self, *chunks: pa.Table, **limit: int) -> list[WrittenDeltaFile]:
        return self.writer.write(iter(chunks), **(limit or {"rows_per_file": 10**6}))

    def read(self, file: WrittenDeltaFile, **partition: object) -> pa.Table:
        stored = DeltaDataFile(str(file.add["path"]), file.name, file.bytes, file.rows, None, None, {}, file.add)
        unit = DeltaUnit(UnitKey("", None), partition, {}, (stored,), self.schema)
        return DeltaFileReader(self.storage, unit, stored).read()

    def footer(self, file: WrittenDeltaFile) -> pq.FileMetaData:
        return pq.read_metadata(self.folder / file.name)


INNER = pa.struct([("x", pa.int32()), ("when", UTC_MICROS)])
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "b": (pa.int8(), st.integers(-128, 127)),
    "s": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "d": (pa.float64(), st.floats(allow_nan=False)),
    "flag": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text(max_size=5)),
    "raw": (pa.binary(), st.binary(max_size=5)),
    "day": (pa.date32(), st.dates()),
    "at": (UTC_MICROS, st.datetimes(timezones=st.just(UTC))),
    "ntz": (MICROS, st.datetimes()),
    "small": (pa.decimal128(9, 2), st.decimals(-(10**6), 10**6, places=2)),
    "wide": (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
    "place": (INNER, st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "when": st.none()})),
    "tags": (pa.list_(pa.field("element", pa.string())), st.lists(st.none() | st.text(max_size=2), max_size=3)),
    "counts": (
        pa.map_(pa.string(), pa.list_(pa.field("element", INNER))),
        st.lists(st.tuples(st.text(max_size=2), st.none()), max_size=2),
    ),
}
FIELDS = tuple(field(name, kind) for name, (kind, _) in TYPES.items())
ARROW = pa.schema([(name, kind) for name, (kind, _) in TYPES.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in TYPES.items()}), min_size=1, max_size=5
)


@settings(max_examples=examples(30), deadline=None)
@given(ROWS)
def test_rows_of_every_type_are_read_as_they_were_written(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writing = Writing(Path(folder), schema(*FIELDS))
        table = pa.Table.from_pylist(rows, schema=ARROW)

        (file,) = writing.write(table)

        assert writing.read(file).equals(table)


def mapped(name: str, number: int, kind: pa.DataType, stored: pa.DataType) -> DeltaField:
    return DeltaField(name, f"col-{number}", number, kind, stored, True)


def with_id(name: str, kind: pa.DataType, number: int) -> "pa.Field[Any]":
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


@pytest.mark.parametrize("mapping", [ColumnMapping.NAME, ColumnMapping.ID])
def test_mapped_columns_have_their_physical_names_and_ids(tmp_path: Path, mapping: ColumnMapping) -> None:
    stored = pa.struct([with_id("col-2", pa.int32(), 2), with_id("col-3", UTC_MICROS, 3)])
    listed, spelled = pa.list_(pa.field("element", stored)), pa.list_(pa.field("element", INNER))
    table = schema(mapped("place", 1, INNER, stored), mapped("places", 4, spelled, listed), mapping=mapping)
    writing = Writing(tmp_path, table)
    value = {"x": 1, "when": datetime(2026, 11, 1, tzinfo=UTC)}
    rows = pa.table({"place": pa.array([value, None], INNER), "places": pa.array([[value, None], None], spelled)})

    (file,) = writing.write(rows)

    held = pq.ParquetFile(tmp_path / file.name).schema_arrow
    assert [(one.name, one.metadata[b"PARQUET:field_id"]) for one in held] == [("col-1", b"1"), ("col-4", b"4")]
    inner = held.field("col-4").type.value_type
    assert [(one.name, one.metadata[b"PARQUET:field_id"]) for one in inner] == [("col-2", b"2"), ("col-3", b"3")]
    assert writing.read(file).equals(rows)


def test_files_are_such_as_sparks_readers_expect(tmp_path: Path) -> None:
    writing = Writing(tmp_path, schema(*FIELDS, field("must", pa.int32(), nullable=False)))
    rows = pa.Table.from_pylist([{}], schema=ARROW).append_column("must", pa.array([1], pa.int32()))

    (file,) = writing.write(rows)

    footer = writing.footer(file)
    columns = {footer.schema.column(n).path: footer.schema.column(n) for n in range(len(footer.schema))}
    assert footer.metadata is None and footer.row_group(0).column(0).compression == "SNAPPY"
    times = [json.loads(columns[name].logical_type.to_json()) for name in ("at", "ntz")]
    assert [(time["isAdjustedToUTC"], time["timeUnit"]) for time in times] == [
        (True, "microseconds"),
        (False, "microseconds"),
    ]
    physical = {name: columns[name].physical_type for name in ("at", "ntz", "small", "wide", "b", "text")}
    assert physical == {
        "at": "INT64",
        "ntz": "INT64",
        "small": "INT32",
        "wide": "FIXED_LEN_BYTE_ARRAY",
        "b": "INT32",
        "text": "BYTE_ARRAY",
    }
    assert columns["must"].max_definition_level == 0 and columns["i"].max_definition_level == 1
    assert "tags.list.element" in columns and "counts.key_value.value.list.element.x" in columns


@pytest.mark.parametrize(
    "settings, codec, expected, ending",
    [
        ({}, None, "SNAPPY", ".snappy.parquet"),
        ({"delta.parquet.compression.codec": "ZSTD"}, None, "ZSTD", ".zstd.parquet"),
        ({"delta.parquet.compression.codec": "zstd"}, "gzip", "GZIP", ".gzip.parquet"),
        ({}, "uncompressed", "UNCOMPRESSED", ".uncompressed.parquet"),
        ({}, "lz4_raw", "LZ4", ".lz4_raw.parquet"),
    ],
)
def test_codecs(tmp_path: Path, settings: dict[str, str], codec: str | None, expected: str, ending: str) -> None:
    writing = Writing(tmp_path, schema(field("n", pa.int64()), settings=settings), codec=codec)

    (file,) = writing.write(pa.table({"n": [1]}))

    assert writing.footer(file).row_group(0).column(0).compression == expected and file.name.endswith(ending)


def test_a_codec_of_others_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedTable, match="compression lzo"):
        Writing(tmp_path, schema(field("n", pa.int64())), codec="lzo")


def test_the_add_action_states_what_the_file_is(tmp_path: Path) -> None:
    table = schema(field("day", pa.date32()), field("p", pa.string()), field("n", pa.int64()), partitions=("day", "p"))
    partition = {"day": "2026-11-01", "p": "a b/0"}
    writing = Writing(tmp_path, table, partition=partition, tags={"t": "x"})
    rows = pa.table({"n": [3, 1], "day": [date(2026, 11, 1)] * 2, "p": ["a b/0"] * 2})

    (file,) = writing.write(rows)

    stats = DeltaFileStats(table)
    stats.add(rows)
    assert file.add == {
        "path": str(file.add["path"]),
        "partitionValues": partition,
        "size": (tmp_path / file.name).stat().st_size,
        "modificationTime": NOW_MS,
        "dataChange": False,
        "stats": stats.json(),
        "tags": {"t": "x"},
    }
    assert file.name.startswith("day=2026-11-01/p=a b%2F0/part-00000-nk-") and (tmp_path / file.name).is_file()
    assert str(file.add["path"]).startswith("day=2026-11-01/p=a%20b%252F0/part-00000-nk-")
    assert (file.rows, file.bytes) == (2, file.add["size"])
    assert writing.footer(file).schema.names == ["n"]
    assert writing.read(file, day=date(2026, 11, 1), p="a b/0").column("p").to_pylist() == ["a b/0"] * 2


def test_files_hold_partition_columns_where_they_must_and_no_void_ones(tmp_path: Path) -> None:
    fields = (field("p", pa.string()), field("n", pa.int64()), field("nothing", pa.null()))
    table = schema(*fields, partitions=("p",), stores_partitions=True)
    writing = Writing(tmp_path, table, partition={"p": "a"})

    (file,) = writing.write(pa.table({"p": ["a"], "n": [1], "nothing": pa.nulls(1)}))

    assert writing.writer.columns == ("p", "n") and writing.footer(file).schema.names == ["p", "n"]
    assert writing.read(file, p="a").to_pydict() == {"p": ["a"], "n": [1], "nothing": [None]}


def test_row_ids_are_kept_in_the_columns_that_the_table_names(tmp_path: Path) -> None:
    tracking = RowTracking("_row-id", "_row-version")
    table = schema(field("n", pa.int64()), assigns_row_ids=True, row_tracking=tracking)
    writing = Writing(tmp_path, table)
    rows = pa.table({"n": [1, 2], ROW_ID: [70, 8], COMMIT_VERSION: [3, 4]})

    (file,) = writing.write(rows)

    assert writing.footer(file).schema.names == ["n", "_row-id", "_row-version"]
    assert writing.read(file).equals(rows)
    assert "_row" not in str(file.add["stats"]) and "baseRowId" not in file.add


def test_a_null_where_none_may_be_is_reported(tmp_path: Path) -> None:
    writing = Writing(tmp_path, schema(field("n", pa.int64(), nullable=False)))
    with pytest.raises(RefusedRows, match="column n: expected no nulls, found 1 of 2"):
        writing.write(pa.table({"n": [1, None]}))


def order(writing: Writing, files: list[WrittenDeltaFile]) -> list[int]:
    return [n for file in files for n in writing.read(file).column("n").to_pylist()]


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6), st.integers(1, 30), st.integers(1, 20))
def test_files_are_cut_to_the_row(sizes: list[int], rows_per_file: int, group: int) -> None:
    numbers = iter(range(10**6))
    chunks = [pa.table({"n": pa.array([next(numbers) for _ in range(size)], pa.int64())}) for size in sizes]
    total = sum(sizes)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_groups, "ROW_GROUP_ROWS", group)
        writing = Writing(Path(folder), schema(field("n", pa.int64())))

        files = writing.write(*chunks, rows_per_file=rows_per_file)

        assert order(writing, files) == list(range(total))
        full, rest = divmod(total, rows_per_file)
        assert [file.rows for file in files] == [rows_per_file] * full + [rest] * (rest > 0)
        groups = [writing.footer(file) for file in files]
        sizes = [footer.row_group(n).num_rows for footer in groups for n in range(footer.num_row_groups)]
        assert max(sizes, default=0) <= group
        assert len({file.name for file in files}) == len(files)


def random_rows(rows: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table({"n": np.arange(rows), "x": generator.integers(0, 2**62, rows)})


@pytest.mark.parametrize("chunk", [500, 7_919, 400_000])
def test_files_come_near_their_target(tmp_path: Path, chunk: int) -> None:
    rows = random_rows(400_000)
    writing = Writing(tmp_path, schema(field("n", pa.int64()), field("x", pa.int64())))
    pieces = [rows.slice(at, chunk) for at in range(0, rows.num_rows, chunk)]

    files = writing.write(*pieces, target_bytes=1_000_000)

    assert order(writing, files) == list(range(rows.num_rows))
    assert all(0.8 * 1_000_000 < file.bytes < 1.2 * 1_000_000 for file in files[:-1])
    assert max(writing.footer(file).num_row_groups for file in files) <= 4


def test_a_target_below_a_row_gives_a_row(tmp_path: Path) -> None:
    writing = Writing(tmp_path, schema(field("n", pa.int64())))

    assert [file.rows for file in writing.write(pa.table({"n": [1, 2, 3]}), target_bytes=1)] == [1, 1, 1]


def test_row_groups_are_bounded_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "ROW_GROUP_BYTES", 160_000)
    rows = random_rows(100_000)
    writing = Writing(tmp_path, schema(field("n", pa.int64()), field("x", pa.int64())))

    (file,) = writing.write(rows, rows_per_file=100_000)

    footer = writing.footer(file)
    assert {footer.row_group(n).num_rows for n in range(footer.num_row_groups)} == {10_000}


def test_chunks_are_taken_as_they_are_needed(tmp_path: Path) -> None:
    """Rows of the next file are not asked for before this one is written."""
    made: list[int] = []

    def chunks() -> Iterator[pa.Table]:
        for number in range(4):
            made.append(len(list(tmp_path.glob("*.parquet"))))
            yield pa.table({"n": pa.array([number] * 10)})

    writing = Writing(tmp_path, schema(field("n", pa.int64())))

    assert len(writing.writer.write(chunks(), rows_per_file=10)) == 4
    assert made == [0, 1, 2, 3]


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    writing = Writing(tmp_path, schema(field("n", pa.int64())))

    assert writing.write() == writing.write(pa.table({"n": pa.array([], pa.int64())})) == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("limits", [{}, {"target_bytes": 1, "rows_per_file": 1}, {"rows_per_file": 0}])
def test_one_limit_is_given(tmp_path: Path, limits: dict[str, int]) -> None:
    writing = Writing(tmp_path, schema(field("n", pa.int64())))
    with pytest.raises(ValueError, match="one limit"):
        writing.writer.write([], **limits)


def test_dictionaries_are_where_values_recur(tmp_path: Path) -> None:
    rows = 20_000
    kinds = {
        "unique": pa.array(np.random.default_rng(0).normal(size=rows)),
        "few": pa.array(np.arange(rows) % 50),
        "runs": pa.array(np.arange(rows) // 100),
        "word": pa.array([f"word {n % 9}" for n in range(rows)]),
        "key": pa.array([f"key {n}" for n in range(rows)]),
        "none": pa.nulls(rows, pa.int32()),
        "tags": pa.array([["a"]] * rows, pa.list_(pa.field("element", pa.string()))),
    }
    writing = Writing(tmp_path, schema(*(field(name, kind.type) for name, kind in kinds.items())))

    (file,) = writing.write(pa.table(kinds))

    group = writing.footer(file).row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    assert {c.path_in_schema for c in columns if c.has_dictionary_page} == {
        "few",
        "runs",
        "word",
        "none",
        "tags.list.element",
    }


def test_no_flipped_bit_in_a_page_reads_as_other_rows(tmp_path: Path) -> None:
    writing = Writing(tmp_path, schema(field("n", pa.int64()), field("text", pa.string())))
    rows = pa.table({"n": [5, None, 7, 2**40], "text": ["a", "bc", None, "d" * 30]})
    (file,) = writing.write(rows)
    path = tmp_path / file.name
    data = path.read_bytes()
    last = writing.footer(file).row_group(0).column(1)
    pages = last.data_page_offset + last.total_compressed_size
    refused, bits = 0, range(4 * 8, pages * 8, 5)
    for bit in bits:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert writing.read(file).equals(rows)
        except CorruptMetadata:
            refused += 1
    # The rest are in what a page's header says of it, and nobody needs.
    assert refused > len(bits) / 2


SQL_TYPES = {
    "b": "TINYINT",
    "s": "SMALLINT",
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "flag": "BOOLEAN",
    "text": "STRING",
    "raw": "BINARY",
    "day": "DATE",
    "at": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
    "small": "DECIMAL(9,2)",
    "wide": "DECIMAL(38,10)",
    "place": "STRUCT<x: INT, when: TIMESTAMP>",
    "tags": "ARRAY<STRING>",
    "counts": "MAP<STRING, ARRAY<STRUCT<x: INT, when: TIMESTAMP>>>",
}
MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999)
VALUES: list[dict[str, Any]] = [
    {
        "b": -128,
        "s": 2**15 - 1,
        "i": -(2**31),
        "l": 2**63 - 1,
        "f": 0.1,
        "d": 1e300,
        "flag": True,
        "text": "\u00e9" * 40,
        "raw": b"\0\xff",
        "day": date(2026, 11, 1),
        "at": MOMENT.replace(tzinfo=UTC),
        "ntz": MOMENT,
        "small": Decimal("-1.25"),
        "wide": Decimal("1234567890123456789012345678.0123456789"),
        "place": {"x": 1, "when": datetime(2026, 11, 1, 1, 2, 3, 4, UTC)},
        "tags": ["a", None, ""],
        "counts": [("k", [{"x": None, "when": MOMENT.replace(tzinfo=UTC)}, None])],
    },
    dict.fromkeys(SQL_TYPES),
    {
        "b": 5,
        "s": 0,
        "i": 0,
        "l": 0,
        "f": -0.0,
        "d": float("-inf"),
        "flag": False,
        "text": "",
        "raw": b"",
        "day": date(1, 1, 1),
        "at": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
        "ntz": datetime(1, 1, 1),
        "small": Decimal(0),
        "wide": Decimal(0),
        "place": {"x": None, "when": None},
        "tags": [],
        "counts": [],
    },
]


def publish(folder: Path, *actions: Mapping[str, object]) -> None:
    version = len(list((folder / "_delta_log").glob("*.json")))
    info = {"commitInfo": {"timestamp": NOW_MS, "operation": "WRITE", "operationParameters": {}}}
    lines = "".join(json.dumps(action) + "\n" for action in (info, *actions))
    (folder / "_delta_log" / f"{version:020d}.json").write_text(lines)


@pytest.mark.few(1)
@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_the_engines_read_our_files(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path, mapping: str) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in SQL_TYPES.items())
    properties = f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mapping}')"
    delta_spark.sql(f"CREATE TABLE {named(tmp_path)} ({columns}) USING delta {properties}")
    table = load(Address("delta", str(tmp_path), "t"), LocalStorage(str(tmp_path))).schema
    writing = Writing(tmp_path, table)
    rows = pa.Table.from_pylist(VALUES, schema=pa.schema([(one.name, one.type) for one in table.fields]))

    (file,) = writing.write(rows)
    publish(tmp_path, {"add": file.add})

    expected = rows_of(rows).ordered()
    delta_spark.forget()
    assert writing.read(file).equals(rows)
    assert delta_spark.read(tmp_path) == expected
    assert lakes.duckdb_read(tmp_path) == expected
    if mapping == "none":
        assert lakes.delta_rs_read(tmp_path) == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("mapping", ["none", "id"])
def test_delta_spark_finds_the_row_ids_we_keep(delta_spark: DeltaSpark, tmp_path: Path, mapping: str) -> None:
    properties = f"'delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = '{mapping}'"
    delta_spark.sql(f"CREATE TABLE {named(tmp_path)} (n BIGINT) USING delta TBLPROPERTIES ({properties})")
    table = load(Address("delta", str(tmp_path), "t"), LocalStorage(str(tmp_path))).schema
    writing = Writing(tmp_path, table)

    (file,) = writing.write(pa.table({"n": [1, 2, 3], ROW_ID: [70, None, 8], COMMIT_VERSION: [0, 5, None]}))
    domain = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":102}', "removed": False}
    added = {**file.add, "baseRowId": 100, "defaultRowCommitVersion": 1}
    publish(tmp_path, {"domainMetadata": domain}, {"add": added})

    delta_spark.forget()
    found = delta_spark.read(tmp_path, columns=("n", "_metadata.row_id", "_metadata.row_commit_version"))
    assert found.rows == ((1, 70, 0), (2, 101, 5), (3, 8, 1))


def test_filters_find_what_has_no_bounds(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    """NaN, infinities and years of five digits, each alone in its file beside a plain value."""
    delta_spark.sql(f"CREATE TABLE {named(tmp_path)} (d DOUBLE, at TIMESTAMP) USING delta")
    writing = Writing(tmp_path, load(Address("delta", str(tmp_path), "t"), LocalStorage(str(tmp_path))).schema)
    far = pa.scalar(2**58, pa.int64()).cast(UTC_MICROS)
    doubles, moments = [float("nan"), float("inf"), float("-inf")], pa.array([far, None], UTC_MICROS)
    chunks = [pa.table({"d": [1.0, odd], "at": moments}) for odd in doubles]

    files = writing.write(*chunks, rows_per_file=2)
    publish(tmp_path, *({"add": file.add} for file in files))

    delta_spark.forget()
    assert [row[0] for row in delta_spark.read(tmp_path, where="d > 5").rows] == ["Infinity", "NaN"]
    assert [row[0] for row in delta_spark.read(tmp_path, where="d < 0").rows] == ["-Infinity"]
    assert len(delta_spark.read(tmp_path, where="at > TIMESTAMP'2026-01-01'").rows) == 3
    assert [row[0] for row in lakes.duckdb_read(tmp_path, where="d > 5").rows] == ["Infinity", "NaN"]
    assert [row[0] for row in lakes.delta_rs_read(tmp_path, where="d = 'Infinity'", columns=("d",)).rows] == [
        "Infinity"
    ]
    assert [row[0] for row in lakes.delta_rs_read(tmp_path, where="d < 0", columns=("d",)).rows] == ["-Infinity"]


def test_row_groups_have_no_bounds_of_what_may_be_nan(tmp_path: Path) -> None:
    inner = pa.struct([("f", pa.float32()), ("n", pa.int32())])
    kinds = {"d": pa.float64(), "n": pa.int64(), "s": inner, "l": pa.list_(pa.field("element", pa.float64()))}
    for place, names in enumerate((list(kinds), ["d"])):
        folder = tmp_path / str(place)
        folder.mkdir()
        writing = Writing(folder, schema(*(field(name, kinds[name]) for name in names)))
        values = {"d": [1.0], "n": [1], "s": [{"f": 1.0, "n": 1}], "l": [[1.0]]}

        (file,) = writing.write(pa.table({name: pa.array(values[name], kinds[name]) for name in names}))

        group = writing.footer(file).row_group(0)
        columns = [group.column(n) for n in range(group.num_columns)]
        bounded = {c.path_in_schema for c in columns if c.statistics is not None and c.statistics.has_min_max}
        assert bounded == ({"n", "s.n"} if len(names) > 1 else set())
