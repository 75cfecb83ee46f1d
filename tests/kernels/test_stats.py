"""Statistics against sorted lists, and the promise readers rely on: no value outside the bounds."""

import dataclasses
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.paimon_values import KEY_TYPES, order_key
from tests.support.examples import examples

from nightkeep.kernels.stats import (
    DEFAULT_MODE,
    KEY_MODE,
    ColumnStats,
    Detail,
    StatsMode,
    column_stats,
    contains,
    parse_mode,
)

FULL = StatsMode(Detail.FULL)
LAST = "\U0010ffff"
TEXT = st.text(st.sampled_from(["a", "\u00e9", "\ud7ff", "\uffff", LAST]), max_size=6)
BYTES = st.lists(st.sampled_from([0, 7, 255]), max_size=6).map(bytes)
TYPES = KEY_TYPES | {pa.string(): TEXT, pa.large_string(): TEXT, pa.binary(): BYTES, pa.string_view(): TEXT}


def truncate(length: int) -> StatsMode:
    return StatsMode(Detail.TRUNCATE, length)


@st.composite
def columns(draw: st.DrawFn, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    kind = draw(st.sampled_from(list(TYPES))) if kind is None else kind
    values = draw(st.lists(st.one_of(st.none(), TYPES[kind]), max_size=12))
    cut = draw(st.integers(0, len(values)))
    whole = pa.array(values, kind)
    return pa.chunked_array([whole.slice(0, cut), whole.slice(cut)], kind)


def plain(value: object) -> object:
    """Times as numbers: a bound and a value of one type compare as what they store."""
    return value.value if isinstance(value, pa.TimestampScalar | pa.Time32Scalar) else value.as_py()


@settings(max_examples=examples(500))
@given(columns(), st.sampled_from([FULL, truncate(1), truncate(3), DEFAULT_MODE]))
def test_every_value_lies_within_the_bounds(column: pa.ChunkedArray, mode: StatsMode) -> None:
    stats = column_stats(column, mode)
    values = sorted(order_key(plain(value)) for value in column if value.is_valid)
    assert stats.null_count == len(column) - len(values)
    assert (stats.min is None) == (stats.max is None)
    if stats.min is not None and stats.max is not None:
        assert order_key(plain(stats.min)) <= values[0]
        assert order_key(plain(stats.max)) >= values[-1]
    assert contains(stats, column) is None


@given(columns())
def test_full_bounds_are_the_extremes(column: pa.ChunkedArray) -> None:
    stats = column_stats(column, FULL)
    values = [plain(value) for value in column if value.is_valid]
    if not values or any(isinstance(value, float) and math.isnan(value) for value in values):
        assert stats.min is None and stats.max is None
        return
    assert stats.min is not None and stats.max is not None
    ordered = sorted(values, key=order_key)
    assert plain(stats.min) == ordered[0] and plain(stats.max) == ordered[-1]


PAIRS = st.sampled_from(list(TYPES)).flatmap(lambda kind: st.tuples(columns(kind), columns(kind)))


@settings(max_examples=examples(400))
@given(PAIRS, st.sampled_from([FULL, truncate(2)]))
def test_statistics_of_other_values_are_refused(pair: tuple, mode: StatsMode) -> None:
    column, other = pair
    theirs = column_stats(other, mode)
    values = [order_key(plain(value)) for value in column if value.is_valid]
    narrow = theirs.null_count != column.null_count or (
        theirs.min is not None
        and theirs.max is not None
        and not all(order_key(plain(theirs.min)) <= value <= order_key(plain(theirs.max)) for value in values)
    )
    assert (contains(theirs, column) is not None) == narrow


@pytest.mark.parametrize(
    ("length", "values", "low", "high"),
    [
        (3, ["abc"], "abc", "abc"),
        (3, ["abcd"], "abc", "abd"),
        (2, ["a\u00e9z", "b"], "a\u00e9", "b"),
        (2, [f"a{LAST}z"], f"a{LAST}", "b"),
        (2, ["a\ud7ffz"], "a\ud7ff", "a\ue000"),
        (1, ["\U0001f600\U0001f600"], "\U0001f600", "\U0001f601"),
        (2, [f"{LAST}{LAST}"], LAST * 2, LAST * 2),
        (2, [f"{LAST}{LAST}a"], None, None),
        (2, [b"\x01\xffz", b"\x00zzz"], b"\x00z", b"\x02"),
        (2, [b"\xff\xff"], b"\xff\xff", b"\xff\xff"),
        (2, [b"\xff\xff\x00"], None, None),
    ],
)
def test_truncation_rounds_the_maximum_up(length: int, values: list, low: object, high: object) -> None:
    stats = column_stats(pa.array(values), truncate(length))
    assert (stats.min.as_py() if stats.min else None) == low
    assert (stats.max.as_py() if stats.max else None) == high


def test_a_fixed_size_binary_has_shorter_bounds() -> None:
    stats = column_stats(pa.array([b"abc", b"abd"], pa.binary(3)), truncate(2))
    assert stats == ColumnStats(pa.scalar(b"ab"), pa.scalar(b"ac"), 0)


def test_zero_is_bounded_by_both_zeros() -> None:
    for zero in (0.0, -0.0):
        stats = column_stats(pa.array([zero]))
        assert math.copysign(1, stats.min.as_py()) == -1
        assert math.copysign(1, stats.max.as_py()) == 1
    assert contains(ColumnStats(pa.scalar(0.0), pa.scalar(1.0), 0), pa.array([-0.0])) is not None
    assert contains(ColumnStats(pa.scalar(-1.0), pa.scalar(-0.0), 0), pa.array([0.0])) is not None
    assert contains(ColumnStats(pa.scalar(0.0), pa.scalar(1.0), 0), pa.array([0.0])) is None


def test_nanoseconds_are_exact() -> None:
    stats = column_stats(pa.array([2**62 + 1, 2**62 + 3], pa.timestamp("ns")))
    assert (stats.min.value, stats.max.value) == (2**62 + 1, 2**62 + 3)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, math.nan]),
        pa.array([None, None], pa.string()),
        pa.array([], pa.int64()),
        pa.array([[1], None]),
        pa.array([{"a": 1}]),
    ],
    ids=["nan", "nulls", "empty", "list", "struct"],
)
def test_what_has_no_bounds(column: pa.Array) -> None:
    assert column_stats(column, FULL) == ColumnStats(None, None, column.null_count)


def test_coarser_modes_claim_less() -> None:
    column = pa.array([1, None, 3])
    assert column_stats(column, parse_mode("counts")) == ColumnStats(None, None, 1)
    assert column_stats(column, parse_mode("none")) == ColumnStats(None, None, None)
    assert contains(ColumnStats(None, None, None), column) is None


def test_a_dictionary_column_has_the_bounds_of_its_values() -> None:
    assert column_stats(pa.array(["b", "a", "b"]).dictionary_encode().slice(0, 1)).min.as_py() == "b"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("truncate(16)", DEFAULT_MODE),
        ("TRUNCATE(128)", KEY_MODE),
        ("Full", FULL),
        ("none", StatsMode(Detail.NONE)),
        ("counts", StatsMode(Detail.COUNTS)),
    ],
)
def test_modes_as_written_in_table_options(text: str, mode: StatsMode) -> None:
    assert parse_mode(text) == mode


@pytest.mark.parametrize("text", ["truncate", "truncate()", "truncate(0)", "truncate(-1)", "all", ""])
def test_unknown_modes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="stats mode"):
        parse_mode(text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"null_count": 0}, "null count 0, expected 1"),
        ({"min": pa.scalar("b")}, 'minimum "b", expected at most "a"'),
        ({"max": pa.scalar("b")}, 'maximum "b", expected at least "c"'),
    ],
)
def test_a_narrowed_claim_is_explained(change: dict, reason: str) -> None:
    column = pa.array(["a", None, "c"])
    assert contains(dataclasses.replace(column_stats(column), **change), column) == reason


def test_a_time_that_python_cannot_hold_is_explained() -> None:
    column = pa.array([2**62], pa.timestamp("ms"))
    narrow = ColumnStats(pa.scalar(0, column.type), pa.scalar(1, column.type), 0)
    assert contains(narrow, column) == (
        "maximum 1970-01-01 00:00:00.001, expected at least <value out of range: 4611686018427387904>"
    )


def test_bounds_over_nan_are_refused() -> None:
    reason = contains(ColumnStats(pa.scalar(1.0), pa.scalar(2.0), 0), pa.array([1.0, math.nan]))
    assert reason == "bounds 1 to 2, expected none for double without an order or with NaN"
