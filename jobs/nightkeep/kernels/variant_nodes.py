"""Encoded variants -> their values as nodes, level by level, for all rows at once.

Parquet's "Variant Binary Encoding", version 1. A node is one value: a scalar, or an object or array whose values are
the nodes of the next level. The bytes may be anybody's: a position is checked before it is read, a variant has no more
nodes than bytes, and no more than MAX_DEPTH levels. Memory: about 150 bytes for each node of all levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nightkeep.kernels.arrow_buffers import BYTE_BITS, WORD_BYTES, Words, words_at
from nightkeep.kernels.variant_names import VariantNames, require, unsigned
from nightkeep.kernels.variant_scalars import (
    ARRAY,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    EXACT,
    FLOAT,
    MAX_SCALE,
    NULL,
    OBJECT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    Bytes,
    Flags,
    Numbers,
    Payloads,
    byte_views,
    normalise_exact,
    normalise_nanos,
)
from nightkeep.model.arrow_types import Array

MAX_DEPTH: Final = 1000
"""Levels of values within values. Spark's parser of JSON has the same limit."""

_SHORT_STRING, _OBJECT, _ARRAY = 1, 2, 3
"""Basic types, in the two lowest bits of a value's first byte."""
_BASIC_BITS, _BASIC_MASK = np.uint8(2), np.uint8(3)


@dataclass(frozen=True, slots=True)
class _Primitive:
    """What a primitive type has: its kind, its bytes after the header, or of its length, and bytes of its number."""

    kind: int
    size: int
    number: int = 0


_PRIMITIVES: Final = {
    0: _Primitive(NULL, 0),
    1: _Primitive(BOOLEAN, 0),
    2: _Primitive(BOOLEAN, 0),
    3: _Primitive(EXACT, 1, 1),
    4: _Primitive(EXACT, 2, 2),
    5: _Primitive(EXACT, 4, 4),
    6: _Primitive(EXACT, 8, 8),
    7: _Primitive(DOUBLE, 8, 8),
    8: _Primitive(EXACT, 5, 4),
    9: _Primitive(EXACT, 9, 8),
    10: _Primitive(EXACT, 17, 8),
    11: _Primitive(DATE, 4, 4),
    12: _Primitive(TIMESTAMP, 8, 8),
    13: _Primitive(TIMESTAMP_NTZ, 8, 8),
    14: _Primitive(FLOAT, 4, 4),
    15: _Primitive(BINARY, 4),
    16: _Primitive(STRING, 4),
    17: _Primitive(TIME, 8, 8),
    18: _Primitive(TIMESTAMP, 8, 8),
    19: _Primitive(TIMESTAMP_NTZ, 8, 8),
    20: _Primitive(UUID, 16, 8),
}
"""By the type's number in the header (VariantEncoding.md, "Primitive Types")."""
_TRUE, _DECIMALS, _DECIMAL16, _NANOS = 1, (8, 10), 10, (18, 19)
_UNKNOWN: Final = 255


def _table(values: dict[int, int], otherwise: int) -> Numbers:
    return np.array([values.get(number, otherwise) for number in range(1 << 6)], np.int64)


_KINDS: Final = _table({number: each.kind for number, each in _PRIMITIVES.items()}, _UNKNOWN).astype(np.uint8)
_SIZES: Final = _table({number: each.size for number, each in _PRIMITIVES.items()}, 0)
_NUMBER_BYTES: Final = _table({number: each.number for number, each in _PRIMITIVES.items()}, 0)


@dataclass(frozen=True, slots=True)
class NodeSpans:
    """Where nodes are: from `starts`, and before `stops` at the latest. `roots` has the variant of each."""

    roots: Numbers
    starts: Numbers
    stops: Numbers

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Level:
    """Nodes of one level, with the bytes that each takes, and the nodes of the next level that they contain.

    A child has the place of its parent in this level, and a key: the place of its name in the dictionaries, or its own
    index in an array. Children of one parent are next to each other.
    """

    payloads: Payloads
    sizes: Numbers
    children: NodeSpans
    parents: Numbers
    keys: Numbers


def levels(data: Bytes, spans: NodeSpans, names: VariantNames) -> Iterator[Level]:
    """All levels, from the spans of whole variants down. Raises ValueError for bytes that are no variant."""
    room = np.bincount(spans.roots, weights=spans.stops - spans.starts)
    taken = np.zeros(len(room))
    for _ in range(MAX_DEPTH):
        taken += np.bincount(spans.roots, minlength=len(room))
        # Values that share bytes: two in each of thirty levels are a billion.
        if (taken > room).any():
            at = np.argmax(taken > room)
            raise ValueError(f"a variant of {room[at]:.0f} bytes with {taken[at]:.0f} values")
        level = level_of(data, spans, names)
        yield level
        spans = level.children
        if not len(spans):
            return
    raise ValueError(f"a variant of more than {MAX_DEPTH} levels")


def level_of(data: Bytes, spans: NodeSpans, names: VariantNames) -> Level:
    """The nodes at these spans. Raises ValueError, with what was found."""
    starts, stops = spans.starts, spans.stops
    require(starts < stops, lambda at: "a variant value without bytes")
    header = data[starts]
    basic, info = header & _BASIC_MASK, header >> _BASIC_BITS
    payloads = Payloads.of(NULL, len(spans))
    sizes = _scalars(data, spans, basic, info, payloads)
    payloads.kinds[basic == _OBJECT], payloads.kinds[basic == _ARRAY] = OBJECT, ARRAY
    children, parents, keys = _children(data, spans, header, payloads, sizes, names)
    texts = _texts(data, spans, basic, info, payloads, sizes)
    payloads = Payloads(payloads.kinds, payloads.counts, payloads.low, payloads.high, texts)
    return Level(payloads, sizes, children, parents, keys)


def _scalars(data: Bytes, spans: NodeSpans, basic: Bytes, info: Bytes, payloads: Payloads) -> Numbers:
    """Fill in kinds and numbers of primitives; the bytes that each takes, without those of a text."""
    sizes = np.ones(len(spans), np.int64)
    at = np.flatnonzero(basic == 0)
    types = info[at]
    kinds = _KINDS[types]
    require(kinds != _UNKNOWN, lambda bad: f"a variant value of primitive type {types[bad]}, which is unknown")
    sizes[at] += _SIZES[types]
    body = spans.starts[at] + 1
    fits = spans.starts[at] + sizes[at] <= spans.stops[at]
    room = spans.stops[at] - body
    require(fits, lambda bad: f"a variant value of primitive type {types[bad]} with {room[bad]} bytes")
    payloads.kinds[at] = kinds
    decimal = (types >= _DECIMALS[0]) & (types <= _DECIMALS[1])
    words = words_at(data, body + decimal)
    payloads.low[at] = _signed(words, _NUMBER_BYTES[types], kinds)
    payloads.low[at[types == _TRUE]] = 1
    payloads.high[at] = np.where(kinds == EXACT, (payloads.low[at].view(np.int64) >> 63).view(np.uint64), 0)
    two_words = (kinds == UUID) | (types == _DECIMAL16)
    wide = at[two_words]
    payloads.high[wide] = words_at(data, body[two_words] + decimal[two_words] + WORD_BYTES)
    _scales(data, body[decimal], at[decimal], payloads)
    normalise_nanos(payloads, at[(types == _NANOS[0]) | (types == _NANOS[1])])
    return sizes


def _signed(words: Words, widths: Numbers, kinds: Bytes) -> Words:
    """The lowest bytes of each word: with their sign, but for floats, which are their bits; 0 for no bytes."""
    shifts = (BYTE_BITS * (WORD_BYTES - np.maximum(widths, 1))).astype(np.uint64)
    shifted = words << shifts
    signed = (shifted.view(np.int64) >> shifts.view(np.int64)).view(np.uint64)
    chosen = np.where(kinds == FLOAT, shifted >> shifts, signed)
    return np.where(widths > 0, chosen, np.uint64(0))


def _scales(data: Bytes, body: Numbers, at: Numbers, payloads: Payloads) -> None:
    scales = data[body]
    require(scales <= MAX_SCALE, lambda bad: f"a variant decimal of scale {scales[bad]}, at most {MAX_SCALE} expected")
    payloads.counts[at] = scales
    normalise_exact(payloads)


def _texts(data: Bytes, spans: NodeSpans, basic: Bytes, info: Bytes, payloads: Payloads, sizes: Numbers) -> Array:
    """Views of texts and bytes, whose lengths are added to the sizes."""
    short = basic == _SHORT_STRING
    payloads.kinds[short] = STRING
    at = np.flatnonzero((payloads.kinds == STRING) | (payloads.kinds == BINARY))
    starts = spans.starts[at] + sizes[at]
    of_length = unsigned(data, np.maximum(starts - 4, 0), np.full(len(at), 4))
    lengths = np.where(short[at], info[at].astype(np.int64), of_length)
    fits = starts + lengths <= spans.stops[at]
    require(
        fits,
        lambda bad: f"a variant text of {lengths[bad]} bytes, of which {spans.stops[at[bad]] - starts[bad]} are there",
    )
    sizes[at] += lengths
    return byte_views(data, starts, lengths, at, len(spans))


@dataclass(frozen=True, slots=True)
class _Containers:
    """Objects and arrays: their places in the level, how many values each has, and where its parts are."""

    at: Numbers
    counts: Numbers
    is_object: Flags
    id_widths: Numbers
    widths: Numbers
    """Of offsets."""
    ids: Numbers
    """Where the ids of names start, with nothing there for arrays."""

    @property
    def offsets(self) -> Numbers:
        return self.ids + self.counts * self.id_widths * self.is_object

    @property
    def values(self) -> Numbers:
        """Where the values start: after one offset for each, and one for the end."""
        return self.offsets + (self.counts + 1) * self.widths


def _containers(data: Bytes, spans: NodeSpans, header: Bytes) -> _Containers:
    basic, info = header & _BASIC_MASK, header.astype(np.int64) >> _BASIC_BITS
    at = np.flatnonzero(basic >= _OBJECT)
    info, is_object = info[at], basic[at] == _OBJECT
    is_large = np.where(is_object, info >> 4, info >> 2) & 1
    count_widths = np.where(is_large, 4, 1)
    body, stops = spans.starts[at] + 1, spans.stops[at]
    require(
        body + count_widths <= stops, lambda bad: f"a variant object or array of {stops[bad] - body[bad] + 1} bytes"
    )
    counts = unsigned(data, body, count_widths)
    id_widths: Numbers = (info >> 2 & 3) + 1
    found = _Containers(at, counts, is_object, id_widths, (info & 3) + 1, body + count_widths)
    room = stops - body
    require(
        found.values <= stops, lambda bad: f"a variant object or array of {counts[bad]} values in {room[bad]} bytes"
    )
    return found


def _children(
    data: Bytes, spans: NodeSpans, header: Bytes, payloads: Payloads, sizes: Numbers, names: VariantNames
) -> tuple[NodeSpans, Numbers, Numbers]:
    """The values of objects and arrays, with their parents and keys. Sets the counts and sizes of these."""
    held = _containers(data, spans, header)
    offsets, values = held.offsets, held.values
    ends = values + unsigned(data, offsets + held.counts * held.widths, held.widths)
    begins, stops = spans.starts[held.at], spans.stops[held.at]
    fits = ends <= stops
    require(fits, lambda at: f"a variant object or array of {ends[at] - begins[at]} bytes in {stops[at] - begins[at]}")
    payloads.counts[held.at] = held.counts
    sizes[held.at] = ends - spans.starts[held.at]
    inner = np.repeat(np.arange(len(held.at)), held.counts)
    places: Numbers = np.arange(len(inner)) - (np.cumsum(held.counts) - held.counts)[inner]
    starts = values[inner] + unsigned(data, offsets[inner] + places * held.widths[inner], held.widths[inner])
    roots = spans.roots[held.at][inner]
    ids = unsigned(data, held.ids[inner] + places * held.id_widths[inner], held.id_widths[inner])
    codes = names.codes[roots]
    known = (ids < names.counts[codes]) | ~held.is_object[inner]
    require(known, lambda bad: f"a variant field of name {ids[bad]} in a dictionary of {names.counts[codes[bad]]}")
    keys = np.where(held.is_object[inner], names.firsts[codes] + ids, places)
    return NodeSpans(roots, starts, ends[inner]), held.at[inner], keys
