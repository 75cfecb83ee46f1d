"""Partition values: what filters compare, names of units, what tells partitions apart; Java writes some of them."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import inf, nan
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg.catalog_world import configure, loaded
from tests.formats.iceberg.content_made import metadata_of, schema_of

from nightkeep.errors import CorruptMetadata, UsageError
from nightkeep.formats.iceberg.metadata.partition import far_value, identity, typed, unit_key
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema, parse
from nightkeep.sql_text.partition_filter import partition_filter

ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
VALUES: list[tuple[str, str, object, object, str]] = [
    ("boolean", "identity", True, True, "true"),
    ("int", "identity", -7, -7, "-7"),
    ("long", "identity", 2**63 - 1, 2**63 - 1, "9223372036854775807"),
    ("float", "identity", 0.5, 0.5, "0.5"),
    ("double", "identity", -0.0, -0.0, "-0.0"),
    ("double", "identity", -inf, -inf, "-inf"),
    ("decimal(9, 2)", "identity", Decimal("1.10"), Decimal("1.10"), "1.10"),
    ("date", "identity", -1, date(1969, 12, 31), "1969-12-31"),
    ("time", "identity", 3_600_000_001, time(1, 0, 0, 1), "01:00:00.000001"),
    ("timestamp", "identity", 1, datetime(1970, 1, 1, 0, 0, 0, 1), "1970-01-01T00:00:00.000001"),
    (
        "timestamptz",
        "identity",
        -1_000_000,
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        "1969-12-31T23:59:59+00:00",
    ),
    ("timestamp_ns", "identity", 1, "1970-01-01T00:00:00.000000001", "1970-01-01T00:00:00.000000001"),
    ("timestamptz_ns", "identity", -1, "1969-12-31T23:59:59.999999999", "1969-12-31T23:59:59.999999999"),
    ("string", "identity", "null", "null", "%6Eull"),
    ("string", "identity", "a/b=\u00e9\n%", "a/b=\u00e9\n%", "a%2Fb%3D\u00e9%0A%25"),
    ("uuid", "identity", ID.bytes, str(ID), str(ID)),
    ("binary", "identity", b"\x00\xff", b"\x00\xff", "00ff"),
    ("binary", "identity", b"", b"", ""),
    ("int", "truncate[10]", 20, 20, "20"),
    ("string", "truncate[2]", "ab", "ab", "ab"),
    ("decimal(9, 2)", "truncate[50]", Decimal("1.00"), Decimal("1.00"), "1.00"),
    ("binary", "truncate[2]", b"ab", b"ab", "6162"),
    ("string", "bucket[16]", 3, 3, "3"),
    ("date", "year", -1, "1969", "1969"),
    ("timestamp", "month", -1, "1969-12", "1969-12"),
    ("timestamptz", "month", 682, "2026-11", "2026-11"),
    ("timestamp", "day", 20758, date(2026, 11, 1), "2026-11-01"),
    ("date", "day", -719162, date(1, 1, 1), "0001-01-01"),
    ("timestamp_ns", "hour", -1, "1969-12-31-23", "1969-12-31-23"),
]


def of_one(kind: str, transform: str) -> IcebergSchema:
    return schema_of([("c", kind)], [("c", transform)])


@pytest.mark.parametrize(("kind", "transform", "stored", "value", "text"), VALUES)
def test_a_value_is_of_its_transforms_type(kind: str, transform: str, stored: object, value: object, text: str) -> None:
    schema = of_one(kind, transform)
    found = typed(schema, 0, (stored,))["c"]
    assert (found, type(found)) == (value, type(value))
    assert str(unit_key(schema, 0, (stored,))) == f"c={text}"
    assert typed(schema, 0, (None,)) == {"c": None} and unit_key(schema, 0, (None,)).partition == "c=null"


NONE: list[tuple[str, str, object]] = [
    ("boolean", "identity", 1),
    ("int", "identity", True),
    ("int", "identity", "1"),
    ("double", "identity", 1),
    ("string", "identity", b"a"),
    ("decimal(9, 2)", "identity", 1.5),
    ("time", "identity", -1),
    ("time", "identity", 86_400_000_000),
    ("uuid", "identity", b"short"),
    ("binary", "identity", "a"),
    ("date", "day", "2026-11-01"),
    ("string", "bucket[4]", 1.0),
]


@pytest.mark.parametrize(("kind", "transform", "stored"), NONE)
def test_a_value_of_another_type_is_corrupt(kind: str, transform: str, stored: object) -> None:
    with pytest.raises(CorruptMetadata, match="partition field c: expected a value of type"):
        typed(of_one(kind, transform), 0, (stored,))


@pytest.mark.parametrize(
    ("kind", "transform", "stored"),
    [("date", "identity", 2**31 - 1), ("timestamp", "identity", 2**62), ("timestamp", "day", -800_000)],
)
def test_a_date_that_python_has_not_is_left_out(kind: str, transform: str, stored: int) -> None:
    schema = of_one(kind, transform)
    assert typed(schema, 0, (stored,)) == {"c": None} == typed(schema, 0, (None,))
    assert unit_key(schema, 0, (stored,)) not in (unit_key(schema, 0, (None,)), unit_key(schema, 0, (stored - 1,)))
    refusal = far_value(schema, 0, (stored,))
    assert refusal is not None and "no date of the years 1 to 9999" in refusal.feature
    assert far_value(schema, 0, (0,)) is None is far_value(schema, 0, (None,))


def test_a_partition_has_a_value_for_each_field() -> None:
    for values in ((), (1, 2)):
        with pytest.raises(CorruptMetadata, match="a partition of spec 0: expected 1 values"):
            typed(of_one("int", "identity"), 0, values)


def test_a_unit_is_named_by_its_spec_and_fields() -> None:
    columns = [("day", "date"), ("id", "long"), ("name", "string")]
    schema = schema_of(
        columns, [("day", "identity"), ("id", "bucket[4]")], [("name", "identity")], [("id", "void")], []
    )
    assert unit_key(schema, 0, (20758, 3)).partition == "day=2026-11-01/id=3"
    assert unit_key(schema, 1, ("a",)).partition == "spec-1/name=a"
    assert unit_key(schema, 2, (None,)).partition == "spec-2"
    assert unit_key(schema, 3, ()).partition == "spec-3"
    assert str(unit_key(schema_of(columns), 0, ())) == "table"
    assert typed(schema, 1, ("a",)) == {"day": None, "id": None, "name": "a"}
    assert typed(schema, 3, ()) == {"day": None, "id": None, "name": None}
    assert typed(schema_of(columns, [("id", "void")]), 0, (None,)) == {}


def test_values_of_a_column_that_is_gone_still_distinguish_partitions() -> None:
    metadata = metadata_of([("c", "string")], [("c", "identity")])
    metadata["partition-specs"][0]["fields"][0]["source-id"] = 9
    gone = parse(metadata, table="t")
    names = [unit_key(gone, 0, (value,)).partition for value in ("a", b"a", 7, None)]
    assert names == ["c=a", "c=61", "c=7", "c=null"]


TEXTS = st.text(max_size=5) | st.sampled_from(
    ["null", "a/b=null", "%", "%25", "\u0085", "\u2028", "\u001c4A", "\u1c4a"]
)
SPECS = schema_of(
    [("a", "string"), ("b", "string"), ("c", "double")],
    [("a", "identity"), ("b", "identity")],
    [("a", "identity"), ("b", "identity")],
    [("c", "identity")],
)
PLACES = st.one_of(
    st.tuples(st.sampled_from([0, 1]), st.tuples(TEXTS | st.none(), TEXTS | st.none())),
    st.tuples(st.just(2), st.tuples(st.floats() | st.none())),
)


@given(PLACES, PLACES)
def test_units_are_named_alike_only_if_they_are_one_partition(
    one: tuple[int, tuple[Any, ...]], other: tuple[int, tuple[Any, ...]]
) -> None:
    names = [unit_key(SPECS, *each).partition for each in (one, other)]
    assert (names[0] == names[1]) == (identity(*one) == identity(*other)) == (repr(one) == repr(other))
    assert all(name.isprintable() for name in names)


def test_partitions_are_distinguished_as_java_does() -> None:
    assert identity(0, (nan,)) == identity(0, (float("nan"),)) == identity(0, (-nan,))
    assert identity(0, (0.0,)) != identity(0, (-0.0,))
    assert identity(0, ("x",)) != identity(1, ("x",))


WHERE: list[tuple[str, str, object, str, bool]] = [
    ("date", "day", 20758, "c = '2026-11-01'", True),
    ("date", "day", 20758, "c < DATE '2026-11-01'", False),
    ("timestamp", "month", 682, "c = '2026-11'", True),
    ("timestamp", "month", 682, "c BETWEEN '2026-02' AND '2026-10'", False),
    ("timestamp", "year", 56, "c >= '2026'", True),
    ("timestamp", "hour", 498198, "c LIKE '2026-11-01-%'", True),
    ("string", "bucket[4]", 3, "c IN (1, 3)", True),
    ("uuid", "identity", ID.bytes, f"c = '{ID}'", True),
    ("timestamp_ns", "identity", 1, "c > '1970-01-01T00:00:00.000000000'", True),
    ("timestamptz", "identity", 0, "c = TIMESTAMP '1970-01-01T01:00:00+01:00'", True),
    ("int", "identity", None, "c = 1", False),
]


@pytest.mark.parametrize(("kind", "transform", "stored", "text", "selected"), WHERE)
def test_filters_compare_values(kind: str, transform: str, stored: object, text: str, selected: bool) -> None:
    assert partition_filter(text, ("c",))(typed(of_one(kind, transform), 0, (stored,))) is selected


def test_a_year_is_a_text_and_no_number() -> None:
    with pytest.raises(UsageError, match="a literal that compares with c = '2026'"):
        partition_filter("c = 2026", ("c",))(typed(of_one("date", "year"), 0, (56,)))


def test_values_are_those_that_java_wrote(
    iceberg_java: IcebergJava, iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, iceberg)
    table = iceberg.table()
    moments = [(name, "timestamptz") for name in ("at", "at2", "at3")]
    columns = (("id", "long"), *moments, ("day", "date"), ("name", "string"), ("price", "decimal(9,2)"))
    partition = (
        ("at", "hour"),
        ("at2", "month", "m"),
        ("at3", "year", "y"),
        ("day", "day", "d"),
        ("name", "identity"),
        ("price", "identity"),
        ("id", "bucket[7]"),
    )
    iceberg_java.create(table, columns, Layout(partition=partition))
    at = "2026-11-01T05:06:07.000008Z"
    iceberg_java.append(table, [[1, at, at, at, "1969-12-31", "a/b c%", "1.50"], [2, *[None] * 6]])
    empty, full = sorted(loaded(table).units, key=lambda unit: unit.partition["name"] is not None)
    assert full.partition == {
        "at_hour": "2026-11-01-05",
        "m": "2026-11",
        "y": "2026",
        "d": date(1969, 12, 31),
        "name": "a/b c%",
        "price": Decimal("1.50"),
        "id_bucket": full.partition["id_bucket"],
    }
    assert set(empty.partition.values()) == {None, empty.partition["id_bucket"]}
    assert loaded(table).partition_columns == tuple(full.partition)
    folders = {file.path.partition("/data/")[2].rpartition("/")[0] for file in full.files}
    named = f"{full.key}".replace("%25", "%").replace("%2F", "/")
    bucket = full.partition["id_bucket"]
    assert folders == {
        f"at_hour=2026-11-01-05/m=2026-11/y=2026/d=1969-12-31/name=a%2Fb+c%25/price=1.50/id_bucket={bucket}"
    }
    assert named == f"at_hour=2026-11-01-05/m=2026-11/y=2026/d=1969-12-31/name=a/b c%/price=1.50/id_bucket={bucket}"
