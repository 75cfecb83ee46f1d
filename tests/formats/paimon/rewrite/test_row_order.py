"""Rows of several columns, compared two at a time: as Paimon orders keys, null first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.formats.paimon.rewrite.row_order import RowOrder

FLOATS = st.none() | st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.0, math.inf, math.nan])
TEXTS = st.none() | st.sampled_from(["", "a", "a\u0000", "aa", "\u00e9", "a long text of more than eight bytes"])


def rank(value: Any) -> Any:
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return (1, value.encode())


@given(st.lists(st.tuples(FLOATS, TEXTS), min_size=1, max_size=6))
def test_rows_compare_column_by_column(rows: list[tuple[Any, Any]]) -> None:
    columns = [
        pa.chunked_array([pa.array([row[n] for row in rows], kind)])
        for n, kind in ((0, pa.float64()), (1, pa.string()))
    ]
    order = RowOrder(columns)
    left, right = (side.ravel() for side in np.meshgrid(np.arange(len(rows)), np.arange(len(rows))))
    ranks = [(rank(a), rank(b)) for a, b in rows]
    # Signs of NaN do not count.
    ranks = [((*a[:3], 0) if len(a) == 4 and a[1] else a, b) for a, b in ranks]
    wanted = [(ranks[a] > ranks[b]) - (ranks[a] < ranks[b]) for a, b in zip(left, right, strict=True)]
    assert order.compare(left, right).tolist() == wanted
    assert order.is_null(np.arange(len(rows))).tolist() == [row == (None, None) for row in rows]
