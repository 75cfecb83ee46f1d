"""A typed column -> its values as encoded variants (Parquet's "Variant Binary Encoding")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import BYTE_BITS, buffer_values, byte_spans
from nightkeep.kernels.variant_scalars import Bytes, Numbers
from nightkeep.model.arrow_types import Array, Datum

_BASIC_BITS: Final = 2
_SHORT_STRING, _SHORT_BYTES, _LENGTH_BYTES = 1, 64, 4
_TRUE, _FALSE, _BINARY, _STRING = 1, 2, 15, 16
_TYPES: Final = {
    pa.int8(): 3,
    pa.int16(): 4,
    pa.int32(): 5,
    pa.int64(): 6,
    pa.float64(): 7,
    pa.date32(): 11,
    pa.float32(): 14,
    pa.time64("us"): 17,
    pa.binary(16): 20,
}
_DECIMALS: Final = ((9, 8, 4), (18, 9, 8), (38, 10, 16))
"""The most digits, the number and the bytes of each type of decimals."""
_TIMES: Final = {("us", True): 12, ("us", False): 13, ("ns", True): 18, ("ns", False): 19}
"""By unit, and by whether there is a zone."""


def encoded_scalars(column: Array) -> Array:
    """Encoded values as binary, of a column without nulls. Raises ValueError for a type that no variant has."""
    kind = column.type
    if pa.types.is_boolean(kind):
        flags = column.cast(pa.uint8()).to_numpy()
        headers = np.where(flags == 1, _TRUE, _FALSE) << _BASIC_BITS
        return _fixed(headers.astype(np.uint8).reshape(-1, 1))
    if pa.types.is_decimal(kind):
        return _decimals(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(column.cast(pa.binary() if pa.types.is_string(kind) else pa.large_binary()), is_text=True)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _texts(column, is_text=False)
    number = _TYPES.get(kind)
    if pa.types.is_timestamp(kind):
        number = _TIMES.get((kind.unit, kind.tz is not None))
    if number is None:
        raise ValueError(f"a variant shredded into {kind}, expected a type of variants")
    return _fixed(_headed(number, _cells(column, kind.bit_width // BYTE_BITS)))


def little_endian(out: Bytes, places: Numbers, values: Numbers, widths: Numbers) -> None:
    """Write each value to its place, in so many bytes, up to four."""
    for byte in range(int(widths.max(initial=0))):
        held = widths > byte
        out[places[held] + byte] = values[held] >> BYTE_BITS * byte & 0xFF


def binary_of(data: Bytes, offsets: Numbers) -> Array:
    """Bytes as a column: row i is from offset i to the next. Raises ValueError beyond 2 GiB."""
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} bytes of variants at once, expected less than 2 GiB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).data), pa.py_buffer(data.data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _cells(column: Array, width: int) -> Bytes:
    """The bytes of each value."""
    cells = buffer_values(column, 1, np.dtype(np.uint8))
    return cells[: len(cells) // width * width].reshape(-1, width)[column.offset : column.offset + len(column)]


def _headed(number: int, *parts: Bytes) -> Bytes:
    header = np.full((len(parts[0]), 1), number << _BASIC_BITS, np.uint8)
    return np.concatenate([header, *parts], axis=1)


def _fixed(cells: Bytes) -> Array:
    rows, width = cells.shape
    return binary_of(np.ascontiguousarray(cells).reshape(-1), np.arange(rows + 1) * width)


def _decimals(column: Array) -> Array:
    digits, scale = column.type.precision, column.type.scale
    fitting = [(number, width) for most, number, width in _DECIMALS if digits <= most]
    if not fitting or not 0 <= scale <= digits:
        raise ValueError(f"a variant shredded into {column.type}, expected a decimal of up to 38 digits")
    number, width = fitting[0]
    cells = _cells(column.cast(pa.decimal128(digits, scale)), 16)
    return _fixed(_headed(number, np.full((len(column), 1), scale, np.uint8), cells[:, :width]))


def _texts(column: Array, *, is_text: bool) -> Array:
    _, begins, ends = byte_spans(column)
    lengths = ends.astype(np.int64) - begins
    is_short = (lengths < _SHORT_BYTES) & is_text
    long_header = (_STRING if is_text else _BINARY) << _BASIC_BITS
    heads = np.zeros((len(column), 1 + _LENGTH_BYTES), np.uint8)
    heads[:, 0] = np.where(is_short, _SHORT_STRING | lengths << _BASIC_BITS, long_header)
    heads[:, 1:] = lengths.astype("<u4").view(np.uint8).reshape(-1, _LENGTH_BYTES)
    widths = np.where(is_short, 1, 1 + _LENGTH_BYTES)
    is_held = np.arange(1 + _LENGTH_BYTES) < widths[:, None]
    prefixes = binary_of(heads[is_held], np.append(0, np.cumsum(widths)))
    parts: Sequence[Datum] = (prefixes, column.cast(pa.binary()), pa.scalar(b"", pa.binary()))
    return cast(Array, pc.binary_join_element_wise(*parts))
