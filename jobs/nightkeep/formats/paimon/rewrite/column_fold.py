"""One column of rows -> its value for each key, while the rows come in order.

Follows the classes of C/mergetree/compact/aggregate in Paimon 2.0.0. A row of a sequence group may be older than the
group's last one: `add_older` and `retract_older` take those.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.metadata.merge_engine import OF_ELEMENTS, FieldRule, Function, refuse_retract
from nightkeep.formats.paimon.rewrite.element_fold import ElementFold
from nightkeep.formats.paimon.rewrite.joined import Joined
from nightkeep.formats.paimon.rewrite.row_order import RowOrder
from nightkeep.formats.paimon.rewrite.totals import ColumnTotals
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import Array, ChunkedArray

_NONE = -1


class ColumnFold(Protocol):
    """`keys` are unique, `rows` are one row of each. Values start as null."""

    def add(self, keys: Rows, rows: Rows) -> None:
        """The next row of each key is an insert."""

    def add_older(self, keys: Rows, rows: Rows) -> None:
        """It is an insert that belongs before the rows of the key's sequence group (FieldAggregator.aggReversed)."""

    def retract(self, keys: Rows, rows: Rows) -> None:
        """It is a retract. Raises ValueError where the function has no inverse."""

    def retract_older(self, keys: Rows, rows: Rows) -> None:
        """It is a retract that is older than the key's sequence group."""

    def replace(self, keys: Rows, rows: Rows) -> None:
        """The value of each key becomes that of its row, null or not."""

    def values(self, keys: Rows) -> ChunkedArray:
        """The value of each of `keys`."""


def column_fold(rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> ColumnFold:
    """The fold of `column` for keys numbered from 0 to `keys`."""
    match rule.function:
        case Function.SUM | Function.PRODUCT:
            return _Total(rule, name, column, keys)
        case Function.LISTAGG:
            return Joined(rule, name, column, keys)
        case function if function in OF_ELEMENTS:
            return ElementFold(rule, name, column, keys)
        case _:
            return _Chosen(rule, name, column, keys)


class _Chosen:
    """A value is that of one of the key's rows: `_at` has its place, _NONE for null."""

    def __init__(self, rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> None:
        self._rule, self._name, self._column = rule, name, column
        self._valid: Flags = pc.is_valid(column).to_numpy()
        self._at = np.full(keys, _NONE, np.int64)
        self._seen = np.zeros(keys, np.bool_)
        self._order = RowOrder([column]) if rule.function in _EXTREMES else None

    def add(self, keys: Rows, rows: Rows) -> None:
        taken = self._taken(keys, rows)
        self._at[keys[taken]] = rows[taken]

    def _taken(self, keys: Rows, rows: Rows) -> Flags:
        """Which of the rows give their keys a new value."""
        match self._rule.function:
            case Function.LAST_NON_NULL_VALUE:
                return self._valid[rows]
            case Function.FIRST_VALUE:
                return self._first(keys, np.ones(len(rows), np.bool_))
            case Function.FIRST_NON_NULL_VALUE:
                return self._first(keys, self._valid[rows])
            case Function.MAX | Function.MIN | Function.BOOL_AND | Function.BOOL_OR:
                return self._beyond(keys, rows)
            case _:
                return np.ones(len(rows), np.bool_)

    def _first(self, keys: Rows, able: Flags) -> Flags:
        first = able & ~self._seen[keys]
        self._seen[keys] |= able
        return first

    def _beyond(self, keys: Rows, rows: Rows) -> Flags:
        """Rows whose value is greater, or less, than the one held. A null neither replaces a value nor stays."""
        assert self._order is not None
        held = self._at[keys]
        signs = self._order.compare(rows, held)
        greater = signs > 0 if self._rule.function in (Function.MAX, Function.BOOL_OR) else signs < 0
        taken: Flags = self._is_null(keys) | (self._valid[rows] & greater)
        return taken

    def _is_null(self, keys: Rows) -> Flags:
        held = self._at[keys]
        none: Flags = (held == _NONE) | ~self._valid[held]
        return none

    def add_older(self, keys: Rows, rows: Rows) -> None:
        match self._rule.function:
            case Function.MAX | Function.MIN | Function.BOOL_AND | Function.BOOL_OR:
                self.add(keys, rows)
            case Function.LAST_NON_NULL_VALUE:
                taken = self._is_null(keys) & self._valid[rows]
                self._at[keys[taken]] = rows[taken]
            case Function.FIRST_VALUE:
                # The first row of a key only begins: Java has nothing yet that it could come before.
                taken = self._seen[keys]
                self._at[keys[taken]] = rows[taken]
                self._seen[keys] = True
            case _:
                return

    def retract(self, keys: Rows, rows: Rows) -> None:
        if self._rule.ignores_retracts:
            return
        match self._rule.function:
            case Function.KEY | Function.SEQUENCE:
                self._at[keys] = rows
            case Function.LAST_VALUE | Function.OF_GROUP:
                self._at[keys] = _NONE
            case Function.LAST_NON_NULL_VALUE:
                self._at[keys[self._valid[rows]]] = _NONE
            case _ if len(keys):
                refuse_retract(self._rule, self._name)

    def retract_older(self, keys: Rows, rows: Rows) -> None:
        if self._rule.function not in (Function.SEQUENCE, Function.OF_GROUP):
            self.retract(keys, rows)

    def replace(self, keys: Rows, rows: Rows) -> None:
        self._at[keys] = rows

    def values(self, keys: Rows) -> ChunkedArray:
        at = self._at[keys]
        places: Array = pa.array(at, mask=at == _NONE)
        return self._column.take(places)


_EXTREMES = (Function.MAX, Function.MIN, Function.BOOL_AND, Function.BOOL_OR)


class _Total:
    """A value is computed: inserts added or multiplied, retracts taken away; null as long as all were null."""

    def __init__(self, rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> None:
        self._rule = rule
        self._valid: Flags = pc.is_valid(column).to_numpy()
        self._totals = ColumnTotals(name, column, keys)
        is_sum = rule.function is Function.SUM
        self._take = self._totals.add if is_sum else self._totals.multiply
        self._take_back = self._totals.subtract if is_sum else self._totals.divide

    def add(self, keys: Rows, rows: Rows) -> None:
        able = self._valid[rows]
        self._take(keys[able], rows[able])

    def retract(self, keys: Rows, rows: Rows) -> None:
        if not self._rule.ignores_retracts:
            able = self._valid[rows]
            self._take_back(keys[able], rows[able])

    # Sums and products do not depend on which of two rows comes first.
    add_older = add
    retract_older = retract

    def replace(self, keys: Rows, rows: Rows) -> None:
        able = self._valid[rows]
        self._totals.clear(keys)
        self._totals.add(keys[able], rows[able])

    def values(self, keys: Rows) -> ChunkedArray:
        return self._totals.values(keys)
