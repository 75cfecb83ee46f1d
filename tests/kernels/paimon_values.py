"""Values of every type a Paimon key may have, and Paimon's order of them spelled out."""

import decimal
import math

import pyarrow as pa
from hypothesis import strategies as st

# U+E000 and above sort after surrogate pairs as UTF-16 and before them as bytes.
TEXT = st.text(st.sampled_from("a\0b\u00e9\ue000\uffff\U00010000\U0001f600"), max_size=20)
BYTES = st.one_of(st.binary(max_size=4), st.binary(max_size=30), st.sampled_from([b"", b"\0", b"\0\0", b"x" * 25]))
FLOATS = st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]))


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.one_of(st.integers(low, high), st.integers(-3, 3), st.sampled_from([low, high]))


def decimals(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    top = 10**digits - 1
    unscaled = st.one_of(st.integers(-top, top), st.integers(-3, 3), st.sampled_from([-top, top]))
    return unscaled.map(lambda value: decimal.Decimal(value).scaleb(-scale, decimal.Context(prec=40)))


KEY_TYPES: dict[pa.DataType, st.SearchStrategy] = {
    pa.bool_(): st.booleans(),
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32),
    pa.int64(): integers(64),
    pa.float32(): FLOATS,
    pa.float64(): st.one_of(FLOATS, st.floats()),
    pa.decimal128(9, 2): decimals(9, 2),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.date32(): st.dates(),
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.time64("us"): st.times(),
    pa.timestamp("s"): integers(40),
    pa.timestamp("ms"): integers(64),
    pa.timestamp("us"): integers(64),
    pa.timestamp("ns", "UTC"): integers(64),
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.binary(): BYTES,
    pa.binary(3): st.binary(min_size=3, max_size=3),
}


def order_key(value: object) -> object:
    """Paimon's order of one value, spelled out."""
    if isinstance(value, float):
        if math.isnan(value):
            return (2, 0.0, 0)
        return (1, value, math.copysign(1, value) if value == 0 else 0)
    return value.encode() if isinstance(value, str) else value
