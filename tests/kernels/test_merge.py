"""keep_latest against a dict of rows."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.paimon_values import KEY_TYPES, order_key
from tests.support.examples import examples

from nightkeep.kernels.merge import Direction, OrderBy, keep_latest


def rank(row: tuple, by: list[tuple[int, Direction]]) -> tuple:
    """One item per order column: null first, then the value; comparing ranks needs no direction."""

    def one(value: object, direction: Direction) -> tuple:
        if value is None:
            return (0,)
        return (1, Descending(order_key(value)) if direction is Direction.DESCENDING else order_key(value))

    return tuple(one(row[column], direction) for column, direction in by)


class Descending:
    def __init__(self, value: object) -> None:
        self.value = value

    def __lt__(self, other: "Descending") -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value


def twin(rows: list[tuple], keys: int, by: list[tuple[int, Direction]]) -> list[int]:
    groups: dict[tuple, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(tuple(map(order_key, row[:keys])), []).append(place)
    winners = []
    for _, places in sorted(groups.items()):
        winner = places[0]
        for place in places[1:]:
            if not rank(rows[place], by) < rank(rows[winner], by):
                winner = place
        winners.append(winner)
    return winners


@st.composite
def merges(draw: st.DrawFn) -> tuple[pa.Table, list[str], list[OrderBy], list[int]]:
    kinds = draw(st.lists(st.sampled_from(list(KEY_TYPES)), min_size=1, max_size=3))
    order_kinds = draw(st.lists(st.sampled_from(list(KEY_TYPES)), max_size=3))
    directions = [draw(st.sampled_from(Direction)) for _ in order_kinds]
    key_pool = draw(st.lists(st.tuples(*(KEY_TYPES[kind] for kind in kinds)), min_size=1, max_size=6))
    order_pools = [draw(st.lists(KEY_TYPES[kind], min_size=1, max_size=3)) for kind in order_kinds]
    row = st.tuples(st.sampled_from(key_pool), *(st.one_of(st.none(), st.sampled_from(pool)) for pool in order_pools))
    rows = [(*key, *values) for key, *values in draw(st.lists(row, max_size=25))]
    names = [f"c{i}" for i in range(len(kinds) + len(order_kinds))]
    columns = {
        name: pa.array([row[i] for row in rows], kind)
        for i, (name, kind) in enumerate(zip(names, kinds + order_kinds, strict=True))
    }
    order = [OrderBy(name, way) for name, way in zip(names[len(kinds) :], directions, strict=True)]
    by = [(len(kinds) + i, way) for i, way in enumerate(directions)]
    return pa.table(columns), names[: len(kinds)], order, twin(rows, len(kinds), by)


def chunked(rows: pa.Table, size: int | None) -> pa.Table:
    if size is None or not rows.num_rows:
        return rows
    return pa.concat_tables([rows.slice(at, size) for at in range(0, rows.num_rows, size)])


@settings(max_examples=examples(500))
@given(merges(), st.sampled_from([None, 1, 4]))
def test_agrees_with_a_dict_of_rows(merge: tuple, size: int | None) -> None:
    rows, keys, order, winners = merge
    kept = keep_latest(chunked(rows, size), keys=keys, order=order)
    assert kept.dtype == np.int64
    assert kept.tolist() == winners


def runs(count: int, seed: int) -> pa.Table:
    """Five runs sorted by (tenant, user), the newest last, as a bucket's files come; null orders included."""
    pick = random.Random(seed)
    rows: list[tuple] = []
    for run in range(5):
        keys = sorted({(pick.randrange(3), f"user-{pick.randrange(count):09}") for _ in range(count)})
        rows += [(*key, pick.choice([None, 1, 2, 3]), run * count + i) for i, key in enumerate(keys)]
    names = ("tenant", "user", "changed", "sequence")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


@pytest.mark.parametrize("keys", [["tenant"], ["user"], ["tenant", "user"], ["user", "tenant"]], ids=str)
@pytest.mark.parametrize("direction", Direction)
def test_sorted_runs(keys: list[str], direction: Direction) -> None:
    table = runs(500, seed=7)
    rows = list(zip(*(table.column(name).to_pylist() for name in [*keys, "changed", "sequence"]), strict=True))
    by = [(len(keys), direction), (len(keys) + 1, Direction.ASCENDING)]
    order = [OrderBy("changed", direction), OrderBy("sequence")]
    assert keep_latest(table, keys=keys, order=order).tolist() == twin(rows, len(keys), by)


def test_the_result_is_a_sorted_run() -> None:
    table = runs(500, seed=8)
    kept = table.take(pa.array(keep_latest(table, keys=["tenant", "user"], order=[OrderBy("sequence")])))
    again = keep_latest(kept, keys=["tenant", "user"], order=[OrderBy("sequence")])
    assert again.tolist() == list(range(kept.num_rows))


def test_null_loses_in_both_directions() -> None:
    table = pa.table({"k": [1, 1], "v": pa.array([5, None], pa.int64())})
    for direction in Direction:
        assert keep_latest(table, keys=["k"], order=[OrderBy("v", direction)]).tolist() == [0]


def test_without_order_the_last_wins() -> None:
    table = pa.table({"k": [1, 2, 3, 2, 3, 3]})
    assert keep_latest(table, keys=["k"], order=[]).tolist() == [0, 3, 5]


def test_runs_that_start_and_end_alike() -> None:
    table = pa.table({"k": ["user-1", "user-9", "aaaa-1", "user-1", "user-9"]})
    assert keep_latest(table, keys=["k"], order=[]).tolist() == [2, 3, 4]


def test_a_null_key_is_refused() -> None:
    with pytest.raises(ValueError, match="key column 'k': 1 nulls, expected none"):
        keep_latest(pa.table({"k": [1, None]}), keys=["k"], order=[])
