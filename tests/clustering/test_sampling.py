"""Samples of rows: where they are read, that none is hidden, and columns at dotted paths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.support.examples import examples

from nightkeep.clustering.sampling import SAMPLED_FILES, leaf_at, live_sample, spread, top_of


@dataclass(frozen=True, slots=True)
class Sized:
    name: str
    bytes: int
    rows: int | None = None
    deleted_rows: int = 0
    deletes: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file of one table, which counts nothing and hides nothing."""

    table: pa.Table

    @property
    def rows(self) -> int:
        return self.table.num_rows

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        if positions:
            yield self.table.select(list(names or self.table.column_names)).take(list(positions))

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        return self.table.select(list(names or self.table.column_names)).slice(0, rows)


@settings(max_examples=examples(60))
@given(st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=40), max_size=5), st.integers(0, 300))
def test_units_give_rows_by_their_bytes(sizes: list[list[int]], rows: int) -> None:
    units = [[Sized(f"{n}.{at}", size) for at, size in enumerate(unit)] for n, unit in enumerate(sizes)]
    total = sum(map(sum, sizes))
    found = {place: (files, each) for place, files, each in spread(units, rows)}
    assert set(found) == {n for n, unit in enumerate(sizes) if rows * sum(unit) // total}
    for place, (files, each) in found.items():
        wanted = rows * sum(sizes[place]) // total
        assert wanted <= each * len(files) < wanted + len(files)
        assert len(files) <= SAMPLED_FILES and set(files) <= set(units[place])
        assert len(units[place]) > SAMPLED_FILES or list(files) == units[place]


@settings(max_examples=examples(40))
@given(st.integers(0, 30), st.sets(st.integers(0, 29)), st.integers(0, 40))
def test_a_sample_has_live_rows_once(rows: int, hidden: set[int], wanted: int) -> None:
    gone = BitMap64(at for at in hidden if at < rows)
    reader = Opened(pa.table({"id": pa.array(range(rows), pa.int64()), "unread": pa.nulls(rows)}))
    found = live_sample(reader, gone, ["id"], tops=["id", "unread"], rows=wanted)
    ids = found.column("id").to_pylist()
    assert found.column_names == ["id"] and len(ids) == len(set(ids)) == min(wanted, rows - len(gone))
    assert not set(ids) & set(gone)
    assert live_sample(reader, gone, ["id"], tops=["id", "unread"], rows=wanted).equals(found)


def test_a_column_is_the_leaf_at_its_path() -> None:
    deep = pa.array([{"x": {"y": 1}}, None, {"x": None}])
    rows = pa.table({"a": deep, "a.x": pa.array([7, 8, 9])})
    assert leaf_at(rows.select(["a"]), "a.x.y").to_pylist() == [1, None, None]
    assert leaf_at(rows, "a.x").to_pylist() == [7, 8, 9]


def test_a_name_with_dots_is_the_longest_that_fits() -> None:
    assert top_of(["a", "a.b", "a.bc"], "a.b.c") == "a.b"
    assert top_of(["a", "a.b"], "a.bc") == "a"
    with pytest.raises(ValueError):
        top_of(["b"], "a.b")
