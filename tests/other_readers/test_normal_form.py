"""Arrow of any reader: the same rows have one form, and what would lose a digit has none."""

import math
import re
import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.other_readers.normal_form import NoNormalForm, normal_form

TIME = datetime(2026, 11, 1, 2, 3, 4, 5000)
SAME: dict[str, tuple[Any, Any, list[Any]]] = {
    "views": (pa.string_view(), pa.string(), ["a", "", None]),
    "views of bytes": (pa.binary_view(), pa.binary(), [b"a", b"", None]),
    "large offsets": (pa.large_string(), pa.string(), ["a", None]),
    "dictionaries": (pa.dictionary(pa.int32(), pa.string()), pa.string(), ["a", "b", "a", None]),
    "wider numbers": (pa.int64(), pa.int32(), [1, -2, None]),
    "units of time": (pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Berlin"), [TIME, None]),
    "wider decimals": (pa.decimal128(38, 2), pa.decimal128(9, 2), [Decimal("1.25"), None]),
    "fixed bytes": (pa.binary(3), pa.binary(), [b"abc", None]),
    "lists": (pa.large_list(pa.string_view()), pa.list_(pa.string()), [["a", None], [], None]),
    "lists of one size": (pa.list_(pa.int64(), 2), pa.list_(pa.int32()), [[1, None], [2, 3], None]),
    "maps": (pa.map_(pa.string_view(), pa.int64()), pa.map_(pa.string(), pa.int32()), [[("a", 1)], [], None]),
    "structs": (
        pa.struct([("a", pa.string_view()), ("b", pa.list_(pa.int64()))]),
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]),
        [{"a": "x", "b": [1]}, {"a": None, "b": None}, None],
    ),
}


def batch(kind: Any, values: list[Any], name: str = "c") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], names=[name])


def formed(kind: Any, values: list[Any], wanted: Any) -> pa.RecordBatch:
    return normal_form(batch(kind, values), pa.schema([("c", wanted)]))


@pytest.mark.parametrize("name", SAME)
def test_the_same_rows_have_one_form(name: str) -> None:
    found, wanted, values = SAME[name]
    assert fingerprint(formed(found, values, wanted)) == fingerprint(formed(wanted, values, wanted))


def test_extensions_are_what_they_store() -> None:
    values = [uuid.UUID(int=n).bytes for n in range(3)]
    theirs = pa.RecordBatch.from_arrays(
        [pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))], names=["c"]
    )
    ours = formed(pa.binary(16), values, pa.binary(16))
    assert fingerprint(normal_form(theirs, pa.schema([("c", pa.binary(16))]))) == fingerprint(ours)


def test_columns_are_found_by_name() -> None:
    theirs = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["a"])], names=["n", "text"])
    schema = pa.schema([("text", pa.string()), ("n", pa.int64())])
    assert normal_form(theirs, schema).to_pydict() == {"text": ["a"], "n": [1]}


def test_what_is_not_a_number_is_one_value_and_zeros_are_two() -> None:
    odd = pa.array([0x7FF8000000000001, 0x7FF8000000000000], pa.int64()).view(pa.float64())
    theirs = normal_form(pa.RecordBatch.from_arrays([odd], names=["c"]), pa.schema([("c", pa.float64())]))
    assert fingerprint(theirs) == fingerprint(formed(pa.float64(), [math.nan, math.nan], pa.float64()))
    zeros = [fingerprint(formed(pa.float64(), [zero], pa.float64())) for zero in (0.0, -0.0)]
    assert zeros[0] != zeros[1]


@pytest.mark.parametrize(
    ("found", "values", "wanted", "reason"),
    [
        (pa.timestamp("us"), [TIME], pa.timestamp("ns"), r"column c: expected timestamp\[ns\], found timestamp\[us\]"),
        (pa.timestamp("us"), [TIME], pa.timestamp("us", "UTC"), r"column c: expected timestamp\[us, tz=UTC\]"),
        (pa.int64(), [1 << 40], pa.int32(), "^column c: int64 holds what is no int32$"),
        (pa.decimal128(9, 3), [Decimal("1.255")], pa.decimal128(9, 2), r"holds what is no decimal128\(9, 2\)$"),
        (pa.list_view(pa.int64()), [[1]], pa.list_(pa.int64()), "found list_view<item: int64>"),
        (pa.float32(), [1.5], pa.float64(), "expected double, found float"),
        (pa.string(), ["1"], pa.int64(), "expected int64, found string"),
        (pa.struct([("b", pa.int64())]), [{"b": 1}], pa.struct([("a", pa.int64())]), "expected struct<a: int64>"),
        (pa.list_(pa.string()), [["a"]], pa.list_(pa.int64()), "expected list<item: int64>, found list<item: string>"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(found: Any, values: list[Any], wanted: Any, reason: str) -> None:
    with pytest.raises(NoNormalForm, match=reason):
        formed(found, values, wanted)


def test_other_columns_are_refused_by_name() -> None:
    with pytest.raises(NoNormalForm, match=re.escape("columns: expected c, d, found c")):
        normal_form(batch(pa.int64(), [1]), pa.schema([("c", pa.int64()), ("d", pa.int64())]))
