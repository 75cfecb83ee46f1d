"""Arrays without nulls at their own level, which hold the other values as they were."""

import pyarrow as pa
import pytest

from nightkeep.encodings.nested_values import without_nulls

ARRAYS = {
    "numbers": pa.array([1, None, 3, 4]),
    "flags": pa.array([True, None, False, True]),
    "texts": pa.array(["a", None, "", "bc"]),
    "fixed": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
    "decimals": pa.array([None, None, 1, 2]).cast(pa.decimal128(21, 2)),
    "lists": pa.array([[1], None, [None, 2], []]),
    "structs": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 3, "b": None}]),
    "maps": pa.array([[("a", 1)], None, [("b", None)], []], pa.map_(pa.string(), pa.int64())),
    "extension": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16, b"c" * 16], pa.binary(16))
    ),
}


@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("kind", ARRAYS)
def test_values_stay_and_nulls_become_any_value(kind: str, start: int) -> None:
    array = ARRAYS[kind].slice(start, 2)
    found = without_nulls(array)
    found.validate(full=True)
    assert (found.type, len(found), found.null_count) == (array.type, len(array), 0)
    held = array.is_valid()
    assert found.filter(held).to_pylist() == array.filter(held).to_pylist()


def test_nulls_alone_become_values() -> None:
    for array in ARRAYS.values():
        assert without_nulls(pa.nulls(3, array.type)).null_count == 0
