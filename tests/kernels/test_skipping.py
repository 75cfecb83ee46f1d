"""Skipping against loops over queries and files, against the exact distribution, and against published layouts."""

import datetime as dt
import decimal
import pickle
from bisect import bisect_left, bisect_right
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels.arrow_buffers import is_bytes
from nightkeep.kernels.axis import Numeric
from nightkeep.kernels.skipping import FileBounds, Queries, layout, overlap, queries_of, simulated_layout, skipped_share
from nightkeep.model import Curve

ROWS, FILES = 100_000, 100
KINDS: dict[pa.DataType, st.SearchStrategy] = {
    pa.int64(): st.integers(-50, 50),
    pa.float64(): st.floats(-5, 5, allow_nan=False),
    pa.decimal128(9, 2): st.integers(-99, 99).map(lambda cents: decimal.Decimal(cents) / 100),
    pa.date32(): st.dates(dt.date(2026, 1, 1), dt.date(2026, 2, 1)),
    pa.timestamp("us", "UTC"): st.integers(0, 100),
    pa.time32("ms"): st.integers(0, 100),
    pa.bool_(): st.booleans(),
    pa.string(): st.text("a\0b\u00e9\U0001f600", max_size=12).map(lambda text: "prefix-" * (len(text) % 3) + text),
    pa.binary(): st.binary(max_size=12),
}


@st.composite
def bounds(draw: st.DrawFn, kind: pa.DataType) -> FileBounds:
    pair = st.lists(KINDS[kind], min_size=2, max_size=2).map(sorted)
    files = draw(st.lists(st.tuples(st.integers(0, 3), st.one_of(pair, pair, pair, st.none())), max_size=12))
    lows, highs = ([ends and ends[side] for _, ends in files] for side in (0, 1))
    return FileBounds(pa.array(lows, kind), pa.array(highs, kind), np.array([rows for rows, _ in files], np.int64))


def plain(values: pa.Array) -> list:
    if pa.types.is_string(values.type):
        values = values.cast(pa.binary())
    return values.to_pylist()


class Ranks:
    """Bytes placed at twice their rank among `known`, other bytes between two ranks: the order is exact."""

    def __init__(self, *known: pa.Array) -> None:
        self.known = sorted({value for values in known for value in plain(values) if value is not None})

    def places(self, values: pa.Array) -> np.ndarray:
        ends = [
            (bisect_left(self.known, value), bisect_right(self.known, value)) for value in map(filled, plain(values))
        ]
        return np.array([sum(end) for end in ends], np.float64)


def filled(value: bytes | None) -> bytes:
    return value or b""


def queries_between(lows: pa.Array, highs: pa.Array) -> Queries:
    axis = Ranks(lows, highs) if is_bytes(lows.type) else Numeric()
    return Queries(axis, axis.places(lows), axis.places(highs))


def opens(files: FileBounds, low: object, high: object) -> int:
    count = 0
    for least, most, rows in zip(plain(files.lows), plain(files.highs), files.rows.tolist(), strict=True):
        if rows and (least is None or most is None or (least <= high and most >= low)):
            count += 1
    return count


@settings(max_examples=examples(200))
@given(st.sampled_from(list(KINDS)).flatmap(lambda kind: st.tuples(bounds(kind), bounds(kind))))
def test_a_query_opens_the_files_that_may_have_its_rows(pair: tuple[FileBounds, FileBounds]) -> None:
    files, other = pair
    asked = other.bounded
    lows, highs = other.lows.filter(pa.array(asked)), other.highs.filter(pa.array(asked))
    shares = [
        1 - opens(files, low, high) / len(files.rows)
        for low, high in zip(plain(lows), plain(highs), strict=True)
        if len(files.rows)
    ]
    expected = sum(shares) / len(shares) if shares else 0.0
    assert skipped_share(files, queries_between(lows, highs)) == pytest.approx(expected)


def exact_mass(files: FileBounds, low: float, high: float) -> float:
    """The rows between `low` and `high`, both included, as a share, where a file's lie evenly between its bounds."""
    mass = 0.0
    for least, most, rows in zip(plain(files.lows), plain(files.highs), files.rows.tolist(), strict=True):
        if least is None or not rows:
            continue
        if least == most:
            mass += rows * (low <= least <= high)
        else:
            mass += rows * max(0.0, min(high, most) - max(low, least)) / (most - least)
    return mass / files.rows[files.bounded].sum()


@settings(max_examples=examples(200))
@given(bounds(pa.float64()), st.sampled_from([0.01, 0.1, 0.5]))
def test_queries_cover_their_share_of_the_rows(files: FileBounds, share: float) -> None:
    queries = queries_of(files, share=share, count=20)
    assert len(queries.lows) == (20 if files.bounded.any() else 0)
    assert (np.diff(queries.lows) >= 0).all() and (queries.lows <= queries.highs).all()
    # The places that stand for a file are a part of it apart; a value that is all of a file is in or out.
    parts = 1024 // max(1, files.bounded.sum())
    for low, high in zip(queries.lows, queries.highs, strict=True):
        assert exact_mass(files, low, high) >= share - 2 / parts
    points = [low for low, most in zip(plain(files.lows), plain(files.highs), strict=True) if low == most]
    if not points:
        for low, high in zip(queries.lows, queries.highs, strict=True):
            assert exact_mass(files, low, high) <= share + 2 / parts


@settings(max_examples=examples(200))
@given(st.sampled_from(list(KINDS)).flatmap(bounds))
def test_queries_find_files_and_points_overlap_at_least_one(files: FileBounds) -> None:
    covered = overlap(files)
    if not files.bounded.any():
        assert covered == 0
    else:
        with_rows = np.count_nonzero(files.rows)
        assert 1 <= round(covered, 9) <= with_rows
        assert skipped_share(files, queries_of(files)) <= 1 - 1 / len(files.rows) + 1e-9
    assert (
        skipped_share(files, queries_of(files, share=1.0)) <= skipped_share(files, queries_of(files, share=0.0)) + 1e-9
    )


def test_files_without_bounds_are_opened_and_files_of_nulls_are_not() -> None:
    none = pa.array([None, None], pa.int64())
    files = FileBounds(pa.array([0, None, None, 0]), pa.array([9, None, None, 9]), np.array([5, 5, 0, 5]))
    assert skipped_share(files, queries_of(files)) == 0.25
    assert overlap(files) == 3
    assert skipped_share(FileBounds(none, none, np.array([1, 1])), queries_of(files)) == 0
    assert skipped_share(FileBounds(none, none, np.array([0, 0])), queries_of(files)) == 1


def test_half_a_bound_is_none() -> None:
    files = FileBounds(pa.array([0, None]), pa.array([None, 9]), np.array([5, 5]))
    assert skipped_share(files, queries_between(pa.array([100]), pa.array([200]))) == 0
    assert overlap(files) == 0


def test_bounds_are_of_the_same_files() -> None:
    with pytest.raises(ValueError, match="bounds of 1, 2 and 1 files"):
        FileBounds(pa.array([0]), pa.array([1, 2]), np.array([1]))


def test_infinite_bounds_and_nan_leave_the_rest_its_queries() -> None:
    lows, highs = pa.array([-np.inf, 1.0, 2.0]), pa.array([1.0, 2.0, np.nan])
    files = FileBounds(lows, highs, np.array([1, 100, 1]))
    queries = queries_of(files)
    assert np.isfinite(queries.lows).all() and np.isfinite(queries.highs).all()
    assert skipped_share(files, queries) > 0.6
    assert skipped_share(files, queries_between(pa.array([5.0]), pa.array([6.0]))) == pytest.approx(2 / 3)


def by_row(table: pa.Table, order: np.ndarray, files: int) -> dict[str, list[tuple]]:
    found = {}
    for name in table.column_names:
        values = table.column(name).take(pa.array(order)).to_pylist()
        parts = [values[-(-len(values) * f // files) : -(-len(values) * (f + 1) // files)] for f in range(files)]
        known = [[value for value in part if value is not None] for part in parts]
        found[name] = [(min(part, default=None), max(part, default=None), len(part)) for part in known]
    return found


@given(st.data(), st.integers(1, 5))
def test_a_layout_is_the_bounds_of_equal_parts(data: st.DataObject, files: int) -> None:
    names = [str(kind) for kind in KINDS]
    count = data.draw(st.integers(0, 12))
    table = pa.table(
        {
            name: pa.array(data.draw(st.lists(st.one_of(st.none(), values), min_size=count, max_size=count)), kind)
            for name, (kind, values) in zip(names, KINDS.items(), strict=True)
        }
    )
    order = np.array(data.draw(st.permutations(range(count))), np.int64)
    expected = by_row(table, order, files)
    for name, found in layout(table, order, files=files).items():
        rows = list(zip(found.lows.to_pylist(), found.highs.to_pylist(), found.rows.tolist(), strict=True))
        assert rows == expected.pop(name)
    assert not expected


def test_columns_without_an_order_have_no_bounds() -> None:
    table = pa.table(
        {"a": [1, 2], "b": [[1], [2]], "c": pa.array([1, 2], pa.decimal256(50)), "d": pa.nulls(2), "e": [{"x": 1}] * 2}
    )
    assert set(layout(table, np.array([1, 0]), files=2)) == {"a"}
    with pytest.raises(ValueError, match="type list"):
        simulated_layout(table, ["b"], files=2, curve=Curve.Z)


def test_bounds_and_queries_cross_processes() -> None:
    table = pa.table({"a": [f"common-{i}" for i in range(100)]})
    files = simulated_layout(table, ["a"], files=10, curve=Curve.Z)["a"]
    queries = queries_of(files)
    assert skipped_share(*pickle.loads(pickle.dumps((files, queries)))) == skipped_share(files, queries)


def uniform(columns: int) -> pa.Table:
    pick = np.random.default_rng(0)
    return pa.table({f"c{i}": pick.random(ROWS) for i in range(columns)})


def skipping(table: pa.Table, columns: list[str], curve: Curve) -> list[float]:
    """Of queries for a hundredth of the rows as they came."""
    before, after = (
        layout(table, np.arange(ROWS), files=FILES),
        simulated_layout(table, columns, files=FILES, curve=curve),
    )
    return [skipped_share(after[name], queries_of(before[name])) for name in columns]


@pytest.mark.parametrize(
    "columns, curve, expected",
    [(2, Curve.Z, 0.82), (4, Curve.Z, 0.54), (2, Curve.HILBERT, 0.86), (4, Curve.HILBERT, 0.60)],
)
def test_uniform_columns_skip_what_was_published(columns: int, curve: Curve, expected: float) -> None:
    """Delta's VLDB paper, section 6.2, and the 2018 announcement, for Z."""
    table = uniform(columns)
    files = simulated_layout(table, table.column_names, files=FILES, curve=curve)
    assert np.mean(skipping(table, table.column_names, curve)) == pytest.approx(expected, abs=0.015)
    assert np.mean([skipped_share(one, queries_of(one)) for one in files.values()]) == pytest.approx(
        expected, abs=0.015
    )


def test_a_sort_serves_its_first_column_only() -> None:
    table = uniform(4)
    files = layout(
        table, np.lexsort([table.column(name).to_numpy() for name in reversed(table.column_names)]), files=FILES
    )
    shares = [skipped_share(one, queries_of(one)) for one in files.values()]
    assert np.mean(shares) == pytest.approx(0.25, abs=0.015)
    assert shares[0] == pytest.approx(0.98, abs=0.005) and max(shares[1:]) < 0.01


@pytest.mark.parametrize("curve", Curve)
def test_one_column_is_sorted(curve: Curve) -> None:
    table = uniform(1)
    assert skipping(table, ["c0"], curve)[0] == pytest.approx(0.98, abs=0.005)
    assert overlap(simulated_layout(table, ["c0"], files=FILES, curve=curve)["c0"]) < 1.3


def prefixed(pick: np.random.Generator) -> pa.Array:
    numbers = pa.array(pick.integers(0, 10**9, ROWS)).cast(pa.string())
    return pc.binary_join_element_wise("common-prefix--", pc.utf8_lpad(numbers, 9, "0"), "")


def hosts(pick: np.random.Generator) -> pa.Array:
    host = pa.array(np.where(pick.random(ROWS) < 0.5, "https://one.example/", "https://two.example/"))
    return pc.binary_join_element_wise(host, prefixed(pick), "")


PAIRS: dict[str, Callable[[np.random.Generator], tuple]] = {
    "int32 and wide int64": lambda pick: (
        pick.integers(0, 1000, ROWS).astype(np.int32),
        pick.integers(0, 10**18, ROWS),
    ),
    "wide int64 and int32": lambda pick: (
        pick.integers(0, 10**18, ROWS),
        pick.integers(0, 1000, ROWS).astype(np.int32),
    ),
    "float64 and int64": lambda pick: (pick.normal(size=ROWS), pick.integers(0, 10**9, ROWS)),
    "skewed": lambda pick: (pick.zipf(1.3, ROWS), np.exp(pick.normal(size=ROWS))),
    "common prefix": lambda pick: (prefixed(pick), pick.random(ROWS)),
    "two hosts": lambda pick: (hosts(pick), pick.random(ROWS)),
    "half null": lambda pick: (pa.array(pick.random(ROWS), mask=pick.random(ROWS) < 0.5), pick.random(ROWS)),
    "ten values": lambda pick: (pick.integers(0, 10, ROWS), pick.random(ROWS)),
}


@pytest.mark.parametrize("curve", Curve)
@pytest.mark.parametrize("name", PAIRS)
def test_skipping_is_balanced_whatever_the_types(name: str, curve: Curve) -> None:
    left, right = PAIRS[name](np.random.default_rng(1))
    assert min(skipping(pa.table({"a": left, "b": right}), ["a", "b"], curve)) > 0.78


def test_a_column_of_two_values_keeps_its_skipping() -> None:
    pick = np.random.default_rng(2)
    table = pa.table({"flag": pick.random(ROWS) < 0.5, "a": pick.random(ROWS), "b": pick.random(ROWS)})
    flag, *others = skipping(table, table.column_names, Curve.HILBERT)
    assert flag == pytest.approx(0.5, abs=0.02) and min(others) > 0.75


@pytest.mark.parametrize("values", [lambda pick: pick.random(ROWS), prefixed, hosts])
def test_rows_in_any_order_skip_next_to_nothing(values: Callable[[np.random.Generator], object]) -> None:
    files = layout(pa.table({"a": values(np.random.default_rng(3))}), np.arange(ROWS), files=FILES)["a"]
    assert skipped_share(files, queries_of(files)) < 0.2
    assert overlap(files) > 80
