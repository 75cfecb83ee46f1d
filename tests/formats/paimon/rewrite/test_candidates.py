"""Which rows of a key compete: of those above level 0 the nearest, and the keys that are on level 0 only."""

from __future__ import annotations

import pyarrow as pa

from nightkeep.formats.paimon.data.columns import SEQUENCE
from nightkeep.formats.paimon.rewrite.candidates import LEVEL, level0_only, lowest_level_only

ROWS = pa.table(
    {
        "_KEY_k": pa.array([1, 1, 1, 2, 2, 3], pa.int32()),
        SEQUENCE: pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        LEVEL: pa.array([5, 3, 0, 0, 0, 4], pa.int32()),
    }
)


def test_of_several_levels_the_lowest_above_0_competes() -> None:
    found = lowest_level_only(ROWS, ["_KEY_k"])
    assert sorted(zip(found["_KEY_k"].to_pylist(), found[LEVEL].to_pylist(), strict=True)) == [
        (1, 0),
        (1, 3),
        (2, 0),
        (2, 0),
        (3, 4),
    ]


def test_a_key_on_level_0_only_is_looked_up_once() -> None:
    found = level0_only(ROWS, ["_KEY_k"])
    assert (found["_KEY_k"].to_pylist(), found[SEQUENCE].to_pylist()) == ([2], [5])
