"""Values of a column -> transformed values, for the gate: NumPy, where writers of ours use pyiceberg-core.

Iceberg table spec, "Partition Transforms" and Appendix B, "32-bit Hash Requirements". Nulls stay nulls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import CorruptMetadata
from nightkeep.kernels.arrow_buffers import OF_VIEWS, buffer_values, is_bytes
from nightkeep.model.arrow_types import Array

Ints = npt.NDArray[np.int64]
_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[(\d+)\]")
_UNITS: Final[Mapping[str, str]] = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_WORD: Final = 0xFFFFFFFF


def transform_values(values: Array, transform: str) -> Array:
    """The transformed values. Dates and times are numbers in the results of year, month, day, hour and bucket.

    Raises CorruptMetadata for a transform that is not known.
    """
    plain: Any = OF_VIEWS.get(values.type, values.type)
    values = values.cast(plain)
    if transform == "identity":
        return values
    if transform == "void":
        return pa.nulls(len(values), pa.int32())
    if transform in _UNITS:
        return _since_1970(values, _UNITS[transform])
    parsed = _WITH_WIDTH.fullmatch(transform)
    if parsed is None:
        raise CorruptMetadata(f"transform {transform}", "one of the spec's", "another")
    width = int(parsed[2])
    return _bucket(values, width) if parsed[1] == "bucket" else _truncated(values, width)


def _since_1970(values: Array, unit: str) -> Array:
    """Whole units since 1970, rounded down."""
    code = (
        {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}[values.type.unit] if pa.types.is_timestamp(values.type) else "D"
    )
    numbers, nulls = _numbers(values)
    found = numbers.astype(f"datetime64[{code}]").astype(f"datetime64[{unit}]").astype(np.int64)
    return pa.array(found.astype(np.int32), mask=nulls)


def _truncated(values: Array, width: int) -> Array:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.utf8_slice_codeunits(values, 0, width)
    if is_bytes(kind):
        return pc.binary_slice(values, 0, width)
    if isinstance(kind, pa.Decimal128Type):
        unscaled, nulls = unscaled_values(values)
        return decimals(unscaled - unscaled % width, nulls, kind.scale)
    numbers, nulls = _numbers(values)
    return cast(Array, pa.array(numbers - numbers % width, mask=nulls).cast(kind))


def _bucket(values: Array, count: int) -> Array:
    kind = values.type
    nulls = _nulls(values)
    if pa.types.is_decimal(kind):
        unscaled, _ = unscaled_values(values)
        hashes = _hash_bytes([_least_bytes(int(each)) for each in unscaled])
    elif is_bytes(kind):
        held: Any = values.cast(pa.large_binary()).fill_null(b"")
        hashes = _hash_bytes([each.as_buffer().to_pybytes() for each in held])
    else:
        hashes = _hash_words(_numbers(values)[0].view(np.uint64))
    return pa.array(((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32), mask=nulls)


def unscaled_values(values: Array) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.bool_]]:
    """Decimals as Python's whole numbers, 0 for nulls; and where the nulls are."""
    wide = values.cast(pa.decimal128(38, values.type.scale))
    words = buffer_values(wide, 1, np.dtype("<i8")).reshape(-1, 2)[wide.offset : wide.offset + len(wide)]
    low, high = words[:, 0].view(np.uint64).astype(object), words[:, 1].astype(object)
    found = high * (1 << 64) + low
    nulls = _nulls(values)
    found[nulls] = 0
    return found, nulls


def decimals(unscaled: npt.NDArray[np.object_], nulls: npt.NDArray[np.bool_], scale: int) -> Array:
    """The reverse of `unscaled_values`."""
    data = b"".join(int(each).to_bytes(16, "little", signed=True) for each in unscaled)
    valid = pa.array(~nulls).buffers()[1]
    wide = pa.decimal128(38, scale)
    return pa.Array.from_buffers(wide, len(unscaled), [valid, pa.py_buffer(data)])


def _numbers(values: Array) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The values as whole numbers, 0 for nulls; and where the nulls are."""
    kind = values.type
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return values.cast(pa.int64()).fill_null(0).to_numpy().copy(), _nulls(values)


def _nulls(values: Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _least_bytes(number: int) -> bytes:
    """The fewest bytes that hold a number and its sign, the highest first, as BigInteger.toByteArray of Java."""
    return number.to_bytes(((number if number >= 0 else ~number).bit_length() + 8) // 8, "big", signed=True)


_U32 = npt.NDArray[np.uint32]


def _hash_words(words: npt.NDArray[np.uint64]) -> _U32:
    """Murmur3 (x86, 32 bits, seed 0) of eight bytes each, the lowest first."""
    hashes = np.zeros(len(words), np.uint32)
    for half in ((words & np.uint64(_WORD)), words >> np.uint64(32)):
        hashes = _mixed(hashes, half.astype(np.uint32))
    return _ended(hashes, np.full(len(words), 8, np.uint32))


def _hash_bytes(values: list[bytes]) -> _U32:
    """Murmur3 of byte strings, all of one length at a time."""
    lengths = np.array([len(each) for each in values], np.int64)
    hashes = np.zeros(len(values), np.uint32)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        data = np.frombuffer(b"".join(values[row] for row in rows), np.uint8).reshape(len(rows), int(length))
        hashes[rows] = _hash_block(data)
    return hashes


def _hash_block(data: npt.NDArray[np.uint8]) -> _U32:
    rows, length = data.shape
    hashes = np.zeros(rows, np.uint32)
    whole = length // 4 * 4
    for start in range(0, whole, 4):
        hashes = _mixed(hashes, np.ascontiguousarray(data[:, start : start + 4]).view("<u4").reshape(rows))
    tail = np.zeros(rows, np.uint32)
    for place in range(length - 1, whole - 1, -1):
        tail = (tail << np.uint32(8)) | data[:, place].astype(np.uint32)
    if length > whole:
        hashes ^= _scrambled(tail)
    return _ended(hashes, np.full(rows, length, np.uint32))


def _mixed(hashes: _U32, block: _U32) -> _U32:
    hashes = _rotated(hashes ^ _scrambled(block), 13)
    return hashes * np.uint32(5) + np.uint32(0xE6546B64)


def _scrambled(block: _U32) -> _U32:
    return _rotated(block * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotated(words: _U32, bits: int) -> _U32:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _ended(hashes: _U32, lengths: _U32) -> _U32:
    hashes = hashes ^ lengths
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    return hashes ^ (hashes >> np.uint32(16))
