"""Rows of open files that no delete hides: the twin filters a list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.support.examples import examples

from nightkeep.clustering import live_rows
from nightkeep.clustering.live_rows import LiveRows


@dataclass(frozen=True, slots=True)
class Sized:
    name: str = "file"
    bytes: int = 1
    rows: int | None = None
    deleted_rows: int = 0
    deletes: int = 0


@dataclass
class Opened:
    """An open file with ids from `first`."""

    first: int
    rows: int
    asked: list[tuple[int, int]] = field(default_factory=list)

    @property
    def table(self) -> pa.Table:
        return pa.table({"id": pa.array(range(self.first, self.first + self.rows), pa.int64())})

    def batches(self, names: Sequence[str] | None, *, batch_rows: int) -> Iterator[pa.Table]:
        for at in range(0, self.rows, batch_rows):
            yield self.table.slice(at, batch_rows)

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        yield self.table.take(list(positions))

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        self.asked.append((rows, seed))
        return self.table.slice(0, rows)


def rows_of(files: Sequence[Opened], hidden: BitMap64 | None = None) -> LiveRows[Sized]:
    """Of files that are named by their index."""
    return LiveRows(lambda file: files[int(file.name)], lambda _: lambda _: hidden)


@settings(max_examples=examples(60))
@given(st.integers(0, 30), st.sets(st.integers(0, 29)), st.integers(1, 8))
def test_rows_come_in_order_without_hidden_ones(rows: int, hidden: set[int], step: int) -> None:
    gone = BitMap64(at for at in hidden if at < rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_rows, "batch_rows", lambda size, count: step)
        batches = list(rows_of([Opened(100, rows)], gone).batches([Sized("0")], ["id"]))
    assert [n for batch in batches for n in batch.column("id").to_pylist()] == [
        100 + at for at in range(rows) if at not in gone
    ]


def test_a_file_without_deletes_is_handed_on() -> None:
    (batch,) = rows_of([Opened(0, 5)]).batches([Sized("0")], ["id"])
    assert batch.num_rows == 5


def test_files_without_rows_are_not_opened() -> None:
    gone, files = Sized("1", rows=3, deleted_rows=3, deletes=1), [Opened(0, 5)]
    rows = rows_of(files)
    assert [batch.num_rows for batch in rows.batches([gone, Sized("0"), gone], ["id"])] == [5]
    assert rows.count([gone, Sized("0"), Sized("0", rows=4, deleted_rows=1)]) == 8
    assert rows.sampled([gone, Sized("0")], ["id"], 0.5).num_rows == 3 and files[0].asked == [(3, 0)]


def test_each_file_gives_its_share_and_at_least_one_row() -> None:
    files = [Opened(0, 10), Opened(10, 1), Opened(20, 30)]
    found = rows_of(files).sampled([Sized(str(number)) for number in range(3)], ["id"], 0.2)
    assert found.column("id").to_pylist() == [0, 1, 2, 10, *range(20, 27)]
    assert [file.asked for file in files] == [[(3, 0)], [(1, 1)], [(7, 2)]]
