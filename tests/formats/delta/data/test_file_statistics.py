"""Statistics of new files: delta-spark's own texts, a slow twin, and no bound that a value is outside of."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.data.file_statistics import DeltaFileStats, truncated_maximum
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.leaf_columns import DeltaLeaf, column_names, indexed_leaves, leaves
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit, load
from nightkeep.model import Address
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
CHANGED_SINCE = {"mapping_id", "mapping_name", "type_widening", "variant"}
"""Tables whose first files were written under another schema, or which we do not open."""
TABLES = sorted({path.parent.name for path in GOLDEN.glob("*/table")} - CHANGED_SINCE)


def schema(columns: Mapping[str, pa.DataType], **settings: str) -> DeltaSchema:
    fields = tuple(DeltaField(name, name, None, kind, kind, True) for name, kind in columns.items())
    return DeltaSchema(fields, (), ColumnMapping.NONE, MappingProxyType({f"delta.{k}": v for k, v in settings.items()}))


def text(of: DeltaSchema, *chunks: pa.Table) -> str:
    stats = DeltaFileStats(of)
    for chunk in chunks:
        stats.add(chunk)
    return stats.json()


def flat(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Members by their path; an object without members is one itself."""
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flat(value, (*path, name))
        else:
            yield (*path, name), value


def golden_files(name: str) -> Iterator[tuple[LocalStorage, DeltaUnit, DeltaDataFile]]:
    storage = LocalStorage(str(GOLDEN / name / "table"))
    for unit in load(Address("delta", storage.root, name), storage).units:
        for file in unit.files:
            if file.stats is not None:
                yield storage, unit, file


def left_out(value: Any) -> bool:
    """Bounds that readers may take for different ones: not finite, or years of more or fewer than four digits."""
    return value in ("NaN", "Infinity", "-Infinity") or (isinstance(value, str) and value.startswith(("+1", "-0")))


def as_told(value: Any, kind: pa.DataType | None) -> Any:
    """A number as its column has it: texts of one double differ."""
    if kind is None or not isinstance(value, int | Decimal) or pa.types.is_decimal(kind):
        return value
    return np.float32(value) if kind == pa.float32() else float(value) if kind == pa.float64() else value


@pytest.mark.parametrize("name", TABLES)
def test_values_are_those_of_delta_spark(name: str) -> None:
    for storage, unit, file in golden_files(name):
        ours = text(unit.schema, DeltaFileReader(storage, unit, file).read())
        found = dict(flat(json.loads(ours, parse_float=Decimal)))
        golden = dict(flat(json.loads(file.stats or "", parse_float=Decimal)))
        # Wide after a DELETE; not told by files older than the feature.
        assert found.pop(("tightBounds",), None) in (golden.pop(("tightBounds",), None), True)
        kinds = {leaf.stored: leaf.type for leaf in leaves(unit.schema)}
        for path, value in golden.items():
            expected = None if left_out(value) else as_told(value, kinds.get(path[1:]))
            assert as_told(found.get(path), kinds.get(path[1:])) == expected, path
        assert found.keys() <= golden.keys()


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith("stats_s")] + ["stats_nested", "optimize"])
def test_texts_are_those_of_delta_spark_to_the_byte(name: str) -> None:
    seen = [
        text(unit.schema, DeltaFileReader(storage, unit, file).read()) == file.stats
        for storage, unit, file in golden_files(name)
    ]

    assert seen and all(seen)


COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "byte": (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0])),
    "price": (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3)),
    "day": (pa.date32(), st.dates()),
    "at": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "ntz": (pa.timestamp("us"), st.datetimes()),
    "text": (pa.string(), st.text(st.sampled_from("ab\x7f\x80\u00e9\uffff\U0001f600\U0010ffff"), max_size=80)),
    "flag": (pa.bool_(), st.booleans()),
    "raw": (pa.binary(), st.binary(max_size=3)),
}
SCHEMA = schema({name: kind for name, (kind, _) in COLUMNS.items()})
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}), max_size=6)
ARROW = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


def bound(value: Any) -> Any:
    """What JSON says of one bound, or None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        milliseconds = value.replace(microsecond=value.microsecond // 1000 * 1000)
        return milliseconds.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else float(value) if isinstance(value, Decimal) else value


def twin(name: str, values: list[Any]) -> tuple[Any, Any]:
    """The least and the greatest value, as JSON has them; None for none."""
    real = [value for value in values if value is not None]
    if not real or name in ("flag", "raw"):
        return None, None
    if name == "text":
        ordered = sorted(real, key=lambda value: value.encode())
        return ordered[0][:32], truncated_maximum(ordered[-1], 32)
    numbers = [value for value in real if not (isinstance(value, float) and math.isnan(value))]
    if not numbers:
        return None, None
    return bound(min(numbers)), bound(max(numbers)) if len(numbers) == len(real) else None


@given(ROWS, st.integers(1, 3))
def test_the_slow_twin_states_the_same_however_rows_are_split(rows: list[dict[str, Any]], size: int) -> None:
    whole = pa.Table.from_pylist(rows, schema=ARROW)
    pieces = [whole.slice(at, size) for at in range(0, len(rows), size)]

    found = json.loads(text(SCHEMA, whole))

    assert text(SCHEMA, *pieces) == text(SCHEMA, whole)
    assert found["numRecords"] == len(rows)
    for name in COLUMNS:
        values = [row[name] for row in rows]
        expected = twin(name, values)
        assert (found["minValues"].get(name), found["maxValues"].get(name)) == expected
        assert found["nullCount"][name] == values.count(None)


def test_zeros_have_bounds_on_both_sides() -> None:
    for zero in (0.0, -0.0):
        found = text(schema({"x": pa.float64()}), pa.table({"x": [zero]}))
        assert '"minValues":{"x":-0.0},"maxValues":{"x":0.0}' in found


def test_a_float_keeps_the_digits_of_the_double_it_may_become() -> None:
    found = json.loads(text(schema({"x": pa.float32()}), pa.table({"x": pa.array([0.4], pa.float32())})))

    assert found["maxValues"]["x"] == 0.4000000059604645 and found["minValues"]["x"] == 0.4000000059604645


def test_a_struct_that_is_null_makes_its_leaves_null() -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    values = pa.array([{"a": 1, "b": {"c": "x"}}, {"a": 9, "b": {"c": "zz"}}, {"a": 2, "b": None}, None], kind)
    # The second row's values are still in the children.
    hidden = pa.StructArray.from_arrays(
        [values.field(0), values.field(1)], fields=list(kind), mask=pa.array([False, True, False, True])
    )

    found = json.loads(text(schema({"s": kind}), pa.table({"s": hidden})))

    assert found["minValues"] == {"s": {"a": 1, "b": {"c": "x"}}}
    assert found["maxValues"] == {"s": {"a": 2, "b": {"c": "x"}}}
    assert found["nullCount"] == {"s": {"a": 2, "b": {"c": 3}}}


def test_names_are_the_physical_ones_and_tightness_is_reported() -> None:
    logical, stored = pa.struct([("x", pa.int32())]), pa.struct([("col-2", pa.int32())])
    field = DeltaField("place", "col-1", 1, logical, stored, True)
    table = DeltaSchema((field,), (), ColumnMapping.NAME, MappingProxyType({}), has_vectors=True)

    found = text(table, pa.table({"place": pa.array([{"x": 5}], logical)}))

    leaf = '{"col-1":{"col-2":%d}}'
    minimum, nulls = leaf % 5, leaf % 0
    expected = f'"minValues":{minimum},"maxValues":{minimum},"nullCount":{nulls},"tightBounds":true'
    assert found == f'{{"numRecords":1,{expected}}}'


def test_text_that_is_no_unicode_has_no_bounds() -> None:
    broken = pa.array([b"\xff\xfe"]).view(pa.string())

    found = json.loads(text(schema({"x": pa.string()}), pa.table({"x": broken})))

    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"x": 0})


LEAVES = {
    "a": pa.int32(),
    "S": pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32())), ("z.z", pa.int32())]),
    "b": pa.int8(),
}


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "a S.x S.y S.z.z b"),
        ({"dataSkippingNumIndexedCols": "-1"}, "a S.x S.y S.z.z b"),
        ({"dataSkippingNumIndexedCols": "0"}, ""),
        ({"dataSkippingNumIndexedCols": "3"}, "a S.x S.y"),
        ({"dataSkippingStatsColumns": "B, s.`z.z`", "dataSkippingNumIndexedCols": "1"}, "S.z.z b"),
        ({"dataSkippingStatsColumns": "s"}, "S.x S.y S.z.z"),
    ],
)
def test_which_columns_have_statistics(settings: Mapping[str, str], expected: str) -> None:
    found = [".".join(leaf.path) for leaf in indexed_leaves(schema(LEAVES, **settings))]

    assert found == expected.split()


def test_settings_that_are_no_settings_are_reported() -> None:
    with pytest.raises(CorruptMetadata, match=r"delta.dataSkippingNumIndexedCols: expected a whole number, found many"):
        indexed_leaves(schema(LEAVES, dataSkippingNumIndexedCols="many"))
    for broken in ("", "a,", "a..b", "`a", "a b`"):
        with pytest.raises(CorruptMetadata, match="list of column names"):
            column_names(broken)


def twin_of_truncation(value: str, prefix: int) -> str | None:
    """StatisticsCollection.truncateMaxStringAgg on a list of UTF-16 units."""
    data = value.encode("utf-16-be")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]

    def decoded(length: int) -> str:
        return b"".join(unit.to_bytes(2, "big") for unit in units[:length]).decode("utf-16-be")

    if len(units) <= prefix:
        return value
    if prefix <= 0:
        return None
    split = 0xD800 <= units[prefix - 1] <= 0xDBFF and 0xDC00 <= units[prefix] <= 0xDFFF
    length = prefix + 1 if split else prefix
    while length <= 2 * prefix:
        if length >= len(units):
            return value
        if units[length : length + 2] == [0xDBFF, 0xDFFF]:
            length += 2
        else:
            return decoded(length) + ("\x7f" if units[length] < 0x7F else "\U0010ffff")
    return None


@given(
    st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("a\x7e\x7f\U0010ffff"), max_size=12),
    st.integers(0, 5),
)
def test_a_cut_maximum_is_delta_sparks_and_no_smaller(value: str, prefix: int) -> None:
    found = truncated_maximum(value, prefix)

    assert found == twin_of_truncation(value, prefix)
    assert found is None or found.encode() >= value.encode()


def test_a_minute_before_1970_is_cut_downwards() -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)

    found = json.loads(text(schema({"x": pa.timestamp("us", "UTC")}), pa.table({"x": pa.array([moment])})))

    assert found["minValues"]["x"] == found["maxValues"]["x"] == "1969-12-31T23:59:59.999Z"


def test_only_what_is_ordered_has_bounds() -> None:
    ordered = {pa.int8(), pa.float32(), pa.decimal128(5, 1), pa.date32(), pa.timestamp("us"), pa.string()}
    others = {pa.bool_(), pa.binary(), pa.list_(pa.int8()), pa.map_(pa.string(), pa.int8()), pa.null()}
    assert {kind for kind in ordered | others if DeltaLeaf(("x",), ("x",), kind).ordered} == ordered
