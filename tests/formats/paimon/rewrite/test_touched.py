"""Touched keys come back as they were added, from memory or from disk."""

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.formats.paimon.rewrite.touched import NO_ROW, Touched, TouchedStore


def touched(first: int) -> Touched:
    keys = pa.table({"_KEY_k": pa.array([first, first + 1], pa.int32())})
    return Touched(keys, (), np.array([NO_ROW, 3]), np.array([NO_ROW, first]))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_ranges_come_back_in_order(count: int) -> None:
    with TouchedStore() as store:
        for number in range(count):
            store.add(touched(10 * number))
        found = [(t.keys.to_pylist(), t.file.tolist(), t.position.tolist()) for t in store.ranges()]
    expected = [touched(10 * number) for number in range(count)]
    assert found == [(t.keys.to_pylist(), t.file.tolist(), t.position.tolist()) for t in expected]
