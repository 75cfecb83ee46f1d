"""Hashes of variants: equal for equal values, in any encoding and any shredding, and different for others."""

from __future__ import annotations

import contextlib
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.variant_values import Value, column, decoded, exact, part_type, shredded_column, shreddings, values

from nightkeep.kernels import variant_blocks
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.kernels.variant_hash import variant_words
from nightkeep.kernels.variant_nodes import MAX_DEPTH
from nightkeep.model.variant_type import VARIANT, shredded_type

ROWS = st.lists(st.none() | values(), min_size=1, max_size=6)


def hashes(array: pa.StructArray) -> list[tuple[int, int]]:
    first, second = variant_words(array)
    return list(zip(first.tolist(), second.tolist(), strict=True))


def is_right(held: list[Value | None], found: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    """Of two encodings of the same values: equal hashes for equal values alone."""
    there = [at for at, value in enumerate(held) if value is not None]
    assert [found[at] for at in there] == [other[at] for at in there]
    assert len({held[at] for at in there}) == len({found[at] for at in there})


@settings(max_examples=examples(100))
@given(ROWS, st.randoms(use_true_random=False), st.booleans(), st.sampled_from([1, 64, 1 << 20]))
def test_equal_values_have_equal_hashes_in_any_encoding(
    held: list[Value | None], random: Random, alike: bool, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variant_blocks, "BLOCK_BYTES", block)
        is_right(held, hashes(column(held, random, alike=alike)), hashes(column(held, random)))


@settings(max_examples=examples(100))
@given(ROWS, st.randoms(use_true_random=False), st.data())
def test_a_shredded_variant_has_the_hash_of_its_value(
    held: list[Value | None], random: Random, data: st.DataObject
) -> None:
    typed = data.draw(shreddings(next((value for value in held if value), ("null",))))
    array = shredded_column([*held, *held], typed, random)
    is_right(held, hashes(array.slice(len(held))), hashes(column(held, random)))
    table = pa.table({"v": array})
    assert fingerprint(table) == fingerprint(pa.table({"v": column([*held, *held], random)}))


@settings(max_examples=examples(100))
@given(values(), st.randoms(use_true_random=False), st.data())
def test_damaged_bytes_are_an_error_or_a_value(value: Value, random: Random, data: st.DataObject) -> None:
    """Whatever the twin decodes has its hash; and no damage is another error than ValueError."""
    row = column([value], random)[0].as_py()
    for name in ("metadata", "value"):
        held = bytearray(row[name])
        for _ in range(data.draw(st.integers(0, 2))):
            held[data.draw(st.integers(0, len(held) - 1))] = data.draw(st.integers(0, 255))
        row[name] = bytes(held[: data.draw(st.integers(0, len(held)))] if data.draw(st.booleans()) else held)
    found = None
    with contextlib.suppress(ValueError):
        (found,) = hashes(pa.array([row], VARIANT))
    if found is not None:
        with contextlib.suppress(UnicodeDecodeError):
            assert (found,) == tuple(hashes(column([decoded(row["metadata"], row["value"])], random)))


def nested_arrays(depth: int) -> bytes:
    value = b"\x00"
    for _ in range(depth):
        value = b"\x1f" + (1).to_bytes(4, "little") + bytes(4) + len(value).to_bytes(4, "little") + value
    return value


NO_NAMES = b"\x01\x00\x00"
ONE_NAME = b"\x01\x01\x00\x01a"


@pytest.mark.parametrize(
    ("metadata", "value", "found"),
    [
        (b"", b"\x00", "empty variant metadata"),
        (b"\x02\x00\x00", b"\x00", "metadata of version 2"),
        (b"\x01", b"\x00", "metadata of 1 bytes, cut off"),
        (b"\xc1\xff\xff\xff\xff", b"\x00", "4294967295 names in 5 bytes"),
        (b"\x01\x01\x00\x05a", b"\x00", "name 0 of a dictionary from byte 0 to 5"),
        (b"\x01\x01\x01\x00a", b"\x00", "name 0 of a dictionary from byte 1 to 0"),
        (NO_NAMES, b"", "of 0 bytes"),
        (NO_NAMES, bytes([21 << 2]), "primitive type 21, which is unknown"),
        (NO_NAMES, bytes([6 << 2, 1]), "primitive type 6 with 1 bytes"),
        (NO_NAMES, bytes([8 << 2, 39, 0, 0, 0, 0]), "decimal of scale 39"),
        (NO_NAMES, bytes([16 << 2]) + b"\xff\xff\xff\xffab", "text of 4294967295 bytes, of which 2"),
        (NO_NAMES, b"\x13\xff\xff\xff", "object or array of 4 bytes"),
        (NO_NAMES, b"\x13\xff\xff\xff\xff\x00", "4294967295 values in 5 bytes"),
        (NO_NAMES, b"\x03\x01\x00\x09\x00", "object or array of 13 bytes in 5"),
        (NO_NAMES, b"\x03\x01\x01\x01\x00", "without bytes"),
        (NO_NAMES, b"\x02\x01\x00\x00\x01\x00", "name 0 in a dictionary of 0"),
        (ONE_NAME, b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", "two fields of one name"),
        (NO_NAMES, nested_arrays(MAX_DEPTH), f"more than {MAX_DEPTH} levels"),
    ],
)
def test_an_error_states_what_was_found(metadata: bytes, value: bytes, found: str) -> None:
    row = {"metadata": metadata, "value": value}
    with pytest.raises(ValueError, match=found):
        hashes(pa.array([{"metadata": NO_NAMES, "value": b"\x00"}, row], VARIANT))


def test_a_variant_without_a_part_is_refused() -> None:
    """As a file without the column has it; where the whole variant is null there is none."""
    for missing, found in (("metadata", "without metadata"), ("value", "without a value")):
        parts = [pa.array([b"\x01\x00\x00", b"\x00"][at : at + 1] * 2) for at in range(2)]
        parts[VARIANT.get_field_index(missing)] = pa.array([None, None], pa.binary())
        whole = pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=pa.array([True, True]))
        assert len(hashes(whole)) == 2
        with pytest.raises(ValueError, match=found):
            hashes(pa.StructArray.from_arrays(parts, fields=list(VARIANT)))


def test_the_deepest_variant_has_a_hash() -> None:
    row = {"metadata": NO_NAMES, "value": nested_arrays(MAX_DEPTH - 1)}
    assert len(hashes(pa.array([row], VARIANT))) == 1


def test_values_that_share_bytes_are_refused_before_they_are_many() -> None:
    """Each level is an array with the next one twice: 2 ** 40 values in 220 bytes."""
    value = b"\x00"
    for _ in range(40):
        size = len(value)
        head = b"\x03\x02" if size < 256 else b"\x07\x02"
        value = head + b"".join(each.to_bytes(1 + (size > 255), "little") for each in (0, 0, size)) + value
    with pytest.raises(ValueError, match=r"bytes with \d+ values"):
        hashes(pa.array([{"metadata": NO_NAMES, "value": value}], VARIANT))


LONG_PART = part_type(pa.int64())
OF_A = shredded_type(pa.binary(), pa.struct([("a", LONG_PART)]))
OF_LIST = shredded_type(pa.binary(), pa.list_(LONG_PART))
FIVE = b"\x0c\x05"


@pytest.mark.parametrize(
    ("kind", "value", "typed", "found"),
    [
        (shredded_type(pa.binary(), pa.int64()), None, None, "without a value and without a typed value"),
        (shredded_type(pa.binary(), pa.int64()), FIVE, 5, "a value beside one of type int64"),
        (OF_A, FIVE, {"a": {"value": None, "typed_value": 5}}, "beside typed fields that is no object"),
        (OF_A, b"\x02\x01\x00\x00\x02" + FIVE, {"a": {"value": None, "typed_value": 5}}, "field a in its value and in"),
        (OF_A, b"\x02\x01\x00\x00\x02" + FIVE, {"a": {"value": None, "typed_value": None}}, "field a in its value and"),
        (OF_A, b"\x02\x01\x00\x00\x02" + FIVE, None, "an object in its value, and none in its typed column"),
        (OF_A, b"\x02\x00\x00", None, "an object in its value, and none in its typed column"),
        (OF_A, None, {"a": {"value": FIVE, "typed_value": 5}}, "a value beside one of type int64"),
        (OF_LIST, FIVE, [{"value": None, "typed_value": 5}], "a value beside one of type list"),
        (OF_LIST, b"\x03\x01\x00\x02" + FIVE, None, "an array in its value, and none in its typed column"),
        (OF_LIST, None, [{"value": FIVE, "typed_value": 5}], "a value beside one of type int64"),
        (OF_LIST, None, [{"value": None, "typed_value": 5}, {"value": None, "typed_value": None}], "value at 1"),
    ],
)
def test_a_shredded_variant_that_readers_differ_on_is_refused(
    kind: pa.DataType, value: bytes | None, typed: object, found: str
) -> None:
    rows = [{"metadata": ONE_NAME, "value": value, "typed_value": typed}]
    with pytest.raises(ValueError, match=found):
        hashes(pa.array(rows, kind))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (pa.uint64(), "shredded into uint64"),
        (pa.timestamp("s"), "shredded into timestamp"),
        (pa.struct([("a", pa.int64())]), "shredded into int64 for field a"),
        (pa.struct([("a", LONG_PART), ("a", LONG_PART)]), "two fields of one name"),
        (pa.list_(pa.int64()), "shredded into int64 for field of an array"),
    ],
)
def test_a_type_that_no_variant_is_shredded_into_is_refused(typed: pa.DataType, found: str) -> None:
    fields = list(shredded_type(pa.binary(), typed))
    one = one_of(typed)
    parts = [pa.array([ONE_NAME], pa.binary()), pa.array([None], pa.binary()), one]
    with pytest.raises(ValueError, match=found):
        hashes(pa.StructArray.from_arrays(parts, fields=fields))


def one_of(kind: pa.DataType) -> pa.Array:
    """One value that is not null, whatever it is."""
    if isinstance(kind, pa.StructType):
        return pa.StructArray.from_arrays([one_of(field.type) for field in kind], fields=list(kind))
    if isinstance(kind, pa.ListType):
        return pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), one_of(kind.value_type))
    return pa.array([b"\x00" if kind == pa.binary() else 0], None if kind == pa.binary() else pa.int64()).cast(kind)


def test_a_value_in_a_list_or_a_map_has_its_hash_there() -> None:
    values_of = [column([exact(n, 0), ("string", b"x")], Random(n)) for n in (1, 2)]
    lists = [pa.ListArray.from_arrays(np.array([0, 2], np.int32), each) for each in values_of]
    first, second = (fingerprint(pa.table({"l": each})) for each in lists)
    again = fingerprint(
        pa.table({"l": pa.ListArray.from_arrays([0, 2], column([exact(1, 0), ("string", b"x")], Random(9)))})
    )
    assert first == again != second


def test_a_struct_of_a_user_is_no_variant() -> None:
    """It has the hash of its bytes, which need not be those of a variant."""
    plain = pa.struct([pa.field(field.name, field.type, nullable=False) for field in VARIANT])
    held = pa.array([{"metadata": b"no", "value": b"variant"}], plain)
    assert fingerprint(pa.table({"s": held})) != fingerprint(
        pa.table({"s": pa.array([{"metadata": b"no", "value": b""}], plain)})
    )
