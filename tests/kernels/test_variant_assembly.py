"""Shredded variants put together again: the twin decodes the same values, with the hashes of the shredded ones."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.test_variant_hash import ROWS, hashes
from tests.support.examples import examples
from tests.support.variant_values import Value, decoded, exact, in_order, part_type, shredded_column, shreddings

from nightkeep.kernels import variant_blocks
from nightkeep.kernels.variant_assembly import assembled
from nightkeep.model.variant_type import VARIANT, shredded_type


@settings(max_examples=examples(150))
@given(ROWS, st.randoms(use_true_random=False), st.data(), st.sampled_from([1, 1 << 20]))
def test_the_values_are_those_that_were_shredded(
    held: list[Value | None], random: Random, data: st.DataObject, block: int
) -> None:
    typed = data.draw(shreddings(next((value for value in held if value), ("null",))))
    column = shredded_column([*held, *held], typed, random).slice(len(held))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variant_blocks, "BLOCK_BYTES", block)
        found = assembled(column)
    assert found.type.equals(VARIANT, check_metadata=True)
    found.validate(full=True)
    assert [row and decoded(row["metadata"], row["value"]) for row in found.to_pylist()] == held
    there = [at for at, value in enumerate(held) if value]
    assert [hashes(found)[at] for at in there] == [hashes(column)[at] for at in there]


def test_large_objects_and_arrays_are_put_together() -> None:
    """More than 255 values, and offsets of two and three bytes."""
    names = [f"field {number:04}" for number in range(300)]
    texts = tuple(("string", b"%d" % number * 40) for number in range(700))
    value = ("object", in_order({**{name: exact(at, 0) for at, name in enumerate(names)}, "texts": ("array", texts)}))
    column = shredded_column([value], {**dict.fromkeys(names[::2], pa.int64()), "texts": [pa.string()]}, Random(1))
    (row,) = assembled(column).to_pylist()
    assert decoded(row["metadata"], row["value"]) == value


LONG_PART = part_type(pa.int64())
OF_A = shredded_type(pa.binary(), pa.struct([("a", LONG_PART)]))
OF_LIST = shredded_type(pa.binary(), pa.list_(LONG_PART))
FIVE, FIVE_OF_A = b"\x0c\x05", b"\x02\x01\x00\x00\x02\x0c\x05"
MISSING_A = {"a": {"value": None, "typed_value": None}}
TYPED_A = {"a": {"value": None, "typed_value": 5}}


@pytest.mark.parametrize(
    ("kind", "metadata", "value", "typed", "found"),
    [
        (shredded_type(pa.binary(), pa.int64()), b"\x01\x00\x00", None, None, "without a value and without a typed"),
        (shredded_type(pa.binary(), pa.int64()), b"\x01\x00\x00", FIVE, 5, "a value beside one of type int64"),
        (OF_A, b"\x01\x01\x00\x01a", FIVE, TYPED_A, "beside typed fields that is no object"),
        (OF_A, b"\x01\x01\x00\x01a", FIVE_OF_A, TYPED_A, "field a in its value and in a typed column"),
        (OF_A, b"\x01\x01\x00\x01a", FIVE_OF_A, MISSING_A, "field a in its value and in a typed column"),
        (OF_A, b"\x01\x01\x00\x01a", FIVE_OF_A, None, "an object in its value, and none in its typed column"),
        (OF_LIST, b"\x01\x00\x00", b"\x03\x01\x00\x02" + FIVE, None, "an array in its value, and none in its typed"),
        (OF_A, b"\x01\x01\x00\x01b", None, TYPED_A, "typed field a, which its dictionary of names lacks"),
        (shredded_type(pa.binary(), pa.uint64()), b"\x01\x00\x00", None, 5, "shredded into uint64"),
    ],
)
def test_what_is_no_one_value_is_refused(
    kind: pa.DataType, metadata: bytes, value: bytes | None, typed: object, found: str
) -> None:
    row = {"metadata": metadata, "value": value, "typed_value": typed}
    with pytest.raises(ValueError, match=found):
        assembled(pa.array([row], kind))
