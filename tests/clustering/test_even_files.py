"""Rows in order into files of equal size: a writer whose rows take what the test says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.clustering.even_files import CountingStorage, probed, write_even


@dataclass(frozen=True, slots=True)
class New:
    name: str
    bytes: int
    rows: int


@dataclass(slots=True)
class Sized:
    """A writer whose row `n` takes `row_bytes[n % len(row_bytes)]`."""

    row_bytes: Sequence[int]
    columns: tuple[str, ...] = ("id",)
    files: list[list[int]] = field(default_factory=list)

    def write(self, chunks: Iterable[pa.Table], *, rows_per_file: int) -> Sequence[New]:
        ids = [number for chunk in chunks for number in chunk.column("id").to_pylist()]
        made = [ids[at : at + rows_per_file] for at in range(0, len(ids), rows_per_file)]
        self.files += made
        return [New("new", sum(self.row_bytes[n % len(self.row_bytes)] for n in some), len(some)) for some in made]


def chunks(rows: int, step: int) -> list[pa.Table]:
    return [pa.table({"id": pa.array(range(at, min(rows, at + step)), pa.int64())}) for at in range(0, rows, step)]


@settings(max_examples=examples(60))
@given(
    st.integers(0, 200),
    st.integers(1, 60),
    st.floats(0.1, 100),
    st.integers(1, 500),
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
)
def test_every_row_is_written_once_in_order(
    rows: int, step: int, row_bytes: float, target: int, real: list[int]
) -> None:
    writer = Sized(real)
    files = write_even(writer, chunks(rows, step), rows=rows, row_bytes=row_bytes, target_bytes=target)
    assert [n for some in writer.files for n in some] == list(range(rows))
    assert [file.rows for file in files] == [len(some) for some in writer.files]


def test_files_are_equal_where_rows_take_what_was_expected() -> None:
    writer = Sized([10])
    write_even(writer, chunks(100, 7), rows=100, row_bytes=10, target_bytes=333)
    assert [len(some) for some in writer.files] == [34, 33, 33]


@pytest.mark.parametrize(("expected", "real"), [(1.0, 10), (40.0, 10)])
def test_a_wrong_guess_costs_one_file(expected: float, real: int) -> None:
    """What the first file turns out to take says how many the rest makes."""
    writer = Sized([real])
    files = write_even(writer, chunks(1000, 50), rows=1000, row_bytes=expected, target_bytes=1000)
    assert all(700 <= file.bytes <= 1500 for file in files[1:])
    assert (files[0].bytes > 1000) == (expected < real)


def test_fewer_rows_than_reported_end_it() -> None:
    writer = Sized([10])
    files = write_even(writer, chunks(50, 9), rows=100, row_bytes=10, target_bytes=100)
    assert sum(file.rows for file in files) == 50


def test_a_probe_states_what_a_row_takes_and_loses_none() -> None:
    empty: list[Any] = [pa.table({"id": pa.array([], pa.int64())})]
    row_bytes, again = probed(Sized([3, 5]), iter([*empty, *chunks(10, 4)]))
    assert row_bytes == 4.0
    assert [n for chunk in again for n in chunk.column("id").to_pylist()] == list(range(10))


def test_what_is_forgotten_is_counted() -> None:
    with CountingStorage("anywhere").create("name") as sink:
        sink.write(b"four")
        assert sink.tell() == 4
