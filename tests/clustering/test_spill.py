"""Rows in local files by bucket: the twin is a list for each bucket."""

import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.clustering.spill import by_bucket, spilled

ADDED = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=4)


def table(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


@settings(max_examples=examples(40))
@given(ADDED)
def test_a_bucket_gives_back_its_rows_as_they_came(added: list[list[int]]) -> None:
    twin, first = defaultdict[int, list[int]](list), 0
    with spilled(4) as buckets:
        for places in added:
            buckets.add(table(first, len(places)), np.array(places, np.int64))
            for at, place in enumerate(places):
                twin[place].append(first + at)
            first += len(places)
        buckets.close()
        found = {n: [row["id"] for batch in buckets.batches(n) for row in batch.to_pylist()] for n in range(4)}
        assert found == {n: twin[n] for n in range(4)}
        assert buckets.rows == first
        assert buckets.bytes == [8 * len(twin[n]) for n in range(4)]


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 5), max_size=12))
def test_rows_of_a_bucket_keep_their_order(places: list[int]) -> None:
    found = [(n, part.column("id").to_pylist()) for n, part in by_bucket(table(0, len(places)), np.array(places, int))]
    assert found == [(n, [at for at, place in enumerate(places) if place == n]) for n in sorted(set(places))]


@pytest.mark.parametrize("listed", ["{0},elsewhere", "{0}"])
def test_files_are_on_sparks_disk_and_gone_afterwards(
    listed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", listed.format(tmp_path))
    with pytest.raises(KeyError), spilled(1) as buckets:
        buckets.add(table(0, 2), np.zeros(2, np.int64))
        assert [name.startswith("nightkeep-spill-") for name in os.listdir(tmp_path)] == [True]
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_not_there_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "none"))
    with spilled(1) as buckets:
        buckets.add(table(0, 1), np.zeros(1, np.int64))
    assert os.listdir(tmp_path) == []
