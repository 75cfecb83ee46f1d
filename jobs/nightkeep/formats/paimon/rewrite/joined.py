"""Texts of one column -> the texts of each key, joined, as `listagg` does: blank ones are skipped.

Source: FieldListaggAgg of Paimon 2.0.0. Rows are only collected; one pass at the end sorts and joins them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.metadata.merge_engine import BLANK, FieldRule, refuse_retract
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import Array, ChunkedArray, Datum

_NONE = -1


class Joined:
    """Implements ColumnFold. A part is a row's text; `_alone` is the row whose value stands while there is no part."""

    def __init__(self, rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> None:
        self._rule, self._name = rule, name
        self._column = column
        self._is_part = ~_is_blank(column)
        self._alone = np.full(keys, _NONE, np.int64)
        self._filled = np.zeros(keys, np.bool_)
        self._since = np.zeros(keys, np.int64)
        self._step = 0
        self._taken: list[tuple[Rows, Rows, int]] = []

    def add(self, keys: Rows, rows: Rows) -> None:
        self._collect(keys, rows, at_end=True)

    def add_older(self, keys: Rows, rows: Rows) -> None:
        # Java returns the older value as it is where the newer one is blank.
        alone = ~self._filled[keys]
        self._alone[keys[alone]] = rows[alone]
        self._collect(keys, rows, at_end=False)

    def _collect(self, keys: Rows, rows: Rows, *, at_end: bool) -> None:
        self._step += 1
        parts = self._is_part[rows]
        self._filled[keys[parts]] = True
        self._taken.append((keys[parts], rows[parts], self._step if at_end else -self._step))

    def retract(self, keys: Rows, rows: Rows) -> None:
        if not self._rule.ignores_retracts and len(keys):
            refuse_retract(self._rule, self._name)

    retract_older = retract

    def replace(self, keys: Rows, rows: Rows) -> None:
        self._since[keys] = self._step + 1
        self._alone[keys] = rows
        self._filled[keys] = False
        self._collect(keys, rows, at_end=True)

    def values(self, keys: Rows) -> ChunkedArray:
        alone = self._alone[keys]
        held = self._column.take(_places(alone))
        owners, rows = self._parts(keys)
        if not len(rows):
            return held
        texts: Array = self._column.take(_places(rows)).combine_chunks()
        first = np.diff(owners, prepend=-1) != 0
        if self._rule.distinct:
            owners, texts = self._distinct(owners, texts, first)
            first = np.diff(owners, prepend=-1) != 0
        ends = np.append(np.flatnonzero(first), len(owners))
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), texts)
        joined: Datum = pc.binary_join(lists, self._rule.delimiter)
        place = np.full(len(keys), _NONE, np.int64)
        place[owners[ends[:-1]]] = np.arange(len(joined))
        whole: ChunkedArray = pc.coalesce(pa.chunked_array([joined.take(_places(place))]), held)
        return whole

    def _parts(self, keys: Rows) -> tuple[Rows, Rows]:
        """The parts of `keys` in the order of their text: the place of the key in `keys`, and the row."""
        if not self._taken:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        at = np.full(len(self._alone), _NONE, np.int64)
        at[keys] = np.arange(len(keys))
        owners = np.concatenate([some for some, _, _ in self._taken])
        rows = np.concatenate([some for _, some, _ in self._taken])
        steps = np.concatenate([np.full(len(some), step, np.int64) for some, _, step in self._taken])
        live = (np.abs(steps) >= self._since[owners]) & (at[owners] != _NONE)
        owners, rows, steps = at[owners[live]], rows[live], steps[live]
        order = np.lexsort((steps, owners))
        return owners[order], rows[order]

    def _distinct(self, owners: Rows, texts: Array, first: Flags) -> tuple[Rows, Array]:
        """Each key's first text as it is, then every piece between delimiters that was not there before it."""
        pieces: Array = pc.split_pattern(texts, self._rule.delimiter)
        of_text: Rows = pc.list_parent_indices(pieces).to_numpy()
        flat: Array = pc.list_flatten(pieces)
        codes = flat.dictionary_encode().indices.to_numpy().astype(np.int64)
        of_key = owners[of_text]
        _, fresh = np.unique(of_key * (int(codes.max()) + 1) + codes, return_index=True)
        kept = np.zeros(len(flat), np.bool_)
        kept[fresh] = True
        kept &= ~_is_blank(flat)
        kept |= first[of_text]
        return of_key[kept], flat.filter(pa.array(kept))


def _is_blank(texts: Array | ChunkedArray) -> Flags:
    """Whether a text is null or blank."""
    blank: Datum = pc.match_substring_regex(texts, BLANK)
    flags: Flags = np.asarray(pc.or_kleene(blank, texts.is_null()))
    return flags


def _places(rows: Rows) -> Array:
    """Null for _NONE."""
    places: Array = pa.array(rows, mask=rows == _NONE)
    return places
