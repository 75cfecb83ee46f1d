"""Bounds of many files: what statistics state, typed, and never more than they say."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.data import bounds as module
from nightkeep.formats.delta.data.bounds import bounds, every_bounds
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.data.file_statistics import DeltaFileStats
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.leaf_columns import leaves
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import load
from nightkeep.model import Address
from nightkeep.model.arrow_types import Array
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
FLOAT_SINCE_WIDENED = {"type_widening"}
"""Where delta-spark's own bounds of a float are not those of the double it is now."""
TABLES = sorted({path.parent.name for path in GOLDEN.glob("*/table")} - FLOAT_SINCE_WIDENED - {"variant"})


def schema(**columns: pa.DataType) -> DeltaSchema:
    fields = tuple(DeltaField(name, name, None, kind, kind, True) for name, kind in columns.items())
    return DeltaSchema(fields, (), ColumnMapping.NONE, MappingProxyType({}))


def file(stats: Mapping[str, Any] | str | None) -> DeltaDataFile:
    text = stats if stats is None or isinstance(stats, str) else json.dumps(stats)
    return DeltaDataFile("part.parquet", "part.parquet", 1, None, None, text, {}, {})


def column(kind: pa.DataType, *pairs: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Lows and highs of files whose statistics have these values."""
    files = [file({"numRecords": 9, "minValues": {"x": low}, "maxValues": {"x": high}}) for low, high in pairs]
    found = bounds(schema(x=kind), files, ("x",))
    assert found.lows.type == found.highs.type == kind
    return found.lows.to_pylist(), found.highs.to_pylist()


def test_values_have_the_columns_type() -> None:
    assert column(pa.int16(), (-5, 7), (None, 2**15 - 1)) == ([-5, None], [7, 2**15 - 1])
    assert column(pa.float32(), (0.1, 2)) == ([pytest.approx(0.1)], [2.0])
    assert column(pa.string(), ("a", "\U0010ffff")) == (["a"], ["\U0010ffff"])
    assert column(pa.date32(), ("1969-12-31", "9999-12-31")) == ([date(1969, 12, 31)], [date(9999, 12, 31)])


def test_decimals_keep_all_their_digits() -> None:
    text = '{"numRecords":1,"minValues":{"x":-9999999999999999999999999999.0123456789},"maxValues":{"x":1}}'
    found = bounds(schema(x=pa.decimal128(38, 10)), [file(text)], ("x",))

    assert found.lows.to_pylist() == [Decimal("-9999999999999999999999999999.0123456789")]
    assert found.highs.to_pylist() == [Decimal(1)]


def test_a_maximum_in_time_may_be_a_millisecond_later() -> None:
    at = "2026-11-01T06:07:08.123"
    low, high = datetime(2026, 11, 1, 6, 7, 8, 123_000), datetime(2026, 11, 1, 6, 7, 8, 124_000)

    assert column(pa.timestamp("us"), (at, at)) == ([low], [high])
    for spelled in (f"{at}Z", "2026-11-01T08:07:08.123+02:00"):
        expected = ([low.replace(tzinfo=UTC)], [high.replace(tzinfo=UTC)])
        assert column(pa.timestamp("us", "UTC"), (spelled, spelled)) == expected
    assert column(pa.timestamp("us"), (f"{at}Z", f"{at}Z")) == ([low], [high])


def test_nan_is_read_as_infinity_and_infinities_as_themselves() -> None:
    infinity = float("inf")

    lows, highs = column(pa.float64(), ("-Infinity", "Infinity"), (1.5, "NaN"), ("NaN", "NaN"))

    assert (lows, highs) == ([-infinity, 1.5, infinity], [infinity, infinity, infinity])


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.float64(), pa.decimal128(5, 2), pa.date32(), pa.timestamp("us", "UTC")]
)
@pytest.mark.parametrize("strange", ["x", {"y": 1}, [1], 2**70, "2026-13-01", "+12345-06-07"])
def test_what_is_no_value_claims_nothing_and_harms_no_other(kind: pa.DataType, strange: Any) -> None:
    good = {"i": 1, "d": 1.5, "t": "2026-11-01T00:00:00Z"}
    fits = good["i"] if pa.types.is_integer(kind) else good["d"] if not pa.types.is_temporal(kind) else good["t"][:10]
    fits = good["t"] if pa.types.is_timestamp(kind) else fits

    lows, highs = column(kind, (fits, fits), (strange, strange))

    assert lows[0] is not None and highs[0] is not None
    assert lows[1] is None or (pa.types.is_floating(kind) and strange == 2**70)


def test_counts_of_wide_bounds_are_known_only_where_they_are_all_or_nothing() -> None:
    def counted(nulls: Any, **more: Any) -> int | None:
        stats = {"numRecords": 10, "nullCount": {"x": nulls}, **more}
        return bounds(schema(x=pa.int32()), [file(stats)], ("x",)).nulls.to_pylist()[0]  # type: ignore[no-any-return]

    assert [counted(nulls) for nulls in (0, 3, 10)] == [0, 3, 10]
    assert [counted(nulls, tightBounds=False) for nulls in (0, 3, 10)] == [0, None, 10]
    assert [counted(nulls) for nulls in (-1, 1.5, True, "2", None, {"y": 1})] == [None] * 6


def test_files_without_statistics_claim_nothing() -> None:
    found = bounds(schema(x=pa.int32()), [file(None), file({}), file({"minValues": 3, "numRecords": None})], ("x",))

    assert [found.lows.to_pylist(), found.highs.to_pylist(), found.nulls.to_pylist(), found.rows.to_pylist()] == [
        [None, None, None]
    ] * 4


def test_no_files_have_no_bounds() -> None:
    found = bounds(schema(x=pa.int32()), [], ("x",))

    assert len(found.lows) == len(found.highs) == len(found.nulls) == len(found.rows) == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"x"', "null"])
def test_statistics_that_are_no_object_may_be_anything(text: str) -> None:
    known = file({"numRecords": 3, "minValues": {"x": 1}, "maxValues": {"x": 2}, "nullCount": {"x": 0}})
    found = every_bounds(schema(x=pa.int32()), [file(text), known])[("x",)]
    assert (found.lows.to_pylist(), found.highs.to_pylist()) == ([None, 1], [None, 2])
    assert (found.nulls.to_pylist(), found.rows.to_pylist()) == ([None, 0], [None, 3])


def test_a_column_that_is_not_there_is_reported() -> None:
    with pytest.raises(CorruptMetadata, match=r"a leaf column named y\.z, found columns x"):
        bounds(schema(x=pa.int32()), [], ("y", "z"))


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)) | st.none(), max_size=20), st.integers(1, 7))
def test_files_keep_their_order_however_many_are_parsed_at_once(files: list[Any], size: int) -> None:
    parsed = [
        file(None if one is None else {"numRecords": one[1], "minValues": {"x": one[0]}, "nullCount": {"x": one[1]}})
        for one in files
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FILES_AT_ONCE", size)
        found = bounds(schema(x=pa.int64()), parsed, ("x",))

    assert found.lows.to_pylist() == [one and one[0] for one in files]
    assert found.rows.to_pylist() == found.nulls.to_pylist() == [one and one[1] for one in files]


def outside(values: Array, low: Any, high: Any) -> int:
    beyond = 0
    for limit, compare in ((low, pc.less), (high, pc.greater)):
        if limit.is_valid:
            beyond += pc.sum(compare(values, limit)).as_py() or 0
    return beyond


@pytest.mark.parametrize("name", TABLES)
def test_no_value_of_delta_sparks_files_is_outside_of_its_bounds(name: str) -> None:
    storage = LocalStorage(str(GOLDEN / name / "table"))
    snapshot = load(Address("delta", storage.root, name), storage)
    for unit in snapshot.units:
        found = every_bounds(snapshot.schema, unit.files)
        for place, one in enumerate(unit.files):
            rows = DeltaFileReader(storage, unit, one).read()
            for leaf in (leaf for leaf in leaves(snapshot.schema) if leaf.ordered and len(leaf.path) == 1):
                values = rows.column(leaf.path[0]).combine_chunks()
                if pa.types.is_floating(values.type):
                    values = pc.if_else(pc.is_nan(values), pa.scalar(float("inf"), values.type), values)
                limits = found[leaf.path]
                assert outside(values, limits.lows[place], limits.highs[place]) == 0, leaf


def test_our_own_statistics_read_back_as_bounds_of_nested_columns() -> None:
    inner = pa.struct([("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.int8()))])
    moment = datetime(2026, 11, 1, 1, 2, 3, 456_789, UTC)
    table = schema(s=inner)
    stats = DeltaFileStats(table)
    stats.add(pa.table({"s": pa.array([{"at": moment, "tags": [1]}, None], inner)}))

    found = every_bounds(table, [file(stats.json())])

    at = found[("s", "at")]
    assert at.lows.to_pylist() == [moment.replace(microsecond=456_000)]
    assert at.highs.to_pylist() == [moment.replace(microsecond=457_000)]
    assert at.nulls.to_pylist() == found[("s", "tags")].nulls.to_pylist() == [1]
    assert found[("s", "tags")].lows.to_pylist() == [None]
