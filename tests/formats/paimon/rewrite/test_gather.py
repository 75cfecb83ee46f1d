"""Rows of several files in one order: the twin picks them one at a time."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import MadeBucket, Row
from tests.support.examples import examples

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.rewrite.candidates import placed
from nightkeep.formats.paimon.rewrite.gather import ForwardFile, ForwardFiles, completed, even_chunks, gather


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 2), max_size=12), st.sets(st.integers(0, 11)), st.sampled_from(["abc", "aab", "aaa"]))
def test_rows_come_from_their_sources_in_order(of_row: list[int], cuts: set[int], slots: str) -> None:
    made = MadeBucket()
    names = [made.add(0, [Row(at, f"{number}.{at}") for at in range(12)], group_rows=5) for number in range(3)]
    bucket = made.bucket()
    files = {file.name: file for file in bucket.files}
    # Each file is read forward, with rows between those that are wanted.
    at = {number: np.arange(of_row.count(number)) * 12 // max(1, of_row.count(number)) for number in set(of_row)}
    sources = [files[name] for name in names]
    opened = ForwardFiles(made.storage, bucket, sources, columns=["v"], slots=slots)
    starts = sorted({0, *(cut for cut in cuts if cut < len(of_row))}) if of_row else []
    pending = {number: iter(positions) for number, positions in at.items()}
    places = np.array([next(pending[number]) for number in of_row], np.int64)
    chunks = list(gather(opened, np.array(of_row, np.int32), places, starts=starts))
    nexts = {number: iter(positions) for number, positions in at.items()}
    expected = [f"{number}.{next(nexts[number])}" for number in of_row]
    assert [value for chunk in chunks for value in chunk.column("v").to_pylist()] == expected
    assert [chunk.num_rows for chunk in chunks] == [stop - start for start, stop in pairwise([*starts, len(of_row)])]


@settings(max_examples=examples(40))
@given(st.sets(st.integers(0, 35)), st.sampled_from([(), ("_KEY_k",), ("_KEY_k", "_VALUE_KIND")]), st.integers(1, 9))
def test_known_columns_come_with_the_rows_and_the_others_from_the_files(
    chosen: set[int], known: tuple[str, ...], step: int
) -> None:
    made = MadeBucket()
    # Keys of the files alternate.
    for number in range(3):
        made.add(0, [Row(3 * at + number, f"{number}.{at}", sequence=at) for at in range(12)], group_rows=5)
    bucket = made.bucket()
    readers = [PaimonFileReader(made.storage, bucket, file) for file in bucket.files]
    columns = ["_KEY_k", "_SEQUENCE_NUMBER", "_VALUE_KIND", "k", "v"]
    whole = [reader.read(columns) for reader in readers]
    rows = pa.concat_tables(
        placed(table.select(columns[:3]), np.arange(12), source=number, level=0) for number, table in enumerate(whole)
    ).combine_chunks()
    order = np.argsort(rows.column("_KEY_k").to_numpy(), kind="stable")[sorted(chosen)]
    files = ForwardFiles(made.storage, bucket, bucket.files, columns=columns, slots="abc", known=known)
    starts = range(0, len(order), step)
    tables = list(completed(files, rows, order, starts=starts))
    twin = pa.concat_tables(whole).to_pylist()
    assert [row for table in tables for row in table.to_pylist()] == [twin[at] for at in order]
    assert [table.num_rows for table in tables] == [min(step, len(order) - start) for start in starts]


def test_a_file_is_read_forward_and_again_where_rows_come_back() -> None:
    made = MadeBucket()
    made.add(0, [Row(at) for at in range(9)], group_rows=4)
    bucket = made.bucket()
    opened = ForwardFile(PaimonFileReader(made.storage, bucket, bucket.files[0]), ["k"])
    for wanted in ([0], [1, 3, 4], [8], [2, 3], [3], [5, 6, 7, 8]):
        pieces = [held.piece.take(held.at).column("k").to_pylist() for held in opened.rows(np.array(wanted))]
        assert [key for piece in pieces for key in piece] == wanted


def test_rows_that_are_not_in_file_order_are_refused() -> None:
    made = MadeBucket()
    made.add(0, [Row(at) for at in range(9)])
    bucket = made.bucket()
    opened = ForwardFiles(made.storage, bucket, bucket.files, columns=["k"], slots="a")
    with pytest.raises(ValueError, match="its keys do not ascend"):
        list(gather(opened, np.zeros(2, np.int32), np.array([4, 3]), starts=[0]))


@given(st.lists(st.integers(0, 5)), st.integers(1, 7))
def test_chunks_are_even_whatever_the_pieces_are(sizes: list[int], rows: int) -> None:
    stops = np.cumsum([0, *sizes])
    pieces = [pa.table({"a": np.arange(start, stop)}) for start, stop in pairwise(stops)]
    chunks = [chunk.column("a").to_pylist() for chunk in even_chunks(pieces, rows)]
    assert chunks == [list(range(start, min(start + rows, stops[-1]))) for start in range(0, stops[-1], rows)]


@given(st.lists(st.sampled_from(["pair", "one"])), st.integers(1, 4), st.integers(1, 5))
def test_a_pair_is_never_parted(what: list[str], rows: int, cut: int) -> None:
    kinds = [kind for each in what for kind in ((1, 2) if each == "pair" else (0,))]
    whole = pa.table({"kind": pa.array(kinds, pa.int8())})
    pieces = [whole.slice(start, cut) for start in range(0, len(kinds), cut)]
    chunks = [chunk.column("kind").to_pylist() for chunk in even_chunks(pieces, rows, pairs=("kind", 1))]
    assert [kind for chunk in chunks for kind in chunk] == kinds
    assert all(chunk[-1] != 1 and len(chunk) <= rows + 1 for chunk in chunks)
    assert chunks == [c.column("kind").to_pylist() for c in even_chunks([whole], rows, pairs=("kind", 1))]
