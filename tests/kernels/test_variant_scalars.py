"""Scalars of variants as words: numbers at their least scale, and views of bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.support.variant_values import exact

from nightkeep.kernels.variant_scalars import EXACT, Payloads, byte_views, normalise_exact, typed_payloads

NUMBERS = st.tuples(st.integers(-(2**127), 2**127 - 1) | st.integers(-1000, 1000), st.integers(0, 38))


@given(st.lists(NUMBERS, max_size=20))
def test_numbers_are_brought_to_their_least_scale(numbers: list[tuple[int, int]]) -> None:
    # Zeros at the end, which chance alone rarely makes.
    numbers += [((unscaled >> 44) * 10**12, scale) for unscaled, scale in numbers]
    payloads = Payloads.of(EXACT, len(numbers))
    payloads.low[:] = [unscaled & 2**64 - 1 for unscaled, _ in numbers]
    payloads.high[:] = [unscaled >> 64 & 2**64 - 1 for unscaled, _ in numbers]
    payloads.counts[:] = [scale for _, scale in numbers]
    normalise_exact(payloads)
    found = zip(payloads.low.tolist(), payloads.high.astype(np.int64).tolist(), payloads.counts.tolist(), strict=True)
    expected = [exact(unscaled, scale) for unscaled, scale in numbers]
    assert [("exact", high << 64 | low, scale) for low, high, scale in found] == expected


@given(st.lists(st.none() | st.binary(max_size=30), max_size=20), st.binary(max_size=5))
def test_views_are_of_the_bytes_between(texts: list[bytes | None], before: bytes) -> None:
    held = [(at, text) for at, text in enumerate(texts) if text is not None]
    lengths = np.array([len(text) for _, text in held], np.int64)
    starts = len(before) + np.cumsum(lengths) - lengths
    data = np.frombuffer(before + b"".join(text for _, text in held) + bytes(8), np.uint8)
    rows = np.array([at for at, _ in held], np.int64)
    views = byte_views(data, starts, lengths, rows, len(texts))
    views.validate(full=True)
    assert views.to_pylist() == texts


def test_typed_numbers_of_one_value_are_one_payload() -> None:
    columns = [pa.array([None, 2, -1], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())]
    columns += [columns[-1].cast(pa.decimal128(38, scale)) for scale in (0, 2)]
    found = [typed_payloads(column.slice(1)) for column in columns]
    assert {each.low.tobytes() + each.high.tobytes() + each.counts.tobytes() for each in found} == {
        np.array([2, -1, 0, -1, 0, 0], np.int64).tobytes()
    }
