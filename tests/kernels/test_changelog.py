"""A batch resolved at once against the map from key to position that Iceberg's delta writer keeps."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.kernels.changelog import key_codes, resolve

KEYS = {
    "int64": (pa.int64(), st.integers(-3, 3)),
    "far": (pa.int64(), st.sampled_from([-(2**63), 2**63 - 1, 0, 2**45])),
    "small": (pa.int16(), st.integers(-2, 2)),
    "string": (pa.string(), st.sampled_from(["", "a", "b", "ab"])),
    "binary": (pa.binary(), st.sampled_from([b"", b"\0", b"a"])),
    "decimal": (pa.decimal128(9, 2), st.decimals(-2, 2, places=2)),
    "bool": (pa.bool_(), st.booleans()),
}


def replayed(keys: list[object], writes: list[bool], *, upsert: bool) -> tuple[list[int], list[int], list[int]]:
    """BaseEqualityDeltaWriter, line by line; a key deleted by equality once is not deleted so again."""
    places: dict[object, int] = {}
    written: list[int] = []
    replaced: list[int] = []
    unseen: dict[object, int] = {}
    for row, (key, write) in enumerate(zip(keys, writes, strict=True)):
        if not write or upsert:
            previous = places.pop(key, None)
            if previous is None:
                unseen.setdefault(key, row)
            else:
                replaced.append(previous)
        if write:
            if key in places:
                replaced.append(places[key])
            places[key] = row
            written.append(row)
    return written, sorted(replaced), sorted(unseen.values())


@given(changes=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30), upsert=st.booleans())
def test_a_batch_is_what_the_map_makes_of_it(changes: list[tuple[int, bool]], upsert: bool) -> None:
    keys, writes = [key for key, _ in changes], [write for _, write in changes]
    found = resolve(np.array(keys, np.int64), np.array(writes, np.bool_), upsert=upsert)
    assert (found.written.tolist(), found.replaced.tolist(), found.unseen.tolist()) == replayed(
        list(keys), writes, upsert=upsert
    )


@given(data=st.data())
@pytest.mark.parametrize(
    "names", [("int64",), ("far", "small", "int64"), ("string", "int64"), ("decimal", "binary", "bool")]
)
def test_codes_are_equal_just_where_keys_are(names: tuple[str, ...], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.none() | KEYS[name][1] for name in names)), max_size=20))
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    keys = pa.table({name: pa.array(list(column), KEYS[name][0]) for name, column in zip(names, columns, strict=True)})
    codes = key_codes(keys).tolist()
    assert [[a == b for b in codes] for a in codes] == [[a == b for b in rows] for a in rows]


def test_codes_of_many_wide_columns_stay_apart() -> None:
    """The product of the columns' widths is beyond 64 bits: numbers are made dense on the way."""
    values = pa.array(np.arange(60_000, dtype=np.int64))
    keys = pa.table({f"k{number}": values for number in range(6)})
    assert len(np.unique(key_codes(keys))) == 60_000


@pytest.mark.parametrize("upsert", [False, True])
def test_no_changes_are_no_work(upsert: bool) -> None:
    found = resolve(np.zeros(0, np.int64), np.zeros(0, np.bool_), upsert=upsert)
    assert not len(found.written) and not len(found.replaced) and not len(found.unseen)
