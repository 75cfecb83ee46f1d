"""Partition values: texts of the log, typed values, names of units and folders; judged by what delta-spark wrote."""

import json
import pickle
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, named
from tests.formats.delta.hand_log import HandLog, add

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.locations import log_path
from nightkeep.formats.delta.metadata.partition import folder, key_text, stored, typed
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, load
from nightkeep.model import Address
from nightkeep.model.far_time import FarTime
from nightkeep.sql_text.partition_filter import partition_filter
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"


def schema(mapping: ColumnMapping = ColumnMapping.NONE, **types: pa.DataType) -> DeltaSchema:
    prefix = "" if mapping is ColumnMapping.NONE else "col-"
    fields = (DeltaField(name, f"{prefix}{name}", None, kind, kind, True) for name, kind in types.items())
    return DeltaSchema(tuple(fields), tuple(types), mapping, {})


def golden(name: str) -> DeltaSnapshot:
    location = str(GOLDEN / name / "table")
    return load(Address("delta", location, name), LocalStorage(location))


VALUES: list[tuple[pa.DataType, str, object]] = [
    (pa.string(), "null", "null"),
    (pa.string(), "2026", "2026"),
    (pa.int8(), "-128", -128),
    (pa.int64(), "9223372036854775807", 2**63 - 1),
    (pa.int32(), "+7", 7),
    (pa.bool_(), "true", True),
    (pa.bool_(), "FALSE", False),
    (pa.float64(), "1.0E21", 1e21),
    (pa.float64(), "-Infinity", float("-inf")),
    (pa.float32(), "0.1", 0.10000000149011612),
    (pa.decimal128(10, 2), "1.1", Decimal("1.10")),
    (pa.decimal128(10, 2), "-5E-2", Decimal("-0.05")),
    (pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38)),
    (pa.binary(), "\u0001\u00e9", b"\x01\xc3\xa9"),
    (pa.date32(), "0001-01-01", date(1, 1, 1)),
    (pa.date32(), "2026-1-2", date(2026, 1, 2)),
    (pa.timestamp("us", "UTC"), "2026-11-01 06:07:08", datetime(2026, 11, 1, 6, 7, 8)),
    (pa.timestamp("us", "UTC"), "2026-11-01T06:07:08.5Z", datetime(2026, 11, 1, 6, 7, 8, 500_000, tzinfo=UTC)),
    (pa.timestamp("us", "UTC"), "2026-11-01T06:07:08.000001+01:30", datetime(2026, 11, 1, 4, 37, 8, 1, tzinfo=UTC)),
    (pa.timestamp("us", "UTC"), "2026-11-01", datetime(2026, 11, 1)),
    (pa.timestamp("us"), "2026-11-01 06:07:08.123456", datetime(2026, 11, 1, 6, 7, 8, 123_456)),
]


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_a_text_is_a_value_of_its_columns_type(kind: pa.DataType, text: str, value: object) -> None:
    found = typed(schema(c=kind), {"c": text})["c"]
    assert (found, type(found)) == (value, type(value))
    for absent in ({"c": None}, {}):
        assert typed(schema(c=kind), absent) == {"c": None}
    empty = "" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else None
    assert typed(schema(c=kind), {"c": ""}) == {"c": empty}


NULL: list[tuple[pa.DataType, str]] = [
    (pa.int8(), "128"),
    (pa.int64(), "9223372036854775808"),
    (pa.int64(), "1_000"),
    (pa.int64(), "9" * 4000),
    (pa.bool_(), "2"),
    (pa.float64(), "1,5"),
    (pa.float64(), "\u0661"),
    (pa.decimal128(4, 2), "100"),
    (pa.decimal128(4, 2), "NaN"),
    (pa.decimal128(4, 2), "1E999999999"),
    (pa.decimal128(4, 2), "x"),
    (pa.date32(), "2026-13-01"),
    (pa.timestamp("us", "UTC"), "2026-11-01T25:00:00Z"),
    (pa.timestamp("us", "UTC"), "now"),
    (pa.null(), "x"),
]


@pytest.mark.parametrize(("kind", "text"), NULL)
def test_a_text_that_is_no_such_value_is_null(kind: pa.DataType, text: str) -> None:
    assert typed(schema(c=kind), {"c": text}) == {"c": None}


def test_a_text_that_is_no_unicode_is_corrupt() -> None:
    with pytest.raises(CorruptMetadata, match="partition column c"):
        typed(schema(c=pa.binary()), {"c": "\ud800"})


@pytest.mark.parametrize("text", ["-0001-06-07", "0000-02-29", "10000-01-01", "99999-12-31"])
def test_a_far_day_is_a_value_with_its_text(text: str) -> None:
    (far,) = typed(schema(c=pa.date32()), {"c": text}).values()
    assert isinstance(far, FarTime) and str(far) == text and pickle.loads(pickle.dumps(far)).text == text
    assert key_text(schema(c=pa.date32()), {"c": far}) == f"c={text}"
    later = partition_filter("c > DATE'2000-01-01'", ("c",))
    assert later({"c": far}) is (text[0] not in "-0")


def test_values_of_other_columns_are_corrupt_and_missing_ones_null() -> None:
    both = schema(a=pa.string(), b=pa.string())
    assert stored(both, {"b": "x", "a": ""}, subject="x") == {"a": "", "b": "x"}
    assert stored(both, {}, subject="x") == {"a": None, "b": None}
    with pytest.raises(CorruptMetadata, match="file 7: expected values of the partition columns a, b, found c"):
        stored(both, {"c": "x"}, subject="file 7")
    with pytest.raises(CorruptMetadata):
        stored(schema(ColumnMapping.NAME, a=pa.string()), {"a": "x"}, subject="x")


def test_a_units_name_shows_columns_and_values() -> None:
    values = schema(day=pa.date32(), region=pa.string(), at=pa.timestamp("us", "UTC"), raw=pa.binary(), n=pa.int64())
    texts = {"day": "2026-11-01", "region": "eu", "at": "2026-11-01 01:00:00+01:00", "raw": "a", "n": None}
    name = "day=2026-11-01/region=eu/at=2026-11-01 00:00:00Z/raw=61/n=null"
    assert key_text(values, typed(values, texts)) == name
    assert key_text(schema(), {}) == ""


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["null", "a/b=null", "%", "%25"]
)


@given(st.tuples(TEXTS, TEXTS), st.tuples(TEXTS, TEXTS))
def test_units_are_named_alike_only_if_their_values_are(one: tuple[str, str], other: tuple[str, str]) -> None:
    columns = schema(a=pa.string(), b=pa.string())
    values = [typed(columns, dict(zip("ab", texts, strict=True))) for texts in (one, other)]
    names = [key_text(columns, each) for each in values]
    assert (names[0] == names[1]) == (values[0] == values[1])
    assert all(name.isprintable() and name.count("=") == 2 and name.count("/") == 1 for name in names)


def test_two_spellings_of_one_moment_are_one_partition(tmp_path: Path) -> None:
    hand = HandLog(tmp_path, columns={"id": "long", "p": "timestamp"})
    spellings = ("2026-11-01T06:07:08Z", "2026-11-01T06:07:08.000000Z", "2026-11-01 07:07:08+01:00")
    hand.commit(0, *hand.head, *(add(f"x{n}", text) for n, text in enumerate(spellings)))
    (unit,) = hand.load().units
    assert [file.path for file in unit.files] == ["x0", "x1", "x2"]
    assert unit.stored_partition["p"] in spellings


def test_a_text_without_zone_is_another_moment_in_another_session(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    """delta-spark keeps the two apart wherever its session is not in UTC: one file for both would change rows."""
    table = tmp_path / "table"
    noon = Generated(2, ("id", "TIMESTAMP'2026-11-01T12:00:00Z' AS p"))
    in_utc = "spark.databricks.delta.write.utcTimestampPartitionValues"
    for told in ("false", "true"):
        with delta_spark.configured({in_utc: told}):
            delta_spark.write(table, noon, Writing(partition_by=("p",)))
    with delta_spark.configured({"spark.sql.session.timeZone": "America/Los_Angeles"}):
        hours = delta_spark.sql(f"SELECT DISTINCT CAST(p AS LONG) FROM {named(table)}")
    assert len(hours.rows) == 2
    snapshot = load(Address("delta", str(table), "t"), LocalStorage(str(table)))
    assert [(str(unit.key), len(unit.files)) for unit in snapshot.units] == [
        ("p=2026-11-01 12:00:00", 1),
        ("p=2026-11-01 12:00:00Z", 1),
    ]
    selected = partition_filter("p = TIMESTAMP'2026-11-01T12:00:00Z'", ("p",))
    assert [selected(unit.partition) for unit in snapshot.units] == [True, True]


def rows(name: str) -> list[dict[str, Any]]:
    told = json.loads((GOLDEN / name / "rows.json").read_text())
    return [dict(zip(told["columns"], row, strict=True)) for row in told["rows"]]


def shown(values: Mapping[str, object]) -> dict[str, Any]:
    """As the golden rows are written."""
    return {name: _shown(value) for name, value in values.items()}


def _shown(value: object) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds")
    if isinstance(value, date | Decimal):
        return str(value)
    if isinstance(value, float):
        return "NaN" if value != value else "-0.0" if str(value) == "-0.0" else value
    return value


def test_values_are_those_that_the_engine_shows() -> None:
    units = golden("partition_types").units
    expected = [{k: v for k, v in row.items() if k != "id"} for row in rows("partition_types")]
    found = [shown(unit.partition) for unit in units]
    differing = [
        {name: (row[name], each[name]) for name in row if not _alike(row[name], each[name])}
        for row, each in zip(sorted(expected, key=_order), sorted(found, key=_order), strict=True)
    ]
    assert differing == [{}, {}, {}]


def _order(row: Mapping[str, Any]) -> str:
    return str(row["big"])


def _alike(engine: Any, ours: Any) -> bool:
    """Times may be written in other ways, with the same digits."""
    digits = [str(value).replace("T", " ").rstrip("Z0.") for value in (engine, ours)]
    return engine == ours or (isinstance(engine, str) and digits[0] == digits[1])


@pytest.mark.parametrize(
    "name", ["partition_paths", "partition_types", "timestamp_ntz", "optimize", "vectors_of_partitions"]
)
def test_folders_are_named_as_the_engine_names_them(name: str) -> None:
    snapshot = golden(name)
    seen = 0
    for unit in snapshot.units:
        wanted = folder(snapshot.schema, unit.stored_partition)
        for file in unit.files:
            # A moment's folder is named in the session's zone, its value in the log in UTC.
            if "at=" not in wanted:
                assert file.name.rpartition("/")[0] == wanted
                assert file.path.isascii() is False or log_path(file.name) == file.path
                seen += 1
    assert seen or name == "partition_types"


def test_mapped_tables_have_no_folders() -> None:
    assert folder(schema(ColumnMapping.NAME, a=pa.string()), {"col-a": "x"}) == ""
    assert (
        folder(schema(a=pa.string(), b=pa.string()), {"a": "x/y", "b": None}) == "a=x%2Fy/b=__HIVE_DEFAULT_PARTITION__"
    )
