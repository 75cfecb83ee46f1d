"""Partition directories: the names Java gives them, and ValueError where Java's JVM has a say."""

import itertools
import math
import struct
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.paimon import golden

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.java_text import cast_to_string, to_string
from nightkeep.formats.paimon.metadata.partition_paths import bucket_directory, escape, partition_name, partition_path
from nightkeep.formats.paimon.metadata.types import TypeRoot, parse_type

GOLDEN_PATHS = golden.read_json("paths.json")
DOUBLE, FLOAT = parse_type("DOUBLE"), parse_type("FLOAT")


@pytest.mark.parametrize(
    "item", GOLDEN_PATHS, ids=lambda item: ascii(f"{item['legacy']}{item['types']}{item['values']}")[:70]
)
def test_paths_as_java_makes_them(item: dict[str, Any]) -> None:
    types = [parse_type(text) for text in item["types"]]
    values = [golden.value(kind, text) for kind, text in zip(types, item["values"], strict=True)]
    assert partition_path(item["names"], values, types, legacy=item["legacy"]) == item["path"]


def test_golden_paths_cover_every_root_with_a_name() -> None:
    covered = {(item["legacy"], parse_type(text).root) for item in GOLDEN_PATHS for text in item["types"]}
    nameless = {TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.MULTISET, TypeRoot.ROW, TypeRoot.OTHER}
    binary = {TypeRoot.BINARY, TypeRoot.VARBINARY}
    # SMALLINT is an int like its neighbours.
    assert covered >= {(True, root) for root in set(TypeRoot) - nameless - binary - {TypeRoot.SMALLINT}}
    assert covered >= {(False, root) for root in set(TypeRoot) - nameless - {TypeRoot.TIMESTAMP_LTZ, TypeRoot.SMALLINT}}


@pytest.mark.parametrize(
    ("kind", "value", "legacy"),
    [
        ("BYTES", b"a", True),
        ("BINARY(1)", b"a", True),
        ("BYTES", b"\xff", False),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", 0, False),
        ("VARIANT", "{}", True),
        ("BLOB", b"a", False),
    ],
)
def test_names_that_depend_on_the_writer(kind: str, value: Any, legacy: bool) -> None:
    with pytest.raises(RefusedTable, match=r"column p of .*(expected a type with one text|can't decode byte)"):
        partition_path(["p"], [value], [parse_type(kind)], legacy=legacy)


def test_nulls_need_no_text() -> None:
    types = [parse_type("BYTES")]
    assert partition_path(["p"], [None], types, legacy=True, default_name="none/at all") == "p=none%2Fat all/"


def test_bucket_directories() -> None:
    assert [bucket_directory(bucket) for bucket in (0, 17, -1, -2)] == [
        "bucket-0",
        "bucket-17",
        "bucket--1",
        "bucket-postpone",
    ]


@given(st.text())
def test_escaping_is_reversible_and_leaves_one_component(name: str) -> None:
    escaped = escape(name)
    assert "/" not in escaped and "=" not in escaped
    parts = escaped.split("%")
    assert parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:]) == name


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(number: float) -> None:
    text = to_string(number, DOUBLE)
    assert float(text) == number
    assert "." in text and ("E" in text) == (number != 0 and not 1e-3 <= abs(number) < 1e7)
    assert len(text.partition("E")[0].strip("-0.").replace(".", "")) <= 17


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back_in_their_own_width(number: float) -> None:
    text = to_string(number, FLOAT)
    assert struct.pack("<f", float(text)) == struct.pack("<f", number)
    assert len(text) <= len("-1.06139665E-27")


@given(st.dates())
def test_dates_against_the_standard_library(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert cast_to_string(days, parse_type("DATE")) == day.isoformat()


@given(st.datetimes(), st.integers(0, 999))
def test_timestamps_against_the_standard_library(moment: datetime, nanos: int) -> None:
    micros = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    kind = parse_type("TIMESTAMP(9)")
    value = micros * 1_000 + nanos
    expected = f"{moment:%H:%M:%S}.{moment.microsecond:06d}{nanos:03d}"
    assert cast_to_string(value, kind) == f"{moment.date().isoformat()} {expected}"
    iso = to_string(value, kind)
    assert iso.startswith(f"{moment.date().isoformat()}T{moment:%H:%M}")
    assert f"{moment.date().isoformat()}T{expected}".startswith(iso)


@pytest.mark.parametrize("default", ["__DEFAULT_PARTITION__", "", " ", "%5F", "#"])
@pytest.mark.parametrize("legacy", [True, False])
def test_each_partition_has_its_own_name(default: str, legacy: bool) -> None:
    texts = (
        None,
        "",
        " ",
        "\t",
        "\u2003",
        "__DEFAULT_PARTITION__",
        "%",
        "%5F_DEFAULT_PARTITION__",
        "%5F",
        "#",
        "##",
        "a",
    )
    kinds = [parse_type("STRING"), parse_type("STRING")]
    names = [
        partition_name(["a", "b"], row, kinds, stored=encode_row(row, kinds), legacy=legacy, default_name=default)
        for row in itertools.product(texts, texts)
    ]
    assert len(set(names)) == len(texts) ** 2


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("TIME(0)", [0, 1, 999, 1000]),
        ("TIME(2)", [0, 1, 10]),
        ("DATE", [0, 146_097 * 25, -146_097 * 25]),
        ("TIMESTAMP(3)", [0, 146_097 * 25 * 86_400 * 10**9, 1_000_000]),
        ("DOUBLE", [0.0, -0.0, 1.0]),
        ("BYTES", [b"", b" ", b"a", None]),
    ],
)
def test_values_that_one_text_stands_for_have_their_own_names(kind: str, values: list[Any]) -> None:
    types = [parse_type(kind)]
    rows = [encode_row([value], types) for value in values]
    names = {
        partition_name(["p"], [value], types, stored=row, legacy=False) for value, row in zip(values, rows, strict=True)
    }
    assert len(names) == len(values)


def test_bytes_that_no_writer_of_ours_makes_have_their_own_name() -> None:
    types = [parse_type("DOUBLE")]
    odd = encode_row([math.nan], types)[:-8] + struct.pack("<Q", 0x7FF8_0000_0000_0001)
    usual = partition_name(["p"], [math.nan], types, stored=encode_row([math.nan], types), legacy=True)
    assert usual == "p=NaN"
    assert partition_name(["p"], [math.nan], types, stored=odd, legacy=True).startswith("p=NaN#")


def test_names_are_those_of_folders_wherever_these_differ() -> None:
    kinds = [parse_type("STRING"), parse_type("INT")]
    for row, name in (
        (("2026-11-01", 7), "d=2026-11-01/n=7"),
        ((None, None), "d=__DEFAULT_PARTITION__/n=__DEFAULT_PARTITION__"),
        (("", 7), "d=/n=7"),
        (("__DEFAULT_PARTITION__", 7), "d=%%__DEFAULT_PARTITION__/n=7"),
    ):
        assert partition_name(["d", "n"], row, kinds, stored=encode_row(row, kinds), legacy=True) == name
