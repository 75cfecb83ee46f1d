"""Variants in plain Python: values, any of their encodings, any of their shreddings, and a decoder of both.

The twin of the kernels, one value at a time, after Parquet's VariantEncoding.md and VariantShredding.md. A value is a
tuple of its kind and of what it is: equal tuples are equal values, however they are encoded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from nightkeep.model.variant_type import VARIANT, shredded_type

Value = tuple[Any, ...]
"""("null",), ("bool", flag), ("exact", unscaled, scale), ("double", 8 bytes), ("float", 4 bytes), ("date", days),
("timestamp", nanos), ("timestamp_ntz", nanos), ("time", micros), ("binary", bytes), ("string", bytes), ("uuid", bytes),
("object", ((name, value), ...)) in order of names, ("array", (value, ...))."""

LONG = 2**63
_INTEGERS = {1: 3, 2: 4, 4: 5, 8: 6}
_DECIMALS = {4: 8, 8: 9, 16: 10}


def exact(unscaled: int, scale: int) -> Value:
    """A number of the least scale."""
    while scale and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    return ("exact", unscaled, scale)


def values(depth: int = 4) -> st.SearchStrategy[Value]:
    """Values of all kinds, up to some levels."""
    longs = st.integers(-LONG, LONG - 1) | st.integers(-300, 300)
    # Nanoseconds that are micros of 64 bits, or nanos of 64 bits.
    times = longs | longs.map(lambda micros: micros * 1000)
    leaf = st.one_of(
        st.just(("null",)),
        st.tuples(st.just("bool"), st.booleans()),
        st.builds(exact, longs, st.integers(0, 9)),
        st.builds(exact, st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38)),
        st.tuples(st.just("double"), st.floats(width=64).map(lambda x: struct.pack("<d", x))),
        st.tuples(st.just("float"), st.floats(width=32).map(lambda x: struct.pack("<f", x))),
        st.tuples(st.just("date"), st.integers(-(2**31), 2**31 - 1)),
        st.tuples(st.sampled_from(["timestamp", "timestamp_ntz"]), times),
        st.tuples(st.just("time"), st.integers(0, 86_400_000_000 - 1)),
        st.tuples(st.just("binary"), st.binary(max_size=80)),
        st.tuples(st.just("string"), st.text(max_size=70).map(str.encode)),
        st.tuples(st.just("uuid"), st.binary(min_size=16, max_size=16)),
    )
    names = st.sampled_from(["", "a", "b", "ab", "c", "n\u00e9", "\U0001f600", "\uffff", "a long name of a field"])

    def deeper(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
        objects = st.dictionaries(names, inner, max_size=5).map(lambda held: ("object", in_order(held)))
        return objects | st.lists(inner, max_size=5).map(lambda held: ("array", tuple(held)))

    return st.recursive(leaf, deeper, max_leaves=12 * depth)


def in_order(fields: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(fields.items(), key=lambda field: field[0].encode()))


def names_of(value: Value) -> set[str]:
    if value[0] == "object":
        return {name for name, _ in value[1]}.union(*(names_of(each) for _, each in value[1]))
    return set().union(*map(names_of, value[1])) if value[0] == "array" else set()


def number(value: int, width: int) -> bytes:
    return value.to_bytes(width, "little")


@dataclass(frozen=True)
class Encoder:
    """One of the encodings of variants with these names, by chance: widths, order and size of the dictionary."""

    names: list[str]
    random: Random

    @staticmethod
    def of(held: Iterable[Value], random: Random) -> Encoder:
        names = sorted(set().union(*map(names_of, held)) | {"unused"}, key=str.encode)
        if random.random() < 0.5:
            random.shuffle(names)
        return Encoder(names, random)

    @property
    def metadata(self) -> bytes:
        texts = [name.encode() for name in self.names]
        ends = [sum(map(len, texts[:count])) for count in range(len(texts) + 1)]
        width = self._width(max(len(texts), ends[-1]))
        is_sorted = texts == sorted(set(texts))
        header = 1 | is_sorted << 4 | (width - 1) << 6
        return bytes([header]) + b"".join(number(each, width) for each in (len(texts), *ends)) + b"".join(texts)

    def encoded(self, value: Value) -> bytes:
        kind, held = value[0], value[1:]
        if kind == "object":
            return self._object(value[1])
        if kind == "array":
            return self._array(value[1])
        if kind == "string" and len(held[0]) < 64 and self.random.random() < 0.8:
            return bytes([1 | len(held[0]) << 2, *held[0]])
        return self._primitive(value)

    def _width(self, largest: int) -> int:
        least = max(1, (largest.bit_length() + 7) // 8)
        return self.random.choice([least, least, self.random.randint(least, 4)])

    def _primitive(self, value: Value) -> bytes:
        kind = value[0]
        if kind == "exact":
            return self._exact(value[1], value[2])
        if kind in ("timestamp", "timestamp_ntz"):
            micros, rest = divmod(value[1], 1000)
            is_nano = rest or not -LONG <= micros < LONG or (-LONG <= value[1] < LONG and self.random.random() < 0.3)
            of_times = {"timestamp": (12, 18), "timestamp_ntz": (13, 19)}[kind]
            return bytes([of_times[bool(is_nano)] << 2]) + struct.pack("<q", value[1] if is_nano else micros)
        if kind in ("string", "binary"):
            return bytes([(15 if kind == "binary" else 16) << 2, *number(len(value[1]), 4), *value[1]])
        types = {"null": 0, "bool": 2, "double": 7, "date": 11, "float": 14, "time": 17, "uuid": 20}
        number_of_type = 1 if value == ("bool", True) else types[kind]
        body = b"" if kind in ("null", "bool") else value[1]
        if kind in ("date", "time"):
            body = struct.pack("<i" if kind == "date" else "<q", body)
        return bytes([number_of_type << 2, *body])

    def _exact(self, unscaled: int, scale: int) -> bytes:
        while scale < 38 and abs(unscaled) < 10**36 and self.random.random() < 0.3:
            unscaled, scale = unscaled * 10, scale + 1
        types = _DECIMALS if scale or self.random.random() < 0.3 or not -LONG <= unscaled < LONG else _INTEGERS
        fitting = [width for width in types if -(1 << 8 * width - 1) <= unscaled < 1 << 8 * width - 1]
        width = self.random.choice(fitting)
        head = bytes([types[width] << 2]) + (bytes([scale]) if types is _DECIMALS else b"")
        return head + unscaled.to_bytes(width, "little", signed=True)

    def _object(self, fields: Sequence[tuple[str, Value]]) -> bytes:
        ids = [self.names.index(name) for name, _ in fields]
        parts = [self.encoded(value) for _, value in fields]
        order = list(range(len(parts)))
        self.random.shuffle(order)
        starts = {each: sum(len(parts[other]) for other in order[:at]) for at, each in enumerate(order)}
        total = sum(map(len, parts))
        width, id_width = self._width(total), self._width(max(ids, default=0))
        is_large, count = self._count(len(parts))
        header = 2 | (width - 1 | id_width - 1 << 2 | is_large << 4) << 2
        offsets = [*(starts[at] for at in range(len(parts))), total]
        head = b"".join([*(number(each, id_width) for each in ids), *(number(each, width) for each in offsets)])
        return bytes([header]) + count + head + b"".join(parts[each] for each in order)

    def _array(self, items: Sequence[Value]) -> bytes:
        parts = [self.encoded(item) for item in items]
        ends = [sum(map(len, parts[:at])) for at in range(len(parts) + 1)]
        width = self._width(ends[-1])
        is_large, count = self._count(len(parts))
        header = 3 | (width - 1 | is_large << 2) << 2
        return bytes([header]) + count + b"".join(number(each, width) for each in ends) + b"".join(parts)

    def _count(self, count: int) -> tuple[bool, bytes]:
        is_large = count > 255 or self.random.random() < 0.2
        return is_large, number(count, 4 if is_large else 1)


def column(held: Sequence[Value | None], random: Random, *, alike: bool = False) -> pa.StructArray:
    """A plain column of these values, each encoded by chance; `alike`: with one dictionary."""
    encoders = [Encoder.of([each for each in (held if alike else [value]) if each], random) for value in held]
    encoders = encoders[:1] * len(encoders) if alike else encoders
    rows = [
        None if value is None else {"metadata": encoder.metadata, "value": encoder.encoded(value)}
        for value, encoder in zip(held, encoders, strict=True)
    ]
    return pa.array(rows, VARIANT)  # type: ignore[return-value]


def decoded(metadata: bytes, value: bytes) -> Value:
    """The value of an encoded variant; an exception of any kind for bytes that are none."""
    return _decoded(value, 0, dictionary(metadata))[0]


def dictionary(metadata: bytes) -> list[str]:
    assert metadata[0] & 15 == 1
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    ends = [int.from_bytes(metadata[1 + width * at :][:width], "little") for at in range(1, count + 2)]
    base = 1 + width * (count + 2)
    return [metadata[base + start : base + stop].decode() for start, stop in pairwise(ends)]


def _decoded(data: bytes, at: int, names: list[str]) -> tuple[Value, int]:
    """The value at a place, and where it ends."""
    basic, info = data[at] & 3, data[at] >> 2
    if basic == 1:
        return ("string", data[at + 1 : at + 1 + info]), at + 1 + info
    if basic == 0:
        return _decoded_primitive(data, at + 1, info)
    width = (info & 3) + 1
    is_large = (info >> (4 if basic == 2 else 2)) & 1
    start = at + (5 if is_large else 2)
    count = int.from_bytes(data[at + 1 : start], "little")
    id_width = (info >> 2 & 3) + 1 if basic == 2 else 0
    ids = [int.from_bytes(data[start + id_width * each :][:id_width], "little") for each in range(count)]
    start += id_width * count
    offsets = [int.from_bytes(data[start + width * each :][:width], "little") for each in range(count + 1)]
    start += width * (count + 1)
    parts = [_decoded(data, start + offset, names)[0] for offset in offsets[:-1]]
    end = start + offsets[-1]
    if basic == 3:
        return ("array", tuple(parts)), end
    fields = [(names[each], part) for each, part in zip(ids, parts, strict=True)]
    assert len(dict(fields)) == len(fields)
    return ("object", in_order(dict(fields))), end


def _decoded_primitive(data: bytes, at: int, kind: int) -> tuple[Value, int]:
    integers, decimals = ({number: width for width, number in each.items()} for each in (_INTEGERS, _DECIMALS))
    if kind in integers:
        width = integers[kind]
        return exact(int.from_bytes(data[at : at + width], "little", signed=True), 0), at + width
    if kind in decimals:
        width = decimals[kind]
        return exact(int.from_bytes(data[at + 1 :][:width], "little", signed=True), data[at]), at + 1 + width
    if kind in (15, 16):
        size = int.from_bytes(data[at : at + 4], "little")
        return ("binary" if kind == 15 else "string", data[at + 4 :][:size]), at + 4 + size
    if kind in (0, 1, 2):
        return ("null",) if kind == 0 else ("bool", kind == 1), at
    names = {7: ("double", 8), 11: ("date", 4), 14: ("float", 4), 17: ("time", 8), 20: ("uuid", 16)}
    names |= {12: ("timestamp", 8), 13: ("timestamp_ntz", 8), 18: ("timestamp", 8), 19: ("timestamp_ntz", 8)}
    name, width = names[kind]
    body = data[at : at + width]
    assert len(body) == width
    if name in ("float", "double", "uuid"):
        return (name, body), at + width
    whole = int.from_bytes(body, "little", signed=True)
    return (name, whole * 1000 if kind in (12, 13) else whole), at + width


Typed = pa.DataType | None | Mapping[str, Any] | list[Any]
"""What a variant is shredded into: a scalar type, fields by name, a list of one, or nothing."""


def shreddings(value: Value) -> st.SearchStrategy[Typed]:
    """Typed columns that may fit a value, or parts of it."""
    if value[0] == "object" and value[1]:
        fields = {name: shreddings(each) for name, each in value[1]}
        return st.fixed_dictionaries({}, optional={**fields, "c": SCALARS}).filter(bool) | SCALARS
    if value[0] == "array" and value[1]:
        return shreddings(value[1][0]).map(lambda item: [item])
    return SCALARS


SCALARS: st.SearchStrategy[Typed] = st.sampled_from(
    [
        None,
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32()),
        *(pa.decimal128(9, 2), pa.decimal128(18, 3), pa.decimal128(38, 9), pa.decimal128(38, 0)),
        *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")),
        *(pa.time64("us"), pa.string(), pa.binary(), pa.binary(16)),
    ]
)


def typed_type(typed: Typed) -> pa.DataType | None:
    if isinstance(typed, Mapping):
        return pa.struct([pa.field(name, part_type(each), nullable=False) for name, each in typed.items()])
    if isinstance(typed, list):
        return pa.list_(pa.field("element", part_type(typed[0]), nullable=False))
    return typed


def part_type(typed: Typed) -> pa.DataType:
    kind = typed_type(typed)
    return pa.struct([("value", pa.binary()), *([("typed_value", kind)] if kind is not None else [])])


def shredded_column(held: Sequence[Value | None], typed: Typed, random: Random) -> pa.StructArray:
    """A column of these values, shredded wherever a typed column has room for a part of one."""
    kind = typed_type(typed)
    if kind is None:
        return column(held, random)
    encoders = [Encoder.of([value] if value else [], random) for value in held]
    names = set(_typed_names(typed))
    rows = [
        None
        if value is None
        else {"metadata": (full := _with_names(encoder, names)).metadata, **_shredded(value, typed, full)}
        for value, encoder in zip(held, encoders, strict=True)
    ]
    return pa.array(rows, shredded_type(pa.binary(), kind))  # type: ignore[return-value]


def _with_names(encoder: Encoder, names: set[str]) -> Encoder:
    return Encoder([*encoder.names, *sorted(names - set(encoder.names))], encoder.random)


def _typed_names(typed: Typed) -> Iterable[str]:
    if isinstance(typed, Mapping):
        yield from typed
        for each in typed.values():
            yield from _typed_names(each)
    elif isinstance(typed, list):
        yield from _typed_names(typed[0])


def _shredded(value: Value, typed: Typed, encoder: Encoder) -> dict[str, Any]:
    if isinstance(typed, Mapping) and value[0] == "object":
        held = dict(value[1])
        rest = in_order({name: each for name, each in held.items() if name not in typed})
        fields = {
            name: _shredded(held[name], part, encoder) if name in held else {"value": None, "typed_value": None}
            for name, part in typed.items()
        }
        return {"value": encoder.encoded(("object", rest)) if rest else None, "typed_value": fields}
    if isinstance(typed, list) and value[0] == "array":
        return {"value": None, "typed_value": [_shredded(each, typed[0], encoder) for each in value[1]]}
    scalar = _scalar(value, typed) if isinstance(typed, pa.DataType) else None
    return {"value": encoder.encoded(value) if scalar is None else None, "typed_value": scalar}


def _scalar(value: Value, kind: pa.DataType) -> Any:
    """The value as one of a typed column; None if it has no room for it."""
    name = value[0]
    if name == "exact" and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return _exact_scalar(value[1], value[2], kind)
    if name in ("timestamp", "timestamp_ntz") and pa.types.is_timestamp(kind):
        count, rest = divmod(value[1], 1000 if kind.unit == "us" else 1)
        fits = (kind.tz is None) == (name == "timestamp_ntz") and not rest and -LONG <= count < LONG
        return pa.scalar(count, pa.int64()).cast(kind) if fits else None
    kinds = {"bool": pa.bool_(), "double": pa.float64(), "float": pa.float32(), "date": pa.date32()}
    kinds |= {"time": pa.time64("us"), "binary": pa.binary(), "string": pa.string(), "uuid": pa.binary(16)}
    if kinds.get(name) != kind:
        return None
    if name in ("double", "float"):
        return struct.unpack("<d" if name == "double" else "<f", value[1])[0]
    if name in ("date", "time"):
        return pa.scalar(value[1], pa.int32() if name == "date" else pa.int64()).cast(kind)
    return value[1].decode() if name == "string" else value[1]


def _exact_scalar(unscaled: int, scale: int, kind: Any) -> Any:
    if pa.types.is_integer(kind):
        return unscaled if scale == 0 and -(1 << kind.bit_width - 1) <= unscaled < 1 << kind.bit_width - 1 else None
    if scale > kind.scale or abs(unscaled) * 10 ** (kind.scale - scale) >= 10**kind.precision:
        return None
    whole = unscaled * 10 ** (kind.scale - scale)
    data = pa.py_buffer(whole.to_bytes(16, "little", signed=True))
    return pa.Array.from_buffers(kind, 1, [None, data])[0]
