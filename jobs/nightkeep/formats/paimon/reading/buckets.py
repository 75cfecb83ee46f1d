"""Values that a filter asks of the bucket key -> whether a bucket can hold them (DefaultBucketFunction.java)."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, bucket_key, has_fixed_buckets
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.formats.paimon.metadata.values import Value, canonical

MOST_KEYS: Final = 1_000
"""Keys whose buckets are computed. With more, nearly every bucket is wanted."""
_NO_ONE_FORM: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.CHAR, TypeRoot.BINARY})
"""Types in which equal values may have different bytes: zeros of two signs, texts that are padded."""
_ARITY_BYTES: Final = 4
_WORD: Final = 0xFFFFFFFF


def may_hold(bucket: Bucket, keys: Mapping[str, Sequence[object]]) -> bool:
    """Whether the bucket can hold a row that has one of the wanted values in each of these columns.

    True unless the values name the whole bucket key and their bucket is another one."""
    schema = bucket.schemas.current
    fields = schema.select(bucket_key(schema))
    fixed = has_fixed_buckets(schema) and bucket.total_buckets > 0
    plain = schema.options.get("bucket-function.type", "default").lower() == "default"
    if not (fixed and plain and fields) or any(field.name not in keys for field in fields):
        return True
    if any(field.type.root in _NO_ONE_FORM or not field.type.is_primitive for field in fields):
        return True
    if not all(_held_as_now(schema, fields) for schema in bucket.schemas.by_id.values()):
        return True
    if math.prod(len(keys[field.name]) for field in fields) > MOST_KEYS:
        return True
    try:
        return bucket.key.bucket in set(_buckets(fields, keys, bucket.total_buckets))
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # The column cannot hold one of the values as it is.
        return True


def bucket_of(row: bytes, buckets: int) -> int:
    """The bucket of a bucket key, as BinaryRow with its arity."""
    hashed = _murmur(row[_ARITY_BYTES:])
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    # Java's remainder has the sign of the dividend.
    return abs(int(math.fmod(signed, buckets)))


def _held_as_now(written: PaimonSchema, fields: Sequence[PaimonField]) -> bool:
    """Whether rows of that schema were placed by values of the same types: another type has other bytes."""
    held = {field.id: field.type.root for field in written.fields}
    return all(held.get(field.id) is field.type.root for field in fields)


def _buckets(fields: Sequence[PaimonField], keys: Mapping[str, Sequence[object]], buckets: int) -> Iterator[int]:
    """The buckets of all combinations of the values."""
    types = [field.type for field in fields]
    for values in itertools.product(*(keys[field.name] for field in fields)):
        row = [_value(value, field) for value, field in zip(values, fields, strict=True)]
        yield bucket_of(encode_row(row, types), buckets)


def _value(value: object, field: PaimonField) -> Value:
    return canonical(pa.scalar(value, field.type.arrow), field.type)


def _murmur(data: bytes) -> int:
    """MurmurHash3 of 32 bits over little-endian words, seed 42 (MurmurHashUtils.hashBytesByWords)."""
    state = 42
    for (word,) in struct.iter_unpack("<I", data):
        mixed = _rotated(word * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
        state = (_rotated(state ^ mixed, 13) * 5 + 0xE6546B64) & _WORD
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    return state ^ state >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD
