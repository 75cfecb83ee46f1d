"""Bounds of parts: of constants, of nulls, and what cannot be."""

import math

import pyarrow as pa
import pytest

from nightkeep.kernels.spans import ColumnSpans, constant_spans, null_spans, spans_of


def test_a_constant_is_its_own_bounds_and_nan_has_none() -> None:
    (one, none, nan) = (constant_spans(value, pa.float64(), 2) for value in (1.5, None, math.nan))
    assert (one.lows.to_pylist(), one.highs.to_pylist(), one.nulls.to_pylist()) == ([1.5, 1.5], [1.5, 1.5], [0, 0])
    assert (none.lows.to_pylist(), none.nulls.to_pylist(), none.rows.to_pylist()) == ([None, None], [1, 1], [1, 1])
    assert (nan.lows.to_pylist(), nan.nulls.to_pylist()) == ([None, None], [0, 0])


def test_a_column_that_files_lack_is_null_in_all_rows() -> None:
    spans = null_spans(pa.int32(), [3, 0])
    assert spans.nulls.to_pylist() == spans.rows.to_pylist() == [3, 0]
    assert spans.lows.to_pylist() == [None, None] and spans.lows.type == pa.int32()


def test_parts_are_as_many_in_every_array() -> None:
    with pytest.raises(ValueError, match="expected one number of parts"):
        ColumnSpans(pa.array([1]), pa.array([1, 2]), pa.array([0]), pa.array([1]))
    with pytest.raises(ValueError, match=r"."):
        spans_of(["a"], [1], [0], [1], pa.int64())
