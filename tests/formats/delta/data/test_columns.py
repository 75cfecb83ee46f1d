"""Data files of delta-spark, and odd files of others, read as the table's own rows."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.drivers.lake_rows import Rows, rows_of

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedRows, RefusedTable
from nightkeep.formats.delta.data.columns import COMMIT_VERSION, ROW_ID, DeltaFileReader, every_column
from nightkeep.formats.delta.data.conform import FileRules, by_place, conform
from nightkeep.formats.delta.gate.scan import rows, survivors
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema, RowTracking
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit, load
from nightkeep.model import Address, UnitKey
from nightkeep.model.variant_type import VARIANT
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
TABLES = sorted(path.parent.name for path in GOLDEN.glob("*/rows.json"))
UTC_MICROS, MICROS = pa.timestamp("us", "UTC"), pa.timestamp("us")


def golden(name: str) -> tuple[LocalStorage, DeltaSnapshot]:
    root = str(GOLDEN / name / "table")
    storage = LocalStorage(root)
    return storage, load(Address("delta", root, name), storage)


def shown(storage: LocalStorage, snapshot: DeltaSnapshot) -> pa.Table:
    batches = [
        batch for unit in snapshot.units for batch in rows(storage, unit, survivors(storage, unit)) if batch.num_rows
    ]
    schema = pa.schema([(field.name, field.type) for field in snapshot.schema.fields])
    names = [field.name for field in snapshot.schema.fields]
    return pa.Table.from_batches(batches).select(names) if batches else schema.empty_table()


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_delta_spark_have_the_rows_it_reads(name: str) -> None:
    expected = Rows.of(json.loads((GOLDEN / name / "rows.json").read_text()))

    found = rows_of(shown(*golden(name))).ordered()

    assert found == expected


@pytest.mark.parametrize("name", [path.parent.name for path in GOLDEN.glob("*/row_ids.json")])
def test_rows_have_the_ids_that_delta_spark_gives_them(name: str) -> None:
    expected = Rows.of(json.loads((GOLDEN / name / "row_ids.json").read_text()))
    storage, snapshot = golden(name)
    batches = [b for unit in snapshot.units for b in rows(storage, unit, survivors(storage, unit))]
    found = pa.Table.from_batches(batches)
    by_last_name = {column.rsplit(".", 1)[-1]: found.column(column) for column in found.column_names}

    assert rows_of(pa.table({column: by_last_name[column] for column in expected.columns})).ordered() == expected


def field(name: str, kind: pa.DataType, *, physical: str | None = None, number: int | None = None) -> DeltaField:
    return DeltaField(name, physical or name, number, kind, kind, True)


def with_id(name: str, kind: pa.DataType, number: int) -> "pa.Field[Any]":
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


class Written:
    """A file of a table with these columns, holding these rows."""

    def __init__(self, folder: Path, table: pa.Table, *fields: DeltaField, **settings: Any) -> None:
        self.storage = LocalStorage(str(folder))
        pq.write_table(table, folder / "f.parquet", **settings)
        self.schema = DeltaSchema(fields, (), ColumnMapping.NONE, MappingProxyType({}))
        self.partition: Mapping[str, object] = {}
        self.raw: Mapping[str, object] = {}
        self.rows: int | None = table.num_rows

    @property
    def unit(self) -> DeltaUnit:
        file = DeltaDataFile("f.parquet", "f.parquet", 1, self.rows, None, None, {}, self.raw)
        return DeltaUnit(UnitKey("", None), self.partition, {}, (file,), self.schema)

    @property
    def reader(self) -> DeltaFileReader:
        return DeltaFileReader(self.storage, self.unit, self.unit.files[0])

    def mapped(self, mapping: ColumnMapping) -> "Written":
        self.schema = DeltaSchema(self.schema.fields, (), mapping, MappingProxyType({}))
        return self

    def read(self, names: Sequence[str] | None = None) -> dict[str, list[Any]]:
        found = self.reader.read(names)
        assert found.schema == pa.schema([(f.name, f.type) for f in self.schema.fields if names is None])
        return found.to_pydict()


INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])


def test_columns_are_found_by_id_down_to_the_leaves(tmp_path: Path) -> None:
    held = pa.struct([with_id("b", pa.string(), 4), with_id("gone", pa.int32(), 9), with_id("a", pa.int32(), 3)])
    values = [{"b": "v", "gone": 0, "a": 1}, None]
    lists = [[{"b": "w", "gone": 0, "a": 2}], None]
    maps = [[("k", {"b": "z", "gone": 0, "a": 3})], []]
    schema = pa.schema(
        [
            with_id("c", held, 2),
            with_id("d", pa.list_(held), 5),
            with_id("e", pa.map_(pa.string(), held), 6),
            with_id("n", pa.int64(), 8),
        ]
    )
    table = pa.table([values, lists, maps, [1, 2]], schema=schema)
    stored = pa.struct([with_id("p1", pa.int32(), 3), with_id("p2", pa.string(), 4), with_id("n", pa.int8(), 7)])
    kind = pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.int8())])
    fields = (
        DeltaField("place", "p", 2, kind, stored, True),
        DeltaField("places", "q", 5, pa.list_(kind), pa.list_(stored), True),
        DeltaField("named", "r", 6, pa.map_(pa.string(), kind), pa.map_(pa.string(), stored), True),
        # The name of a column that was dropped, under an id that this file has not.
        field("n", pa.int64(), number=10),
    )

    found = Written(tmp_path, table, *fields).mapped(ColumnMapping.ID).read()

    assert found == {
        "place": [{"x": 1, "y": "v", "z": None}, None],
        "places": [[{"x": 2, "y": "w", "z": None}], None],
        "named": [[("k", {"x": 3, "y": "z", "z": None})], []],
        "n": [None, None],
    }


def test_a_file_without_ids_is_refused_where_columns_are_found_by_id(tmp_path: Path) -> None:
    written = Written(tmp_path, pa.table({"p": [1]}), field("n", pa.int64(), physical="p", number=1))

    with pytest.raises(RefusedTable, match="no field ids"):
        written.mapped(ColumnMapping.ID).read()
    assert written.mapped(ColumnMapping.NAME).read() == {"n": [1]}


def test_a_name_that_differs_by_case_alone_is_neither_read_nor_null(tmp_path: Path) -> None:
    place = pa.array([{"X": 3, "y": "a"}], pa.struct([("X", pa.int32()), ("y", pa.string())]))
    cases = (
        (
            pa.table([[1]], names=["ID"]),
            field("id", pa.int64()),
            "column id: .*one field id, .*ID, which differs by case",
        ),
        (pa.table([place], names=["place"]), field("place", INNER), "column place: .*no field x, but X"),
        (pa.table([[1], [2]], names=["ID", "Id"]), field("id", pa.int64()), "no field id, but ID, Id"),
    )
    for number, (table, wanted, told) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(RefusedRows, match=told):
            Written(folder, table, wanted).read()
    both = pa.table([[1], [2]], names=["ID", "Id"])
    assert Written(tmp_path, both, field("Id", pa.int64())).read() == {"Id": [2]}


def test_a_dot_in_a_name_is_no_path(tmp_path: Path) -> None:
    table = pa.table([[{"b": 1}], [2]], names=["a", "a.b"])

    assert Written(tmp_path, table, field("a.b", pa.int64())).read() == {"a.b": [2]}


def test_what_the_table_does_not_have_is_left_out_and_what_the_file_lacks_is_null(tmp_path: Path) -> None:
    table = pa.table({"_change_type": ["insert"], "n": [1], "day": ["wrong"]})
    written = Written(tmp_path, table, field("day", pa.date32()), field("n", pa.int64()), field("new", INNER))
    written.schema = DeltaSchema(written.schema.fields, ("day",), ColumnMapping.NONE, MappingProxyType({}))
    written.partition = {"day": date(2026, 11, 1)}

    assert written.read() == {"day": [date(2026, 11, 1)], "n": [1], "new": [None]}
    # None of these is in the file.
    assert written.reader.read(["new", "day"]).to_pydict() == {"new": [None], "day": [date(2026, 11, 1)]}


PARTITIONS: list[tuple[pa.DataType, object]] = [
    (pa.string(), "a/b"),
    (pa.int8(), -5),
    (pa.int64(), 2**62),
    (pa.float64(), 1.5),
    (pa.bool_(), True),
    (pa.binary(), b"\0x"),
    (pa.decimal128(10, 2), Decimal("1.50")),
    (pa.date32(), date(1, 1, 1)),
    (UTC_MICROS, datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
    (MICROS, datetime(1, 1, 1, 0, 0, 0, 1)),
    (pa.string(), None),
    (pa.date32(), None),
]


@pytest.mark.parametrize("kind, value", PARTITIONS)
def test_values_of_partitions_are_constants_of_their_type(tmp_path: Path, kind: pa.DataType, value: object) -> None:
    written = Written(tmp_path, pa.table({"n": [1, 2]}), field("p", kind), field("n", pa.int64()))
    written.schema = DeltaSchema(written.schema.fields, ("p",), ColumnMapping.NONE, MappingProxyType({}))
    written.partition = {"p": value}

    assert written.read() == {"p": [value, value], "n": [1, 2]}


WIDENED: list[tuple[pa.DataType, pa.DataType, object, object]] = [
    (pa.int8(), pa.int16(), -5, -5),
    (pa.int8(), pa.int64(), -5, -5),
    (pa.int16(), pa.int32(), 7, 7),
    (pa.int32(), pa.int64(), 2**31 - 1, 2**31 - 1),
    (pa.float32(), pa.float64(), 0.5, 0.5),
    (pa.int8(), pa.float64(), -5, -5.0),
    (pa.int32(), pa.float64(), 2**31 - 1, 2.0**31 - 1),
    (pa.date32(), MICROS, date(1, 1, 1), datetime(1, 1, 1)),
    (pa.decimal128(5, 2), pa.decimal128(8, 4), Decimal("1.25"), Decimal("1.2500")),
    (pa.decimal128(18, 2), pa.decimal128(38, 10), Decimal("1.25"), Decimal("1.2500000000")),
    (pa.int32(), pa.decimal128(10, 0), -(2**31), Decimal(-(2**31))),
    (pa.int64(), pa.decimal128(22, 2), 5, Decimal(5)),
    # Annotations that some writers leave out.
    (pa.int32(), pa.int8(), 127, 127),
    (pa.binary(), pa.string(), b"x", "x"),
    (MICROS, UTC_MICROS, None, None),
    (pa.timestamp("ms", "UTC"), UTC_MICROS, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize("held, wanted, value, expected", WIDENED)
def test_values_widen_at_the_top_and_within(
    tmp_path: Path, held: pa.DataType, wanted: pa.DataType, value: object, expected: object
) -> None:
    one = pa.array([value, None], held)
    nested = pa.StructArray.from_arrays([one], names=["x"])
    table = pa.table({"n": one, "s": nested, "l": pa.ListArray.from_arrays([0, 2, 2], one)})
    within = pa.struct([("x", wanted)])
    fields = (field("n", wanted), field("s", within), field("l", pa.list_(wanted)))

    found = Written(tmp_path, table, *fields, store_schema=False).read()

    assert found == {"n": [expected, None], "s": [{"x": expected}, {"x": None}], "l": [[expected, None], []]}


@pytest.mark.parametrize(
    "held, wanted, value",
    [
        (pa.int64(), pa.int32(), 1),
        (pa.float64(), pa.float32(), 1.0),
        (pa.int64(), pa.float64(), 1),
        (pa.int32(), pa.string(), 1),
        (pa.string(), pa.int32(), "1"),
        (pa.bool_(), pa.int32(), True),
        (pa.date32(), UTC_MICROS, date(2026, 1, 1)),
        (MICROS, pa.date32(), datetime(2026, 1, 1)),
        (pa.decimal128(8, 4), pa.decimal128(8, 2), Decimal("1.25")),
        (pa.decimal128(8, 4), pa.decimal128(8, 5), Decimal("1.25")),
        (pa.int32(), pa.int8(), 128),
        (pa.binary(), pa.string(), b"\xff"),
        (pa.int32(), INNER, 1),
        (INNER, pa.int32(), None),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), []),
    ],
)
def test_nothing_is_narrowed_or_guessed(tmp_path: Path, held: pa.DataType, wanted: pa.DataType, value: object) -> None:
    table = pa.table({"n": pa.array([value], held)})
    with pytest.raises(RefusedRows, match=r"f\.parquet column n"):
        Written(tmp_path, table, field("n", wanted)).read()


OF_LONGS = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
"""As a file has it, without our mark."""


def test_a_shredded_variant_is_read_as_a_plain_one(tmp_path: Path) -> None:
    rows = [{"metadata": b"\x01\x00\x00", "value": None, "typed_value": 5}, None]
    found = Written(tmp_path, pa.table({"v": pa.array(rows, OF_LONGS)}), field("v", VARIANT)).read()["v"]
    assert found == [{"metadata": b"\x01\x00\x00", "value": b"\x18" + bytes([5, *bytes(7)])}, None]


@pytest.mark.parametrize(
    ("value", "extra", "found"),
    [(b"\x00", [], "a value beside one of type int64"), (None, [("more", pa.int8())], "a variant with fields more")],
)
def test_a_variant_without_one_value_is_refused(tmp_path: Path, value: object, extra: list[object], found: str) -> None:
    kind = pa.struct([*OF_LONGS, *extra])
    table = pa.table({"v": pa.array([{"metadata": b"\x01\x00\x00", "value": value, "typed_value": 5}], kind)})
    with pytest.raises(RefusedRows, match=found):
        Written(tmp_path, table, field("v", VARIANT)).read()


def test_a_user_s_fields_of_these_names_are_no_variant(tmp_path: Path) -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    table = pa.table({"s": pa.array([{"metadata": b"no", "value": b"variant", "typed_value": 1}], OF_LONGS)})
    assert Written(tmp_path, table, field("s", kind)).read()["s"] == [{"metadata": b"no", "value": b"variant"}]


TIMES = [
    datetime(1, 1, 1),
    datetime(1582, 10, 10, 1, 2, 3, 4),
    datetime(1677, 9, 21),
    None,
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(2554, 7, 21),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
]


def test_int96_times_of_all_years_do_not_wrap(tmp_path: Path) -> None:
    """As delta-spark writes them; Arrow's own reader of nanoseconds has 1677 to 2262 only."""
    values = pa.array(TIMES, UTC_MICROS)
    table = pa.table({"at": values, "s": pa.StructArray.from_arrays([values], names=["at"])})
    fields = (field("at", UTC_MICROS), field("s", pa.struct([("at", UTC_MICROS)])))
    expected = [None if time is None else time.replace(tzinfo=UTC) for time in TIMES]

    written = Written(tmp_path, table, *fields, use_deprecated_int96_timestamps=True, row_group_size=3)

    assert pq.ParquetFile(tmp_path / "f.parquet").schema.column(0).physical_type == "INT96"
    assert written.read() == {"at": expected, "s": [{"at": time} for time in expected]}


def test_types_that_arrow_remembers_are_the_tables_own(tmp_path: Path) -> None:
    text = pa.array(["a", None, "a"])
    table = pa.table(
        {
            "d": text.dictionary_encode(),
            "l": text.cast(pa.large_string()),
            "v": text.cast(pa.string_view()),
            "ll": pa.array([["x"], None, []], pa.large_list(pa.large_string())),
        }
    )
    fields = (*(field(name, pa.string()) for name in "dlv"), field("ll", pa.list_(pa.string())))

    found = Written(tmp_path, table, *fields).read()

    assert found == {**{name: ["a", None, "a"] for name in "dlv"}, "ll": [["x"], None, []]}


NESTED = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int32()))), ("s", INNER)]))
NUMBERS = st.none() | st.integers(0, 9)
ITEMS = st.fixed_dictionaries(
    {
        "m": st.none() | st.lists(st.tuples(st.text(max_size=2), st.none() | st.lists(NUMBERS))),
        "s": st.none() | st.fixed_dictionaries({"x": NUMBERS, "y": st.none() | st.text(max_size=2)}),
    }
)
VALUES = st.none() | st.lists(st.none() | ITEMS, max_size=3)


@given(st.lists(VALUES, min_size=1, max_size=6), st.integers(0, 5))
def test_slices_of_nested_values_keep_their_values(values: list[Any], start: int) -> None:
    """Renamed, which builds everything anew; a slice's offsets are not its children's."""
    renamed = pa.list_(pa.struct([("k", pa.map_(pa.string(), pa.list_(pa.int64()))), ("t", INNER)]))
    column = pa.chunked_array([pa.array(values, NESTED).slice(start)])

    found = conform(column, renamed, renamed, FileRules(by_place))

    spelled = [v and [i and {"k": i["m"], "t": i["s"]} for i in v] for v in column.to_pylist()]
    assert found.type == renamed and found.to_pylist() == spelled


@given(st.sets(st.integers(0, 99)), st.integers(1, 100))
def test_taken_rows_are_the_filtered_ones(positions: set[int], group: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({"n": range(100)})
        reader = Written(Path(folder), table, field("n", pa.int64()), row_group_size=group).reader

        found = [n for piece in reader.taken(None, BitMap64(positions)) for n in piece.column("n").to_pylist()]

    assert found == sorted(positions)


def test_batches_are_small_and_in_order(tmp_path: Path) -> None:
    reader = Written(tmp_path, pa.table({"n": range(1000)}), field("n", pa.int64()), row_group_size=300).reader

    pieces = list(reader.batches(batch_rows=128))

    assert reader.rows == 1000 and max(piece.num_rows for piece in pieces) == 128
    assert pa.concat_tables(pieces).column("n").to_pylist() == list(range(1000))


def test_a_batch_of_a_large_row_group_is_all_that_is_in_memory(tmp_path: Path) -> None:
    rows = 2_000_000
    table = pa.table({"n": np.random.default_rng(0).integers(0, 2**62, rows)})
    reader = Written(tmp_path, table, field("n", pa.int64()), row_group_size=rows).reader
    del table
    before, most = pa.total_allocated_bytes(), 0

    for _ in reader.batches(batch_rows=1 << 14):
        most = max(most, pa.total_allocated_bytes() - before)

    assert most < rows * 8 / 4


def test_samples_are_distinct_rows_the_same_for_one_seed(tmp_path: Path) -> None:
    reader = Written(tmp_path, pa.table({"n": range(1000)}), field("n", pa.int64()), row_group_size=300).reader

    found = reader.sampled(["n"], 100, seed=7).column("n").to_pylist()

    assert len(set(found)) == len(found) == 100 and found == reader.sampled(["n"], 100, seed=7).column("n").to_pylist()
    assert found != reader.sampled(["n"], 100, seed=8).column("n").to_pylist()
    assert max(found) > 700 and min(found) < 300
    assert reader.sampled(None, 5000, seed=0).num_rows == 1000


def test_files_without_rows_have_columns(tmp_path: Path) -> None:
    reader = Written(tmp_path, pa.table({"n": pa.array([], pa.int64())}), field("n", pa.int64())).reader

    assert (reader.rows, reader.read().to_pydict(), reader.sampled(["n"], 3, seed=0).num_rows) == (0, {"n": []}, 0)


def tracked(written: Written, **raw: object) -> Written:
    tracking = RowTracking("_row-id", "_row-version")
    written.schema = DeltaSchema(
        written.schema.fields, (), ColumnMapping.NONE, MappingProxyType({}), assigns_row_ids=True, row_tracking=tracking
    )
    written.raw = raw
    return written


def test_row_ids_are_those_kept_or_counted_from_the_base(tmp_path: Path) -> None:
    table = pa.table({"n": range(5), "_row-id": [None, 7, None, None, 8], "_row-version": [1, None, None, 2, None]})
    written = Written(tmp_path, table, field("n", pa.int64()), row_group_size=2)
    tracked(written, baseRowId=100, defaultRowCommitVersion=9)

    assert every_column(written.schema) == ("n", ROW_ID, COMMIT_VERSION)
    found = written.reader.read()
    assert found.column(ROW_ID).to_pylist() == [100, 7, 102, 103, 8]
    assert found.column(COMMIT_VERSION).to_pylist() == [1, 9, 9, 2, 9]
    (piece,) = written.reader.taken([ROW_ID], BitMap64([3]))
    assert piece.to_pydict() == {ROW_ID: [103]}


def test_row_ids_that_are_nowhere_are_reported(tmp_path: Path) -> None:
    written = tracked(Written(tmp_path, pa.table({"n": [1]}), field("n", pa.int64())))

    with pytest.raises(CorruptMetadata, match="a base row id"):
        written.reader.read()
    assert written.reader.read(["n"]).num_rows == 1

    table = pa.table({"n": [1, 2], "_row-id": [5, None], "_row-version": [1, 2]})
    some = tracked(Written(tmp_path, table, field("n", pa.int64())))
    assert some.reader.read([COMMIT_VERSION]).to_pydict() == {COMMIT_VERSION: [1, 2]}
    with pytest.raises(CorruptMetadata, match="a base row id"):
        some.reader.read([ROW_ID])


def test_all_batches_of_a_unit_have_one_schema(tmp_path: Path) -> None:
    narrow = Written(tmp_path, pa.table({"n": pa.array([1], pa.int16())}), field("n", pa.int64()), field("s", INNER))
    pq.write_table(pa.table({"n": [2], "s": pa.array([{"y": "a"}])}), tmp_path / "g.parquet")
    files = [DeltaDataFile(name, name, 1, 1, None, None, {}, {}) for name in ("f.parquet", "g.parquet")]
    unit = DeltaUnit(UnitKey("", None), {}, {}, tuple(files), narrow.schema)

    found = list(rows(narrow.storage, unit, survivors(narrow.storage, unit)))

    assert [batch.schema for batch in found] == [pa.schema([("n", pa.int64()), ("s", INNER)])] * 2
    assert pa.Table.from_batches(found).to_pydict() == {"n": [1, 2], "s": [None, {"x": None, "y": "a"}]}


def test_survivors_believe_the_footer(tmp_path: Path) -> None:
    written = Written(tmp_path, pa.table({"n": range(3)}), field("n", pa.int64()))
    written.rows = None
    assert survivors(written.storage, written.unit) == {"f.parquet": BitMap64(range(3))}
    written.rows = 4
    with pytest.raises(CorruptMetadata, match=r"f\.parquet: expected 4 rows as the log states, found 3"):
        survivors(written.storage, written.unit)


def test_what_is_no_file_of_ours_is_reported(tmp_path: Path) -> None:
    written = Written(
        tmp_path, pa.table({"n": range(100), "t": ["x" * 9] * 100}), field("n", pa.int64()), field("t", pa.string())
    )
    path = tmp_path / "f.parquet"
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptMetadata, match=r"f\.parquet"):
            written.read()
    path.unlink()
    with pytest.raises(MissingFile, match=r"f\.parquet"):
        written.read()
