"""Rows of several files in one order: the twin picks them one at a time."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import MadeBucket, Row
from tests.support.examples import examples

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.rewrite.gather import WantedRows, gather


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 2), max_size=12), st.sets(st.integers(0, 11)))
def test_rows_come_from_their_sources_in_order(of_row: list[int], cuts: set[int]) -> None:
    made = MadeBucket()
    names = [made.add(0, [Row(at, f"{number}.{at}") for at in range(12)], group_rows=5) for number in range(3)]
    bucket = made.bucket()
    files = {file.name: file for file in bucket.files}
    # Each file is read forward, with rows between those that are wanted.
    at = {number: np.arange(of_row.count(number)) * 12 // max(1, of_row.count(number)) for number in set(of_row)}
    sources = {n: WantedRows(PaimonFileReader(made.storage, bucket, files[names[n]]), at[n]) for n in at}
    starts = sorted({0, *(cut for cut in cuts if cut < len(of_row))}) if of_row else []
    chunks = list(gather(sources, np.array(of_row, np.int32), columns=["v"], starts=starts))
    nexts = {number: iter(positions) for number, positions in at.items()}
    expected = [f"{number}.{next(nexts[number])}" for number in of_row]
    assert [value for chunk in chunks for value in chunk.column("v").to_pylist()] == expected
    assert [chunk.num_rows for chunk in chunks] == [stop - start for start, stop in pairwise([*starts, len(of_row)])]


def test_a_source_hands_out_its_rows_across_the_pieces_it_reads() -> None:
    made = MadeBucket()
    made.add(0, [Row(at) for at in range(9)], group_rows=2)
    bucket = made.bucket()
    source = WantedRows(PaimonFileReader(made.storage, bucket, bucket.files[0]), np.array([0, 1, 3, 4, 8]))
    found = [pa.concat_tables(source.next_rows(count, ["k"])).column("k").to_pylist() for count in (1, 3, 1)]
    assert found == [[0], [1, 3, 4], [8]]
