"""Values of change files: those that a column's type holds arrive as they are, and no other one arrives."""

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.upsert.batch import ChangeMode
from nightkeep.formats.iceberg.upsert.changes import read_changes
from nightkeep.formats.iceberg.upsert.exact import exactly

NOON, MIDNIGHT = datetime(2020, 1, 1, 12), datetime(2020, 1, 1)
LOCAL, INSTANT, CENTS = pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(9, 2)
BOTH, ONE = pa.struct([("a", pa.int64()), ("b", pa.int64())]), pa.struct([("a", pa.int32())])
TO_FLOATS = pa.map_(pa.string(), pa.float32())


def of_parquet(folder: Path, values: Sequence[Any], kind: pa.DataType, wanted: pa.DataType) -> list[Any]:
    path = folder / "changes.parquet"
    pq.write_table(pa.table({"a": pa.array(values, kind)}), path)
    return read_changes(str(path), pa.schema([("a", wanted)]), ChangeMode.APPEND).rows.column("a").to_pylist()


def of_json(folder: Path, spelled: str, wanted: pa.DataType) -> Any:
    path = folder / "changes.jsonl"
    path.write_text(f'{{"a": null}}\n{{"a": {spelled}}}\n')
    nothing, found = read_changes(str(path), pa.schema([("a", wanted)]), ChangeMode.APPEND).rows.column("a").to_pylist()
    assert nothing is None
    return found


LOST: dict[str, tuple[Any, pa.DataType, pa.DataType, str]] = {
    "a time of day": (NOON, LOCAL, pa.date32(), "'2020-01-01 12:00:00.000000' of timestamp[us], which it cannot hold"),
    "a date": (NOON, LOCAL, pa.time64("us"), "which is of another kind"),
    "a third digit": (0.129, pa.float64(), CENTS, "'0.129' of double, which it cannot hold as it is"),
    "all but infinity": (1e300, pa.float64(), pa.float32(), "'1e+300' of double"),
    "bits of a double": (0.1, pa.float64(), pa.float32(), "'0.1' of double"),
    "a number": (5, pa.int64(), pa.bool_(), "'5' of int64, which is of another kind"),
    "a truth": (True, pa.bool_(), pa.int32(), "'true' of bool, which is of another kind"),
    "an unsaid zone": (NOON, LOCAL, INSTANT, "of timestamp[us], which is of another kind"),
    "a zone": (NOON.replace(tzinfo=UTC), INSTANT, LOCAL, "'2020-01-01 12:00:00.000000Z' of timestamp[us, tz=UTC]"),
    "a day's zone": (date(2020, 1, 1), pa.date32(), INSTANT, "'2020-01-01' of date32[day]"),
    "a count of days": (5, pa.int32(), pa.date32(), "which is of another kind"),
    "the last bit of a long": (2**53 + 1, pa.int64(), pa.float64(), "'9007199254740993' of int64"),
    "a fraction": (1.5, pa.float64(), pa.int64(), "'1.5' of double"),
    "digits of a decimal": (Decimal("12345678901234567890.12"), pa.decimal128(38, 2), pa.float64(), "890.12' of dec"),
    "nanoseconds": (1_000_001, pa.timestamp("ns"), LOCAL, "'1970-01-01 00:00:00.001000001' of timestamp[ns]"),
    "a byte": (b"abcd", pa.binary(), pa.binary(3), "'abcd' of binary"),
    "bytes that are no text": (b"\xff", pa.binary(), pa.string(), r"b'\xff' of binary"),
    "text for bytes": ("ff", pa.string(), pa.binary(), "which is of another kind"),
    "a number for text": (5, pa.int64(), pa.string(), "which is of another kind"),
    "too large a text": ("1e300", pa.string(), pa.float32(), "'1e300' of string"),
    "too large a text for a double": ("1e400", pa.string(), pa.float64(), "'1e400' of string"),
    "a field": ({"a": 1, "b": 2}, BOTH, ONE, "of another kind"),
    "an inner number": ({"a": 1 << 40}, BOTH, ONE, "of another kind"),
    "an element": ([1.5, 0.1], pa.list_(pa.float64()), pa.list_(pa.float32()), "[1.5, 0.1]"),
    "an entry": ([("k", 0.1)], pa.map_(pa.string(), pa.float64()), TO_FLOATS, "[('k', 0.1)]"),
    "a list for a number": ([1], pa.list_(pa.int32()), pa.int32(), "which is of another kind"),
}


@pytest.mark.parametrize("lost", LOST)
def test_what_a_column_cannot_hold_is_refused_by_name_and_value(lost: str, tmp_path: Path) -> None:
    value, kind, wanted, found = LOST[lost]
    with pytest.raises(UsageError) as refused:
        of_parquet(tmp_path, [None, value, None], kind, wanted)
    assert f"changes.parquet: expected column a as {wanted}, found " in str(refused.value)
    assert found in str(refused.value)


HELD: dict[str, tuple[Any, pa.DataType, pa.DataType, Any]] = {
    "a midnight": (MIDNIGHT, LOCAL, pa.date32(), date(2020, 1, 1)),
    "a date": (date(2020, 1, 1), pa.date32(), LOCAL, MIDNIGHT),
    "cents": (0.13, pa.float64(), CENTS, Decimal("0.13")),
    "cents as a float": (0.13, pa.float32(), CENTS, Decimal("0.13")),
    "a decimal as a double": (Decimal("0.13"), CENTS, pa.float64(), 0.13),
    "half as a float": (0.5, pa.float64(), pa.float32(), 0.5),
    "no number": (float("nan"), pa.float64(), pa.float32(), "nan"),
    "an infinite text": ("-Infinity", pa.string(), pa.float32(), -math.inf),
    "a whole double": (5.0, pa.float64(), pa.int64(), 5),
    "an instant elsewhere": (
        NOON.replace(tzinfo=UTC),
        pa.timestamp("ms", "Europe/Berlin"),
        INSTANT,
        NOON.replace(tzinfo=UTC),
    ),
    "a time": (time(1, 2, 3), pa.time32("s"), pa.time64("us"), time(1, 2, 3)),
    "a spelled time": ("01:02:03", pa.string(), pa.time64("us"), time(1, 2, 3)),
    "bytes of text": ("\u00e4".encode(), pa.binary(), pa.string(), "\u00e4"),
    "a shared text": ("x", pa.dictionary(pa.int32(), pa.string()), pa.string(), "x"),
    "a struct of less": ({"a": 1}, ONE, BOTH, {"a": 1, "b": None}),
    "elements": ([1.5, None], pa.list_(pa.float64()), pa.list_(pa.float32()), [1.5, None]),
    "entries": ([("k", 1.5)], pa.map_(pa.string(), pa.float64()), TO_FLOATS, [("k", 1.5)]),
    "nothing of another kind": (None, pa.float64(), pa.date32(), None),
}


@pytest.mark.parametrize("held", HELD)
def test_what_a_column_holds_arrives(held: str, tmp_path: Path) -> None:
    value, kind, wanted, expected = HELD[held]
    found = of_parquet(tmp_path, [None, value], kind, wanted)
    assert found[0] is None and (str(found[1]) if expected == "nan" else found[1]) == expected


def test_a_uuid_arrives_as_its_bytes() -> None:
    held: Any = pa.chunked_array([pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16)))])
    assert exactly(held, pa.binary(16), spelled=False).to_pylist() == [b"a" * 16]


@pytest.mark.parametrize(
    ("spelled", "wanted", "expected"),
    [
        ("0.1", pa.float32(), 0.10000000149011612),
        ("16777216", pa.float32(), 16777216.0),
        ("0.1", pa.float64(), 0.1),
        ("[0.1]", pa.list_(pa.float32()), [0.10000000149011612]),
        ('"1.20"', CENTS, Decimal("1.20")),
    ],
)
def test_numbers_of_json_are_what_they_spell(spelled: str, wanted: pa.DataType, expected: Any, tmp_path: Path) -> None:
    assert of_json(tmp_path, spelled, wanted) == expected


@pytest.mark.parametrize(
    ("spelled", "wanted"),
    [
        ("16777217", pa.float32()),
        ("1e39", pa.float32()),
        ("1e-50", pa.float32()),
        ("[16777217]", pa.list_(pa.float32())),
        ('{"a": 16777217}', pa.struct([("a", pa.float32())])),
        ('{"a": 1, "b": 2}', ONE),
        ('"1.239"', CENTS),
    ],
)
def test_numbers_of_json_that_a_column_cannot_hold(spelled: str, wanted: pa.DataType, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected column a as"):
        of_json(tmp_path, spelled, wanted)


# Twins: one value after another, in Python's own arithmetic


def taken(values: Sequence[Any], kind: pa.DataType, wanted: pa.DataType, *, spelled: bool = False) -> list[Any] | None:
    try:
        return exactly(pa.chunked_array([pa.array(values, kind)]), wanted, spelled=spelled).to_pylist()
    except ValueError as refused:
        assert str(refused)
        return None


def as_cents(value: float) -> Decimal | None:
    spelled = Decimal(repr(value)) if math.isfinite(value) else Decimal("NaN")
    fits = spelled.is_finite() and abs(spelled) < 10**7 and spelled == round(spelled, 2)
    return spelled if fits else None


near_cents = st.floats() | st.integers(-(10**10), 10**10).map(lambda cents: cents / 100)


@given(st.lists(near_cents | st.none()))
def test_doubles_are_decimals_where_each_prints_as_one(values: list[float | None]) -> None:
    expected = [None if value is None else as_cents(value) for value in values]
    lost = any(found is None and value is not None for found, value in zip(expected, values, strict=True))
    assert taken(values, pa.float64(), CENTS) == (None if lost else expected)


@given(st.lists(st.integers(-(10**15), 10**15) | st.integers(-(10**37), 10**37)), st.integers(0, 20))
def test_decimals_are_the_doubles_that_print_as_they_do(numbers: list[int], scale: int) -> None:
    values = [Decimal(f"{number}E-{scale}") for number in numbers]
    kept = all(Decimal(repr(float(value))) == value for value in values)
    found = taken(values, pa.decimal128(38, scale), pa.float64())
    assert found == ([float(value) for value in values] if kept else None)


@given(st.lists(st.floats(width=32) | st.floats() | st.integers(-(2**26), 2**26).map(float)))
def test_doubles_are_floats_where_they_are_the_same_number(values: list[float]) -> None:
    kept = all(value in _as_float(value) or math.isnan(value) for value in values)
    found = taken(values, pa.float64(), pa.float32())
    assert str(found) == str([_as_float(value)[0] for value in values] if kept else None)


def _as_float(value: float) -> tuple[float]:
    (found,) = pa.array([value], pa.float64()).cast(pa.float32(), safe=False).to_pylist()
    return (found,)


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_floats_that_json_prints_come_back(values: list[float]) -> None:
    spelled = [
        json.loads(text) for text in pa.array(values, pa.float32()).cast(pa.string()).to_pylist() if "i" not in text
    ]
    expected = [value for value in values if math.isfinite(value)]
    assert taken(spelled, pa.float64(), pa.float32(), spelled=True) == expected


@given(st.lists(st.datetimes() | st.dates().map(lambda day: datetime(day.year, day.month, day.day))))
def test_moments_are_dates_at_midnight(values: list[datetime]) -> None:
    kept = all(value.time() == time(0) for value in values)
    assert taken(values, LOCAL, pa.date32()) == ([value.date() for value in values] if kept else None)
