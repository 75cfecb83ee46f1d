"""A column of variants -> two independent 64-bit hashes of each value, plain or shredded. Equal values hash equally.

A value is its kind and its number or text (variant_scalars). An array is its length, and two sums of its values'
hashes, each taken with its index. An object is its length, and two sums of its values' hashes, each taken with its
name: in any order, whatever the dictionary. So the fields of a shredded object add up from where they are, typed or
not, and nothing is assembled.

What Parquet's "Variant Shredding" forbids is refused, because readers differ there: a field in a typed column and in
the rest, a value beside a typed one that is no object, an object or array where the typed one is null, an array with a
missing value, two fields of one name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, cast

import numpy as np
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import Words, byte_spans
from nightkeep.kernels.flat_hash import flat_hash_blocks, joined
from nightkeep.kernels.variant_blocks import field_parts, row_blocks, value_parts
from nightkeep.kernels.variant_names import VariantNames, require, variant_names
from nightkeep.kernels.variant_nodes import Level, NodeSpans, levels
from nightkeep.kernels.variant_scalars import ARRAY, OBJECT, Flags, Kinds, Numbers, Payloads, typed_payloads
from nightkeep.model.arrow_types import Array, ListArray

Hashes = tuple[Words, Words]
_LISTS: Final = (pa.ListArray, pa.LargeListArray)


def variant_words(column: pa.StructArray) -> Hashes:
    """The two hashes of each value; those of nulls have no meaning.

    `column` is of a type for which `is_variant` holds. Raises ValueError for bytes that are no variant, and for a
    shredded one that readers may take for different values.
    """
    if column.null_count:
        held = column.is_valid()
        whole = [np.zeros(len(column), np.uint64) for _ in range(2)]
        at = held.to_numpy(zero_copy_only=False)
        for lane, words in zip(whole, variant_words(column.filter(held)), strict=True):
            lane[at] = words
        return whole[0], whole[1]
    return joined(_words_of(block) for block in row_blocks(column))


def _words_of(column: pa.StructArray) -> Hashes:
    names = variant_names(column.field("metadata"))
    value, typed = value_parts(column)
    hashes = _Hashing(names).hashes(np.arange(len(column)), value, typed)
    require(hashes.there, lambda at: f"a variant without a value and without a typed value, at row {at} of its block")
    return hashes.first, hashes.second


@dataclass(frozen=True, slots=True)
class _Values:
    """The two hashes of each value, and whether there is one."""

    first: Words
    second: Words
    there: Flags

    @staticmethod
    def missing(rows: int) -> _Values:
        return _Values(np.zeros(rows, np.uint64), np.zeros(rows, np.uint64), np.zeros(rows, np.bool_))

    def put(self, at: Flags, payloads: Payloads) -> None:
        self.first[at], self.second[at] = _hashes(payloads)
        self.there[at] = True


@dataclass(frozen=True, slots=True)
class _Hashing:
    """Hashes values of one block of variants. `rows` are the rows of the block that values belong to."""

    names: VariantNames

    def hashes(self, rows: Numbers, value: Array | None, typed: Array | None) -> _Values:
        """The hashes of encoded and typed values. Where both are null, there is none."""
        found = _Values.missing(len(rows))
        encoded, top = _valid(value, len(rows)), None
        if value is not None and encoded.any():
            top = self._decoded(rows[encoded], value.filter(pa.array(encoded)))
            found.put(encoded, top.payloads)
        is_typed = _valid(typed, len(rows))
        if top is not None and typed is not None:
            _require_typed(top.payloads.kinds[~is_typed[encoded]], typed)
        if typed is None or not is_typed.any():
            return found
        both = encoded & is_typed
        inner, rows = typed.filter(pa.array(is_typed)), rows[is_typed]
        if isinstance(inner, pa.StructArray):
            found.put(is_typed, self._object(rows, inner, self._rest(top, encoded, both, inner), both[is_typed]))
            return found
        require(~both, lambda at: f"a variant with a value beside one of type {inner.type}")
        if isinstance(inner, _LISTS):
            found.put(is_typed, self._array(rows, cast(ListArray, inner)))
        else:
            found.put(is_typed, typed_payloads(inner))
        return found

    def _decoded(self, rows: Numbers, value: Array) -> Level:
        """The top level of encoded values, with the sums of what they contain."""
        data, begins, ends = byte_spans(value)
        spans = NodeSpans(rows, begins.astype(np.int64), ends.astype(np.int64))
        held = list(levels(data, spans, self.names))
        for upper, lower in pairwise(reversed(held)):
            self._add(lower, _hashes(upper.payloads))
        return held[0]

    def _add(self, level: Level, values: Hashes) -> None:
        """Add the hashes of the next level's nodes to the objects and arrays that contain them."""
        is_named = level.payloads.kinds[level.parents] == OBJECT
        keys = [level.keys.astype(np.uint64), np.zeros(len(level.keys), np.uint64)]
        for key, name in zip(keys, self.names.hashes, strict=True):
            key[is_named] = name[level.keys[is_named]]
        _require_once(level.parents[is_named], keys[0][is_named], keys[1][is_named])
        for lane, sums in zip(_entries(values, keys), (level.payloads.low, level.payloads.high), strict=True):
            np.add.at(sums, level.parents, lane)

    def _rest(self, top: Level | None, encoded: Flags, both: Flags, typed: pa.StructArray) -> Payloads:
        """What objects have beside typed fields. Raises ValueError where it is no object, or has a typed field."""
        if top is None or not both.any():
            return Payloads.of(OBJECT, 0)
        held = both[encoded]
        kinds = top.payloads.kinds[held]
        require(kinds == OBJECT, lambda at: "a variant with a value beside typed fields that is no object")
        names = [field.name for field in typed.type]
        beside = self.names.hashes[0][top.keys[held[top.parents]]]
        twice = [name for name, lane in zip(names, _name_hashes(names)[0], strict=True) if (beside == lane).any()]
        if twice:
            raise ValueError(f"a variant with field {twice[0]} in its value and in a typed column")
        payloads = top.payloads
        return Payloads(kinds, payloads.counts[held], payloads.low[held], payloads.high[held], pa.nulls(0))

    def _object(self, rows: Numbers, typed: pa.StructArray, rest: Payloads, has_rest: Flags) -> Payloads:
        names = [field.name for field in typed.type]
        if len(set(names)) < len(names):
            raise ValueError(f"a variant shredded into two fields of one name: {', '.join(names)}")
        payloads = Payloads.of(OBJECT, len(rows))
        payloads.counts[has_rest], payloads.low[has_rest], payloads.high[has_rest] = rest.counts, rest.low, rest.high
        for name, field, *key in zip(names, typed.flatten(), *_name_hashes(names), strict=True):
            values = self.hashes(rows, *field_parts(name, field))
            there, lanes = values.there, [np.full(np.count_nonzero(values.there), word) for word in key]
            first, second = _entries((values.first[there], values.second[there]), lanes)
            payloads.counts[there] += np.uint64(1)
            payloads.low[there] += first
            payloads.high[there] += second
        return payloads

    def _array(self, rows: Numbers, typed: ListArray) -> Payloads:
        offsets = typed.offsets.to_numpy().astype(np.int64)
        counts = np.diff(offsets)
        items = typed.values.slice(offsets[0], offsets[-1] - offsets[0])
        parents = np.repeat(np.arange(len(rows)), counts)
        places = np.arange(len(parents)) - (offsets[:-1] - offsets[0])[parents]
        values = self.hashes(rows[parents], *field_parts("of an array", items))
        require(values.there, lambda at: f"a variant array without a value at {places[at]}")
        payloads = Payloads.of(ARRAY, len(rows))
        payloads.counts[:] = counts
        keys = [places.astype(np.uint64), np.zeros(len(places), np.uint64)]
        for lane, sums in zip(
            _entries((values.first, values.second), keys), (payloads.low, payloads.high), strict=True
        ):
            np.add.at(sums, parents, lane)
        return payloads


def _require_typed(kinds: Kinds, typed: Array) -> None:
    """Raise ValueError for an object or array among values that are not in the typed column, if that one is for it."""
    for kind, name, arrays in ((OBJECT, "object", pa.StructArray), (ARRAY, "array", _LISTS)):
        if isinstance(typed, arrays) and (kinds == kind).any():
            raise ValueError(f"a variant with an {name} in its value, and none in its typed column")


def _valid(column: Array | None, rows: int) -> Flags:
    if column is None:
        return np.zeros(rows, np.bool_)
    return column.is_valid().to_numpy(zero_copy_only=False)


def _hashes(payloads: Payloads) -> Hashes:
    parts = [pa.array(each) for each in (payloads.kinds, payloads.counts, payloads.low, payloads.high)]
    return joined(flat_hash_blocks([payloads.texts, *parts], len(payloads.kinds)))


def _entries(values: Hashes, keys: Sequence[Words]) -> Hashes:
    """The hashes of values with their names or indexes."""
    return joined(flat_hash_blocks([pa.array(each) for each in (*values, *keys)], len(values[0])))


def _name_hashes(names: Sequence[str]) -> Hashes:
    texts = pa.array([name.encode() for name in names], pa.binary_view())
    return joined(flat_hash_blocks([texts], len(names)))


def _require_once(parents: Numbers, first: Words, second: Words) -> None:
    """Raise ValueError for an object with two values of one name."""
    # Sorting one word is three times as fast as sorting all, and finds every candidate.
    words = np.sort(first ^ parents.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    if not (words[1:] == words[:-1]).any():
        return
    order = np.lexsort((second, first, parents))
    sorted_parts = [part[order] for part in (parents, first, second)]
    if np.logical_and.reduce([part[1:] == part[:-1] for part in sorted_parts]).any():
        raise ValueError("a variant object with two fields of one name")
