"""Dictionaries of variants: each row's names, with distinct dictionaries decoded once."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.support.variant_values import Encoder

from nightkeep.kernels.variant_names import variant_names

DICTIONARIES = st.lists(st.lists(st.text(max_size=20), max_size=5), min_size=1, max_size=6)


@given(DICTIONARIES, st.randoms(use_true_random=False))
def test_each_row_has_its_names(rows: list[list[str]], random: Random) -> None:
    names = variant_names(pa.array([Encoder(each, random).metadata for each in rows], pa.binary()))
    held, firsts, counts = names.names.to_pylist(), names.firsts[names.codes], names.counts[names.codes]
    found = [held[start : start + count] for start, count in zip(firsts, counts, strict=True)]
    assert found == [[name.encode() for name in each] for each in rows]
    by_name = dict(zip(held, zip(*(lane.tolist() for lane in names.hashes), strict=True), strict=True))
    assert len(set(by_name.values())) == len(by_name)


def test_rows_with_the_same_bytes_share_a_dictionary() -> None:
    metadata = Encoder(["a", "b"], Random(1)).metadata
    names = variant_names(pa.array([metadata] * 1000))
    assert (len(names.firsts), set(names.codes.tolist())) == (1, {0})
