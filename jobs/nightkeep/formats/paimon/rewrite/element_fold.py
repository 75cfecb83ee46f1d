"""Arrays or maps of one column -> the array or map of each key, as `collect`, `merge_map` and nested updates make it.

Source: FieldCollectAgg, FieldMergeMapAgg, FieldNestedUpdateAgg and FieldNestedPartialUpdateAgg of Paimon 2.0.0. Where
Java has the order of a hash table, elements are in the order in which they came first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, refuse_retract
from nightkeep.formats.paimon.rewrite.element_codes import element_codes
from nightkeep.formats.paimon.rewrite.element_lists import Elements, spread, turn_within
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import Array, ChunkedArray, Datum

_NONE = -1
_LISTS: Any = pa.ListArray
_MAPS: Any = pa.MapArray


class ElementFold:
    """Implements ColumnFold. `_held` are elements by key, `_there` the keys whose value is not null."""

    def __init__(self, rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> None:
        assert rule.elements is not None
        self._rule, self._name, self._elements, self._kind = rule, name, rule.elements, column.type
        lists: Any = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
        self._valid: Flags = np.asarray(lists.is_valid())
        offsets = lists.offsets.to_numpy().astype(np.int64)
        self._starts, self._counts = offsets[:-1], np.where(self._valid, np.diff(offsets), 0)
        self._values: Array = _entries(lists) if pa.types.is_map(column.type) else lists.values
        self._codes = element_codes(rule, name, self._values)
        partial = rule.function is Function.NESTED_PARTIAL_UPDATE
        self._fields: list[Flags] = []
        if partial:
            rows: Any = self._values
            self._fields = [np.asarray(child.is_valid()) for child in rows.flatten()]
        self._held = Elements.none(1 + len(self._fields))
        self._there = np.zeros(keys, np.bool_)

    def add(self, keys: Rows, rows: Rows) -> None:
        self._combine(keys, (self._held.of(keys), self._there[keys]), (self._of_rows(rows), self._valid[rows]))

    def add_older(self, keys: Rows, rows: Rows) -> None:
        held, older = (self._held.of(keys), self._there[keys]), (self._of_rows(rows), self._valid[rows])
        # FieldCollectAgg.aggReversed puts older elements last, and FieldIgnoreRetractAgg does not call it.
        if self._rule.function is Function.COLLECT and not self._rule.ignores_retracts:
            self._combine(keys, held, older)
        else:
            self._combine(keys, older, held)

    def retract(self, keys: Rows, rows: Rows) -> None:
        if self._rule.ignores_retracts:
            return
        if self._rule.function is Function.NESTED_PARTIAL_UPDATE:
            if len(keys):
                refuse_retract(self._rule, self._name)
            return
        able = self._there[keys] & self._valid[rows]
        if self._rule.function is not Function.NESTED_UPDATE:
            able &= self._counts[rows] > 0
        keys, rows = keys[able], rows[able]
        self._put(keys, self._left(self._held.of(keys), self._of_rows(rows)))

    retract_older = retract

    def replace(self, keys: Rows, rows: Rows) -> None:
        self._there[keys] = self._valid[rows]
        self._put(keys, self._of_rows(rows))

    def values(self, keys: Rows) -> ChunkedArray:
        found, none = self._held.of(keys), ~self._there[keys]
        ends = np.append(0, np.cumsum(found.counts(len(keys)))).astype(np.int32)
        # A value is null where its first offset is.
        offsets: Datum = pa.array(ends, mask=np.append(none, [False]))
        kind: Any = self._kind
        elements: Datum = self._taken(found.items)
        if pa.types.is_map(kind):
            made: Datum = _MAPS.from_arrays(offsets, elements.field("key"), elements.field("value"), type=kind)
        else:
            made = _LISTS.from_arrays(offsets, elements, type=kind)
        column: ChunkedArray = pa.chunked_array([made], kind)
        return column

    def _of_rows(self, rows: Rows) -> Elements:
        owner, places = spread(self._starts[rows], self._counts[rows])
        return Elements(owner, np.repeat(places[:, None], 1 + len(self._fields), axis=1))

    def _put(self, keys: Rows, found: Elements) -> None:
        self._held, _ = self._held.without(keys).followed_by(Elements(keys[found.owner], found.items))

    def _combine(self, keys: Rows, left: tuple[Elements, Flags], right: tuple[Elements, Flags]) -> None:
        """`agg(left, right)`: elements, and which keys have a value."""
        every, late = left[0].followed_by(right[0])
        self._there[keys] = left[1] | right[1]
        self._put(keys, self._agg(every, late, left[1], right[1]))

    def _agg(self, every: Elements, late: Flags, has_left: Flags, has_right: Flags) -> Elements:
        match self._rule.function:
            case Function.COLLECT if not self._rule.distinct:
                return every
            case Function.COLLECT:
                stays = ~late & self._elements.rows
                return every.where(stays | (turn_within(self._groups(every)) == 0))
            case Function.MERGE_MAP:
                return self._newest(every, np.zeros(len(late), np.bool_))
            case _:
                # Without a right side the left stays as it is.
                stays = ~has_right[every.owner]
                if self._elements.key:
                    return self._newest(every, stays)
                return every.where(stays | self._within_limit(every, late, len(has_left)))

    def _groups(self, every: Elements) -> Rows:
        """A number that is equal for elements of one key that are the same."""
        same = self._codes.same
        codes: Rows = every.owner * (int(same.max(initial=0)) + 1) + same[every.items[:, 0]]
        return codes

    def _within_limit(self, every: Elements, late: Flags, owners: int) -> Flags:
        """Rows that are not null, up to the limit; nulls of a left side that has so many stay, and count."""
        there = ~self._codes.null[every.items[:, 0]]
        limit = self._elements.limit
        if limit is None:
            return there
        before = every.where(~late).counts(owners)
        full = before >= limit
        turn = np.zeros(len(late), np.int64)
        turn[late & there] = turn_within(every.owner[late & there])
        fits = ~late | (~full[every.owner] & (turn < (limit - before)[every.owner]))
        # A left side that is null has no elements, and is not full unless the limit is 0.
        kept: Flags = fits & (there | (full[every.owner] & ~late))
        return kept

    def _newest(self, every: Elements, stays: Flags) -> Elements:
        """The newest of the elements that are the same, at the index of the first. Elements of `stays` are kept."""
        changes = ~stays & ~self._codes.skipped[every.items[:, 0]]
        some = every.where(changes)
        groups = self._groups(some)
        order = np.lexsort((self._codes.rank[some.items[:, 0]], groups))
        ends = np.flatnonzero(np.diff(groups[order], append=_NONE) != 0)
        winner = order[ends]
        first = np.flatnonzero(turn_within(groups) == 0)
        # Both are one per group: winners by group, firsts by place.
        first = first[np.argsort(groups[first], kind="stable")]
        items = self._partly(some, groups, winner) if self._fields else some.items[winner]
        places = np.flatnonzero(changes)[first]
        at = np.concatenate([np.flatnonzero(stays), places])
        made = Elements(every.owner[at], np.concatenate([every.items[stays], items]))
        order = np.argsort(at, kind="stable")
        return Elements(made.owner[order], made.items[order])

    def _partly(self, some: Elements, groups: Rows, winner: Rows) -> Rows:
        """For each group, the last value of every field that is not null."""
        items = some.items[winner].copy()
        for number, valid in enumerate(self._fields, start=1):
            held = some.items[:, number]
            there = np.flatnonzero((held != _NONE) & valid[held])
            order = there[np.argsort(groups[there], kind="stable")]
            ends = order[np.diff(groups[order], append=_NONE) != 0]
            items[:, number] = _NONE
            items[np.searchsorted(groups[winner], groups[ends]), number] = held[ends]
        return items

    def _left(self, held: Elements, gone: Elements) -> Elements:
        """`retract(held, gone)`."""
        if self._rule.function is Function.NESTED_UPDATE:
            held = self._mapped(held)
            gone = gone.where(~self._codes.skipped[gone.items[:, 0]])
        groups, taken = self._groups(held), self._groups(gone)
        if self._rule.function is Function.COLLECT:
            # Each takes one element back, the first.
            names, times = np.unique(taken, return_counts=True)
            place = np.minimum(np.searchsorted(names, groups), max(len(names) - 1, 0))
            count = np.where(names[place] == groups, times[place], 0) if len(names) else np.zeros(len(groups), np.int64)
            return held.where(turn_within(groups) >= count)
        return held.where(~np.isin(groups, taken))

    def _mapped(self, held: Elements) -> Elements:
        held = held.where(~self._codes.skipped[held.items[:, 0]])
        if not self._elements.key:
            return held
        # The last of rows with one key, whatever its sequence.
        groups = self._groups(held)
        return held.where(turn_within(groups[::-1])[::-1] == 0)

    def _taken(self, items: Rows) -> Array:
        if not self._fields:
            taken: Array = self._values.take(_places(items[:, 0]))
            return taken
        rows: Any = self._values
        children: list[Datum] = [child.take(_places(items[:, n])) for n, child in enumerate(rows.flatten(), 1)]
        mask = pa.array(self._codes.null[items[:, 0]])
        made: Array = pa.StructArray.from_arrays(children, fields=list(rows.type), mask=mask)
        return made


def _entries(maps: Any) -> Array:
    """The entries of maps as structs `key`, `value`, those of null maps included."""
    made: Array = pa.StructArray.from_arrays([maps.keys, maps.items], names=["key", "value"])
    return made


def _places(places: Rows) -> Datum:
    """Null for _NONE."""
    return pa.array(places, mask=places == _NONE)
