"""Rows of one key, in the order of their sequence -> the row that the merge engine makes of them.

All keys are folded at once, one row of each at a time. A key has at most one row per sorted run, so the number of steps
is that of the runs. Follows PartialUpdateMergeFunction, AggregateMergeFunction and the classes of C/mergetree/compact/
aggregate in Paimon 2.0.0.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.data.columns import DELETE_KIND, KIND, RETRACT_KINDS
from nightkeep.formats.paimon.metadata.merge_engine import RETRACTABLE, FieldRule, Function, MergeEngine, MergeRules
from nightkeep.formats.paimon.rewrite.sums import Sums
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.key_order import encode
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import Array, ChunkedArray

_INSERT = 0
_NONE = -1


def fold(rows: pa.Table, starts: Rows, rules: MergeRules, *, keeps_kinds: bool = False) -> pa.Table:
    """One row per key, of the same columns: those of `rules.fields` folded, kind +I, the sequence number of the last
    row that counts, every other column that row's. Keys whose result is a delete are left out.

    `rows` are sorted by key and then by sequence; key i has the rows from `starts[i]` to the next start. With
    `keeps_kinds` the only row of a key keeps its kind, as where Java merges without a lookup
    (ReducerMergeFunctionWrapper). Raises ValueError for a retract where the engine allows none, and OverflowError for a
    sum beyond its type.
    """
    folding = _Fold(rows, len(starts), rules)
    sizes = np.diff(np.append(starts, rows.num_rows))
    for rank in range(int(sizes.max(initial=0))):
        keys = np.flatnonzero(sizes > rank)
        folding.add(keys, starts[keys] + rank)
    return folding.result(sizes == 1 if keeps_kinds else np.zeros(len(starts), np.bool_))


class _Fold:
    """The state of each key, and of each column of each key, while rows come in order."""

    def __init__(self, rows: pa.Table, keys: int, rules: MergeRules) -> None:
        self._rows, self._rules, self._kinds = rows, rules, rows.column(KIND).to_numpy()
        self._retracts: Flags = np.isin(self._kinds, RETRACT_KINDS)
        self._deletes: Flags = self._kinds == DELETE_KIND
        self._columns = {name: _state(rule, name, rows.column(name), keys) for name, rule in rules.fields.items()}
        self._begun, self._inserted, self._removed = (np.zeros(keys, np.bool_) for _ in range(3))
        self._last = np.full(keys, _NONE, np.int64)

    def add(self, keys: Rows, rows: Rows) -> None:
        """The next row of each of `keys`, which ascend."""
        match self._rules.engine:
            case MergeEngine.PARTIAL_UPDATE:
                self._update(keys, rows)
            case MergeEngine.AGGREGATION:
                self._aggregate(keys, rows)
            case MergeEngine.DEDUPLICATE:
                raise AssertionError("a table that keeps whole rows has no rules to fold by")
            case engine:
                assert_never(engine)

    def _update(self, keys: Rows, rows: Rows) -> None:
        self._removed[keys] = False
        out = self._retracts[rows]
        if out.any():
            self._retract_update(keys[out], rows[out])
        keys, rows = keys[~out], rows[~out]
        self._insert(keys, rows)
        self._inserted[keys] = True
        self._begun[keys] = True

    def _retract_update(self, keys: Rows, rows: Rows) -> None:
        # The first row of a key gives the values that stand until others come, even if its kind is ignored.
        first = ~self._begun[keys]
        self._replace(keys[first], rows[first])
        self._begun[keys] = True
        if self._rules.ignores_deletes:
            return
        if not self._rules.removes_on_delete:
            raise ValueError(
                "expected no row of kind -U or -D in a partial update, found one; set ignore-delete or "
                "partial-update.remove-record-on-delete"
            )
        self._last[keys] = rows
        gone = self._deletes[rows]
        self._removed[keys] = gone
        self._replace(keys[gone], rows[gone])

    def _aggregate(self, keys: Rows, rows: Rows) -> None:
        self._last[keys] = rows
        gone = self._deletes[rows] & self._rules.removes_on_delete
        self._removed[keys] = gone
        self._inserted[keys] = True
        self._replace(keys[gone], rows[gone])
        out = self._retracts[rows] & ~gone
        for column in self._columns.values() if out.any() else ():
            column.retract(keys[out], rows[out])
        stays = ~out & ~gone
        self._insert(keys[stays], rows[stays])

    def _insert(self, keys: Rows, rows: Rows) -> None:
        self._last[keys] = rows
        for column in self._columns.values():
            column.add(keys, rows)

    def _replace(self, keys: Rows, rows: Rows) -> None:
        for column in self._columns.values() if len(keys) else ():
            column.replace(keys, rows)

    def result(self, keeps_kind: Flags) -> pa.Table:
        kept = np.flatnonzero(self._inserted & ~self._removed)
        last = self._last[kept]
        kinds = np.where(keeps_kind[kept], self._kinds[last], np.int8(_INSERT))
        columns: dict[str, ChunkedArray] = {}
        for name in self._rows.column_names:
            if name == KIND:
                columns[name] = pa.chunked_array([kinds])
            elif name in self._columns:
                columns[name] = self._columns[name].values(kept)
            else:
                columns[name] = self._rows.column(name).take(last)
        return pa.table(columns, schema=self._rows.schema)


def _state(rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> _Chosen | _Sum:
    """One column's value for each key."""
    if rule.function is Function.SUM:
        return _Sum(rule, name, column, keys)
    return _Chosen(rule, name, column, keys)


class _Chosen:
    """A value is that of one of the key's rows: `_at` has its place, _NONE for null."""

    def __init__(self, rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> None:
        self._rule, self._name, self._column = rule, name, column
        self._valid: Flags = pc.is_valid(column).to_numpy()
        self._at = np.full(keys, _NONE, np.int64)
        self._seen = np.zeros(keys, np.bool_)
        self._rank = _ranks(column) if rule.function in _BY_RANK else None

    def add(self, keys: Rows, rows: Rows) -> None:
        """The next row of each key is an insert."""
        taken = self._taken(keys, rows)
        self._at[keys[taken]] = rows[taken]

    def _taken(self, keys: Rows, rows: Rows) -> Flags:
        """Which of the rows give their keys a new value."""
        match self._rule.function:
            case Function.LAST_VALUE | Function.KEY:
                return np.ones(len(rows), np.bool_)
            case Function.LAST_NON_NULL_VALUE:
                return self._valid[rows]
            case Function.FIRST_VALUE:
                return self._first(keys, np.ones(len(rows), np.bool_))
            case Function.FIRST_NON_NULL_VALUE:
                return self._first(keys, self._valid[rows])
            case _:
                return self._beyond(keys, rows)

    def _first(self, keys: Rows, able: Flags) -> Flags:
        first = able & ~self._seen[keys]
        self._seen[keys] |= able
        return first

    def _beyond(self, keys: Rows, rows: Rows) -> Flags:
        """Rows whose value is greater, or less, than the one held. A null neither replaces a value nor stays."""
        assert self._rank is not None
        held = self._at[keys]
        empty = (held == _NONE) | ~self._valid[held]
        step = self._rank[rows] - self._rank[held]
        greater = step > 0 if self._rule.function in (Function.MAX, Function.BOOL_OR) else step < 0
        taken: Flags = empty | (self._valid[rows] & greater)
        return taken

    def retract(self, keys: Rows, rows: Rows) -> None:
        """The next row of each key is a retract. Raises ValueError where the function has no inverse."""
        if self._rule.ignores_retracts:
            return
        match self._rule.function:
            case Function.KEY:
                self._at[keys] = rows
            case Function.LAST_VALUE:
                self._at[keys] = _NONE
            case Function.LAST_NON_NULL_VALUE:
                self._at[keys[self._valid[rows]]] = _NONE
            case function:
                assert function not in RETRACTABLE
                raise ValueError(
                    f"expected no row of kind -U or -D for column {self._name}, whose function {function} cannot take "
                    f"a value back; set fields.{self._name}.ignore-retract"
                )

    def replace(self, keys: Rows, rows: Rows) -> None:
        """The value of each key becomes that of its row, null or not."""
        self._at[keys] = rows

    def values(self, keys: Rows) -> ChunkedArray:
        at = self._at[keys]
        places: Array = pa.array(at, mask=at == _NONE)
        return self._column.take(places)


_BY_RANK = (Function.MAX, Function.MIN, Function.BOOL_AND, Function.BOOL_OR)


def _ranks(column: ChunkedArray) -> npt.NDArray[np.int64]:
    """Numbers that compare like the values, in Paimon's order of keys; of a null, any number."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    filled = pc.fill_null(column, column.drop_null()[0]) if column.null_count else column
    (encoded,) = encode(pa.table({"value": filled}))
    words = [encoded.word(k, np.arange(len(column))) for k in range(len(encoded.words))]
    order = np.lexsort(tuple(reversed(words)))
    changes = np.zeros(len(column), np.int64)
    for word in words:
        changes[1:] |= word[order][1:] != word[order][:-1]
    ranks = np.empty(len(column), np.int64)
    ranks[order] = np.cumsum(changes)
    return ranks


class _Sum:
    """A value is computed: the sum of inserts without that of retracts; null as long as all were null."""

    def __init__(self, rule: FieldRule, name: str, column: ChunkedArray, keys: int) -> None:
        self._rule = rule
        self._valid: Flags = pc.is_valid(column).to_numpy()
        self._sums = Sums(name, column, keys)

    def add(self, keys: Rows, rows: Rows) -> None:
        able = self._valid[rows]
        self._sums.add(keys[able], rows[able])

    def retract(self, keys: Rows, rows: Rows) -> None:
        if not self._rule.ignores_retracts:
            able = self._valid[rows]
            self._sums.subtract(keys[able], rows[able])

    def replace(self, keys: Rows, rows: Rows) -> None:
        able = self._valid[rows]
        self._sums.clear(keys)
        self._sums.add(keys[able], rows[able])

    def values(self, keys: Rows) -> ChunkedArray:
        return self._sums.values(keys)
