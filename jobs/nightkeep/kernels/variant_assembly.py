"""A column of shredded variants -> the same values as plain variants, with the names that are stored.

Parquet's "Variant Shredding", from the leaves up: typed columns become encoded values, then arrays and objects are put
together of encoded values, which are copied as they are. Fields are in the order of their names in UTF-8, as the
encoding demands. The gate has no use of this module: it adds up hashes of what is stored (variant_hash).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import BYTE_BITS, byte_spans
from nightkeep.kernels.variant_blocks import field_parts, row_blocks, value_parts
from nightkeep.kernels.variant_encoding import binary_of, encoded_scalars, little_endian
from nightkeep.kernels.variant_names import VariantNames, require, variant_names
from nightkeep.kernels.variant_nodes import NodeSpans, level_of
from nightkeep.kernels.variant_scalars import OBJECT, Numbers, byte_views
from nightkeep.model.arrow_types import Array, ListArray
from nightkeep.model.variant_type import VARIANT

_OBJECT_BASIC, _ARRAY_BASIC, _BASIC_BITS = 2, 3, 2
_SMALL_COUNT: Final = 255
_LISTS: Final = (pa.ListArray, pa.LargeListArray)
_COUNT_BYTES: Final = 4


def assembled(column: pa.StructArray) -> pa.StructArray:
    """The values of a shredded column as VARIANT, with their nulls.

    Raises ValueError for bytes that are no variant, for a shredded value that readers may take for different ones, and
    for a typed field whose name the stored names lack.
    """
    held = column.is_valid()
    valid = column if column.null_count == 0 else column.filter(held)
    blocks = [_assembled(block) for block in row_blocks(valid)]
    values = pa.concat_arrays(blocks) if blocks else pa.array([], pa.binary())
    metadata = column.field("metadata").fill_null(b"")
    if column.null_count == 0:
        return pa.StructArray.from_arrays([metadata, values], fields=list(VARIANT))
    places = np.cumsum(held.to_numpy(zero_copy_only=False)) - 1
    whole = values.take(pa.array(places, mask=~held.to_numpy(zero_copy_only=False))).fill_null(b"")
    return pa.StructArray.from_arrays([metadata, whole], fields=list(VARIANT), mask=column.is_null())


def _assembled(column: pa.StructArray) -> Array:
    names = variant_names(column.field("metadata"))
    values = _Assembly.of(names).values(np.arange(len(column)), *value_parts(column))
    _require_all(values, "a variant without a value and without a typed value")
    return values


def _require_none(values: Array, basic: int, name: str) -> None:
    """Values of this kind are in the typed column. Some readers look for what they hold there alone."""
    data, begins, ends = byte_spans(values)
    headers = data[begins[ends > begins]] & (1 << _BASIC_BITS) - 1
    if (headers == basic).any():
        raise ValueError(f"a variant with an {name} in its value, and none in its typed column")


def _require_all(values: Array, otherwise: str) -> None:
    if values.null_count:
        raise ValueError(otherwise)


@dataclass(frozen=True, slots=True)
class _Fields:
    """Fields of objects: the object of each, the place of its name in the dictionaries, and its encoded value."""

    parents: Numbers
    names: Numbers
    values: Array


@dataclass(frozen=True, slots=True)
class _Assembly:
    """Encodes the values of one block of variants. `rows` are the rows of the block that values belong to."""

    names: VariantNames
    ranks: Numbers
    """The place of each name in the order of names."""

    @staticmethod
    def of(names: VariantNames) -> _Assembly:
        distinct = names.names.cast(pa.binary()).dictionary_encode()
        order = pc.sort_indices(distinct.dictionary).to_numpy()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return _Assembly(names, ranks[distinct.indices.to_numpy()])

    def values(self, rows: Numbers, value: Array | None, typed: Array | None) -> Array:
        """Encoded values as binary, null where there is none."""
        plain = pa.nulls(len(rows), pa.binary()) if value is None else value.cast(pa.binary())
        for basic, name, arrays in ((_OBJECT_BASIC, "object", pa.StructArray), (_ARRAY_BASIC, "array", _LISTS)):
            if isinstance(typed, arrays):
                _require_none(plain.filter(typed.is_null()).drop_null(), basic, name)
        if typed is None or typed.null_count == len(typed):
            return plain
        is_typed = typed.is_valid().to_numpy(zero_copy_only=False)
        inner, inner_rows = typed.filter(pa.array(is_typed)), rows[is_typed]
        rest = plain.filter(pa.array(is_typed))
        if isinstance(inner, pa.StructArray):
            found = self._objects(inner_rows, inner, rest)
        elif rest.null_count < len(rest):
            raise ValueError(f"a variant with a value beside one of type {inner.type}")
        elif isinstance(inner, _LISTS):
            found = self._arrays(inner_rows, cast(ListArray, inner))
        else:
            found = encoded_scalars(inner)
        places = np.where(is_typed, len(plain) + np.cumsum(is_typed) - 1, np.arange(len(plain)))
        return pa.concat_arrays([plain, found]).take(places)

    def _objects(self, rows: Numbers, typed: pa.StructArray, rest: Array) -> Array:
        fields = [self._field(rows, field.name, part) for field, part in zip(typed.type, typed.flatten(), strict=True)]
        fields.append(self._rest(rows, rest, [field.name for field in typed.type]))
        parents, names = (np.concatenate([getattr(each, part) for each in fields]) for part in ("parents", "names"))
        order = np.lexsort((self.ranks[names], parents))
        parents, names = parents[order], names[order]
        values = pa.concat_arrays([each.values for each in fields]).take(order)
        ids = names - self.names.firsts[self.names.codes[rows[parents]]]
        return _containers(len(rows), parents, values, ids)

    def _field(self, rows: Numbers, name: str, part: Array) -> _Fields:
        values = self.values(rows, *field_parts(name, part))
        there = values.is_valid()
        parents = np.flatnonzero(there.to_numpy(zero_copy_only=False))
        places = self._places_of(name)[self.names.codes[rows[parents]]]
        require(places >= 0, lambda at: f"a variant with a typed field {name}, which its dictionary of names lacks")
        return _Fields(parents, places, values.filter(there))

    def _places_of(self, name: str) -> Numbers:
        """The place of a name in each dictionary, -1 where it is not."""
        found = np.full(len(self.names.firsts), -1, np.int64)
        held = self.names.names.cast(pa.binary())
        at = np.flatnonzero(pc.equal(held, pa.scalar(name.encode(), pa.binary())).to_numpy(zero_copy_only=False))
        found[np.searchsorted(self.names.firsts, at, side="right") - 1] = at
        return found

    def _rest(self, rows: Numbers, rest: Array, typed: Sequence[str]) -> _Fields:
        """The fields of objects that are not typed. Raises ValueError for one of a name that is."""
        held = rest.is_valid()
        owners = np.flatnonzero(held.to_numpy(zero_copy_only=False))
        data, begins, ends = byte_spans(rest.filter(held))
        spans = NodeSpans(rows[owners], begins.astype(np.int64), ends.astype(np.int64))
        if not len(owners):
            return _Fields(owners, owners, pa.array([], pa.binary()))
        top = level_of(data, spans, self.names)
        require(top.payloads.kinds == OBJECT, lambda at: "a variant with a value beside typed fields that is no object")
        twice = [name for name in typed if np.isin(top.keys, self._places_of(name)).any()]
        if twice:
            raise ValueError(f"a variant with field {twice[0]} in its value and in a typed column")
        starts = top.children.starts
        sizes = level_of(data, top.children, self.names).sizes
        values = byte_views(data, starts, sizes, np.arange(len(starts)), len(starts)).cast(pa.binary())
        return _Fields(owners[top.parents], top.keys, values)

    def _arrays(self, rows: Numbers, typed: ListArray) -> Array:
        offsets = typed.offsets.to_numpy().astype(np.int64)
        items = typed.values.slice(offsets[0], offsets[-1] - offsets[0])
        parents = np.repeat(np.arange(len(rows)), np.diff(offsets))
        values = self.values(rows[parents], *field_parts("of an array", items))
        _require_all(values, "a variant array without a value")
        return _containers(len(rows), parents, values, None)


def _containers(rows: int, parents: Numbers, values: Array, ids: Numbers | None) -> Array:
    """Objects of fields with these ids of names, or arrays, of encoded values. Those of one parent are together."""
    data, begins, ends = byte_spans(values)
    lengths = (ends - begins).astype(np.int64)
    counts = np.bincount(parents, minlength=rows)
    ends_of = np.cumsum(counts)
    sums = np.append(0, np.cumsum(lengths))
    totals = sums[ends_of] - sums[ends_of - counts]
    within = sums[:-1] - sums[ends_of - counts][parents]
    places = np.arange(len(parents)) - (ends_of - counts)[parents]
    widths, id_widths = _width(totals), np.zeros(rows, np.int64)
    is_large = counts > _SMALL_COUNT
    header = _ARRAY_BASIC | (widths - 1 | is_large << 2) << _BASIC_BITS
    if ids is not None:
        most = np.zeros(rows, np.int64)
        np.maximum.at(most, parents, ids)
        id_widths = _width(most)
        header = _OBJECT_BASIC | (widths - 1 | id_widths - 1 << 2 | is_large << 4) << _BASIC_BITS
    count_widths = np.where(is_large, _COUNT_BYTES, 1)
    heads = 1 + count_widths + counts * id_widths + (counts + 1) * widths
    stops = np.cumsum(heads + totals)
    starts = stops - heads - totals
    out = np.zeros(int(stops[-1]) if rows else 0, np.uint8)
    out[starts] = header
    little_endian(out, starts + 1, counts, count_widths)
    at_ids = starts + 1 + count_widths
    if ids is not None:
        little_endian(out, at_ids[parents] + places * id_widths[parents], ids, id_widths[parents])
    at_offsets = at_ids + counts * id_widths
    little_endian(out, at_offsets[parents] + places * widths[parents], within, widths[parents])
    little_endian(out, at_offsets + counts * widths, totals, widths)
    first = int(begins[0]) if len(begins) else 0
    shifts = (starts + heads)[parents] + within - sums[:-1]
    out[np.repeat(shifts, lengths) + np.arange(sums[-1])] = data[first : first + sums[-1]]
    return binary_of(out, np.append(0, stops))


def _width(largest: Numbers) -> Numbers:
    """How many bytes each number takes, at least one."""
    widths = np.ones(len(largest), np.int64)
    for byte in (1, 2, 3):
        widths += largest >> BYTE_BITS * byte > 0
    return widths
