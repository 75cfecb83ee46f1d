"""BinaryRow: Java's bytes both ways, exact values, Paimon's order, and ValueError for every other byte string."""

import contextlib
import functools
import math
import struct
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.paimon import golden

from nightkeep.formats.paimon.metadata.binary_row import arity, decode_row, encode_row, sort_key
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot, parse_type
from nightkeep.formats.paimon.metadata.values import Value, canonical

GOLDEN_ROWS = golden.read_json("rows.json")


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("<d", left) == struct.pack("<d", right) or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("row", GOLDEN_ROWS, ids=lambda row: f"{row['types'][:3]}{row['values'][:3]}"[:60])
def test_java_rows_both_ways(row: dict[str, Any]) -> None:
    types = [parse_type(text) for text in row["types"]]
    values = [golden.value(kind, text) for kind, text in zip(types, row["values"], strict=True)]
    data = bytes.fromhex(row["hex"])
    decoded = decode_row(data, types)
    assert all(_same(left, right) for left, right in zip(decoded, values, strict=True)), decoded
    assert encode_row(values, types) == data
    assert arity(data) == len(types)


def test_golden_rows_cover_every_primitive_root() -> None:
    covered = {parse_type(text).root for row in GOLDEN_ROWS for text in row["types"]}
    assert covered == set(TypeRoot) - {TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.MULTISET, TypeRoot.ROW, TypeRoot.OTHER}


@given(golden.rows())
def test_values_survive(row: tuple[list[PaimonType], list[Value]]) -> None:
    types, values = row
    decoded = decode_row(encode_row(values, types), types)
    assert all(_same(left, right) for left, right in zip(decoded, values, strict=True))


@given(st.binary(max_size=200), st.lists(st.sampled_from(list(golden.VALUES)), max_size=4))
def test_any_bytes_decode_or_raise_value_error(data: bytes, types: list[PaimonType]) -> None:
    framed = struct.pack(">i", len(types)) + data
    for hostile in (data, framed):
        try:
            decoded = decode_row(hostile, types)
        except ValueError as error:
            assert "found" in str(error) or "decode" in str(error)
        else:
            assert len(decoded) == len(types)


@given(golden.rows(), st.data())
def test_damaged_rows_decode_or_raise_value_error(
    row: tuple[list[PaimonType], list[Value]], data: st.DataObject
) -> None:
    types, values = row
    damaged = bytearray(encode_row(values, types))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    with contextlib.suppress(ValueError):
        decode_row(bytes(damaged), types)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "at least 4 bytes, found 0"),
        ("00000002" + "00" * 24, "expected 1 fields, found 2"),
        ("7fffffff" + "00" * 24, "expected 1 fields, found 2147483647"),
        ("00000001" + "00" * 15, "at least 16 bytes, found 15"),
        ("00000001" + "09" + "00" * 15, "row kind from 0 to 3, found 9"),
        ("00000001" + "00" * 8 + "0800000010000000" + "61" * 7, "8 bytes at 16 inside the row"),
        ("00000001" + "00" * 8 + "ffffffffffffff7f", "inside the row"),
        ("00000001" + "00" * 8 + "61616161616161ff", "at most 7 inline bytes, found 127"),
        ("00000001" + "00" * 8 + "ff00000000000081", "can't decode byte"),
    ],
)
def test_messages_state_expected_and_found(data: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_row(bytes.fromhex(data), [parse_type("STRING")])


@pytest.mark.parametrize(
    ("kind", "slot", "message"),
    [
        ("DECIMAL(38, 0)", "1100000010000000", "1 to 16 bytes of a decimal, found 17"),
        ("DECIMAL(38, 0)", "0000000010000000", "1 to 16 bytes of a decimal, found 0"),
        ("DECIMAL(3, 0)", "e803000000000000", "at most 3 digits, found 1000"),
        ("TIMESTAMP(9)", "40420f0010000000", "nanoseconds of a millisecond, found 1000000"),
        ("TIMESTAMP(9)", "0000000018000000", "8 bytes at 24 inside the row"),
        ("VARIANT", "0000000000000000", "expected a primitive type"),
    ],
)
def test_slots_that_cannot_be(kind: str, slot: str, message: str) -> None:
    data = bytes.fromhex("00000001" + "00" * 8 + slot + "00" * 8)
    with pytest.raises(ValueError, match=message):
        decode_row(data, [parse_type(kind)])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INT", 2**31),
        ("INT", "1"),
        ("INT", 1.5),
        ("INT", True),
        ("BOOLEAN", 1),
        ("TINYINT", 128),
        ("DECIMAL(3, 1)", Decimal("100.0")),
        ("DECIMAL(3, 1)", Decimal("0.05")),
        ("DECIMAL(3, 1)", 1),
        ("DECIMAL(3, 1)", Decimal("NaN")),
        ("DECIMAL(3, 1)", Decimal("Infinity")),
        ("TIMESTAMP(3)", 1),
        ("TIMESTAMP(9)", 2**63 * 10**6),
        ("TIMESTAMP(9)", 1.0),
        ("STRING", b"a"),
        ("BYTES", "a"),
        ("STRING", "\ud800"),
        ("BYTES", 3),
        ("FLOAT", 1e300),
        ("BLOB", b"a"),
        ("VARIANT", None),
        ("TIME(3)", pa.scalar(1, pa.time64("us"))),
    ],
)
def test_values_a_type_cannot_hold(kind: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"BinaryRow field 0: expected a value of .*, found"):
        encode_row([value], [parse_type(kind)])  # type: ignore[list-item]


def test_as_many_values_as_types() -> None:
    with pytest.raises(ValueError, match="expected 1 values, found 2"):
        encode_row([1, 2], [parse_type("INT")])


@pytest.mark.parametrize(
    ("scalar", "kind", "value"),
    [
        (pa.scalar(None, pa.int32()), "INT", None),
        (pa.scalar(7, pa.int8()), "TINYINT", 7),
        (pa.scalar(-1, pa.timestamp("ns")), "TIMESTAMP(9)", -1),
        (pa.scalar(-1, pa.timestamp("us", "UTC")), "TIMESTAMP(6) WITH LOCAL TIME ZONE", -1_000),
        (pa.scalar(5, pa.timestamp("s")), "TIMESTAMP(0)", 5 * 10**9),
        (
            pa.scalar(datetime(9999, 12, 31, tzinfo=UTC), pa.timestamp("ms", "UTC")),
            "TIMESTAMP(3)",
            253_402_214_400 * 10**9,
        ),
        (pa.scalar(19_724, pa.date32()), "DATE", 19_724),
        (pa.scalar(time(0, 0, 1), pa.time32("s")), "TIME(0)", 1_000),
        (pa.scalar(2_000_000, pa.time64("ns")), "TIME(3)", 2),
        (pa.scalar(Decimal("1.50"), pa.decimal128(5, 2)), "DECIMAL(5, 2)", Decimal("1.50")),
        (pa.scalar("a", pa.large_string()), "STRING", "a"),
        (pa.scalar(b"a", pa.binary(1)), "BINARY(1)", b"a"),
        (pa.scalar(1.5, pa.float32()), "FLOAT", 1.5),
        (pa.scalar(True), "BOOLEAN", True),
    ],
)
def test_arrow_scalars_stand_for_their_values(scalar: Any, kind: str, value: Value) -> None:
    types = [parse_type(kind)]
    assert canonical(scalar, types[0]) == value
    assert encode_row([scalar], types) == encode_row([value], types)


# Each list is in Paimon's order, without ties.
ORDERED: dict[str, list[Value]] = {
    "BOOLEAN": [None, False, True],
    "INT": [None, -(2**31), -1, 0, 1],
    "DOUBLE": [None, -math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan],
    "FLOAT": [None, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan],
    "DECIMAL(38, 2)": [None, Decimal("-99.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("99.99")],
    # By bytes: U+FFFF before U+10000, which UTF-16 would put the other way round.
    "STRING": [None, "", "a", "a\0", "aa", "b", "\u00e9", "\uffff", "\U00010000"],
    "BYTES": [None, b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff"],
    "TIMESTAMP(9)": [None, -(10**30), -1, 0, 1, 10**30],
}


@pytest.mark.parametrize("kind", ORDERED)
def test_order_within_a_column(kind: str) -> None:
    types = [parse_type(kind)]
    keys = [sort_key([value], types) for value in ORDERED[kind]]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_every_nan_is_the_same() -> None:
    types = [parse_type("DOUBLE")]
    assert sort_key([math.nan], types) == sort_key([-math.nan], types)
    assert max([1.0, math.nan, math.inf], key=lambda value: sort_key([value], types)) is not math.inf


def _compare_slowly(left: tuple[Value, ...], right: tuple[Value, ...]) -> int:
    """Column by column, as a generated Java comparator does."""
    for a, b in zip(left, right, strict=True):
        if a == b:
            continue
        if a is None or b is None:
            return -1 if a is None else 1
        if isinstance(a, str) and isinstance(b, str):
            a, b = a.encode(), b.encode()
        return -1 if a < b else 1  # type: ignore[operator]
    return 0


KEY = [parse_type("INT"), parse_type("STRING"), parse_type("DECIMAL(18, 4)"), parse_type("BYTES")]


@given(st.lists(st.tuples(*(st.none() | golden.VALUES[kind] if kind in golden.VALUES else st.none() for kind in KEY))))
def test_order_of_rows_against_a_comparator(rows: list[tuple[Value, ...]]) -> None:
    slowly = sorted(rows, key=functools.cmp_to_key(_compare_slowly))
    assert sorted(rows, key=lambda row: sort_key(row, KEY)) == slowly
