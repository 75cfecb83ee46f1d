"""Equality of rows, against a plain comparison of Python values."""

import json
import math
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.formats.paimon.rewrite.equal_rows import are_equal

PLACE = pa.struct([("x", pa.int32()), ("name", pa.string()), ("inner", pa.struct([("ratio", pa.float32())]))])
NESTED = (
    pa.list_(pa.int32()),
    pa.list_(pa.float64()),
    pa.map_(pa.string(), pa.decimal128(10, 2)),
    PLACE,
    pa.list_(PLACE),
    pa.map_(pa.int32(), PLACE),
    pa.list_(pa.list_(pa.string())),
    pa.map_(pa.string(), pa.map_(pa.int64(), pa.string())),
)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_rows_are_equal_as_java_has_it(kind: pa.DataType) -> None:
    """Double.compare: NaN equals NaN, 0.0 differs from -0.0; null equals null."""
    left = [1.0, math.nan, 0.0, None, None, 2.0]
    right = [1.0, -math.nan, -0.0, None, 0.0, None]
    rows = pa.table({"x": pa.array([*left, *right], kind), "text": ["a", "", None, "b", "c", "d"] * 2})
    pairs = np.arange(6), np.arange(6, 12)
    assert are_equal(rows, *pairs, columns=["x"]).tolist() == [True, True, False, True, False, False]
    assert are_equal(rows, *pairs, columns=["text"]).all() and are_equal(rows, *pairs, columns=[]).all()
    assert are_equal(rows, np.arange(6), np.roll(np.arange(6), 1), columns=["text"]).tolist() == [False] * 6


@pytest.mark.parametrize("nulls", [0.0, 0.25])
@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_nested_values_are_equal_where_all_within_them_is(kind: pa.DataType, nulls: float) -> None:
    random = Random(str(kind))
    values = [_value(random, kind, nulls) for _ in range(400)]
    column = pa.concat_arrays([pa.array(values[:3], kind), pa.array(values, kind)]).slice(3)
    rows = pa.table({"x": pa.chunked_array([column.slice(0, 150), column.slice(150)])})
    left, right = np.repeat(np.arange(400), 40), np.tile(np.arange(40), 400)
    wanted = [_plain(kind, values[a]) == _plain(kind, values[b]) for a, b in zip(left, right, strict=True)]
    assert are_equal(rows, left, right, columns=["x"]).tolist() == wanted
    assert 50 < sum(wanted) < len(wanted)


def test_a_map_does_not_depend_on_the_order_of_its_entries() -> None:
    kind = pa.map_(pa.float64(), pa.list_(pa.string()))
    rows = pa.table({"m": pa.array([[(0.0, ["a"]), (-0.0, None)], [(-0.0, None), (0.0, ["a"])], [(0.0, None)]], kind)})
    assert are_equal(rows, np.array([0, 0]), np.array([1, 2]), columns=["m"]).tolist() == [True, False]


def _value(random: Random, kind: Any, nulls: float) -> Any:
    if random.random() < nulls:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _value(random, field.type, nulls) for field in kind}
    if pa.types.is_map(kind):
        keys = random.sample([_leaf(kind.key_type, n) for n in range(3)], random.randrange(3))
        return [(key, _value(random, kind.item_type, nulls)) for key in keys]
    if pa.types.is_list(kind):
        return [_value(random, kind.value_type, nulls) for _ in range(random.randrange(3))]
    return _leaf(kind, random.randrange(2))


def _leaf(kind: Any, number: int) -> Any:
    return f"text {number}" if pa.types.is_string(kind) else pa.scalar(number, pa.int8()).cast(kind).as_py()


def _plain(kind: Any, value: Any) -> str:
    """A text that is equal for equal values."""
    if value is None:
        return "null"
    if pa.types.is_struct(kind):
        return json.dumps([_plain(field.type, value[field.name]) for field in kind])
    if pa.types.is_map(kind):
        return json.dumps(sorted([_plain(kind.key_type, key), _plain(kind.item_type, item)] for key, item in value))
    if pa.types.is_list(kind):
        return json.dumps([_plain(kind.value_type, each) for each in value])
    return json.dumps(str(value))
