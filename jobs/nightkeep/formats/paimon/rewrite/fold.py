"""Rows of one key, in the order of their sequence -> the row that the merge engine makes of them.

All keys are folded at once, one row of each at a time. A key has at most one row per sorted run, so the number of steps
is that of the runs. Follows PartialUpdateMergeFunction and AggregateMergeFunction of Paimon 2.0.0.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import DELETE_KIND, KIND, RETRACT_KINDS
from nightkeep.formats.paimon.metadata.merge_engine import MergeEngine, MergeRules, SequenceGroup
from nightkeep.formats.paimon.rewrite.column_fold import column_fold
from nightkeep.formats.paimon.rewrite.row_order import RowOrder
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import ChunkedArray

_INSERT = 0
_NONE = -1


def fold(
    rows: pa.Table, starts: Rows, rules: MergeRules, *, keeps_kinds: bool = False, keeps_deletes: bool = False
) -> pa.Table:
    """One row per key, of the same columns: those of `rules.fields` folded, kind +I, the sequence number of the last
    row that counts, every other column that row's. Keys whose result is a delete are left out, or are rows of kind -D
    with `keeps_deletes`.

    `rows` are sorted by key and then by sequence; key i has the rows from `starts[i]` to the next start. With
    `keeps_kinds` the only row of a key keeps its kind, as where Java merges without a lookup
    (ReducerMergeFunctionWrapper). Raises ValueError for a retract where the engine allows none, and OverflowError for a
    sum beyond its type.
    """
    folding = _Fold(rows, len(starts), rules)
    sizes = np.diff(np.append(starts, rows.num_rows))
    folding.keep(np.flatnonzero(sizes == 1), starts[sizes == 1])
    for rank in range(int(sizes.max(initial=0))):
        keys = np.flatnonzero((sizes > rank) & ~folding.kept)
        folding.add(keys, starts[keys] + rank)
    if keeps_deletes:
        return folding.every_result(starts + sizes - 1)
    return folding.result(sizes == 1 if keeps_kinds else np.zeros(len(starts), np.bool_))


class _Fold:
    """The state of each key, and of each column of each key, while rows come in order."""

    def __init__(self, rows: pa.Table, keys: int, rules: MergeRules) -> None:
        self._rows, self._rules, self._kinds = rows, rules, rows.column(KIND).to_numpy()
        self._retracts: Flags = np.isin(self._kinds, RETRACT_KINDS)
        self._deletes: Flags = self._kinds == DELETE_KIND
        self._columns = {name: column_fold(rule, name, rows.column(name), keys) for name, rule in rules.fields.items()}
        self._groups = [_Group(group, rows, keys) for group in rules.groups]
        self.kept, self._started, self._inserted, self._removed = (np.zeros(keys, np.bool_) for _ in range(4))
        self._last = np.full(keys, _NONE, np.int64)

    def keep(self, keys: Rows, rows: Rows) -> None:
        """Keep the only row of each of `keys` as it is stored, as readers that merge do. A retract is dropped.

        The merge functions could change the row: a group without sequence would be null, and a blank text of listagg.
        Java's compactions do that, and its readers do not (ReducerMergeFunctionWrapper).
        """
        inserts = ~self._retracts[rows]
        keys, rows = keys[inserts], rows[inserts]
        self._replace(keys, rows)
        self._last[keys], self._inserted[keys], self.kept[keys] = rows, True, True

    def add(self, keys: Rows, rows: Rows) -> None:
        """The next row of each of `keys`, which ascend."""
        match self._rules.engine:
            case MergeEngine.PARTIAL_UPDATE:
                self._update(keys, rows)
            case MergeEngine.AGGREGATION:
                self._aggregate(keys, rows)
            case MergeEngine.DEDUPLICATE | MergeEngine.FIRST_ROW:
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
        self._started[keys] = True

    def _retract_update(self, keys: Rows, rows: Rows) -> None:
        # The first row of a key gives the values that stand until others come, even if its kind is ignored.
        first = ~self._started[keys]
        self._replace(keys[first], rows[first])
        self._started[keys] = True
        if self._rules.ignores_deletes:
            return
        if not self._rules.removes_on_delete and not self._groups:
            raise ValueError(
                "expected no row of kind -U or -D in a partial update, found one; set ignore-delete, "
                "partial-update.remove-record-on-delete or a sequence group"
            )
        self._last[keys] = rows
        gone = self._deletes[rows] & (self._removes_by_group(keys, rows) | self._rules.removes_on_delete)
        self._removed[keys] = gone
        self._replace(keys[gone], rows[gone])
        keys, rows = keys[~gone], rows[~gone]
        orders = [group.advance(keys, rows) for group in self._groups]
        for name, rule in self._rules.fields.items():
            if rule.group is not None:
                newer, older = orders[rule.group]
                self._columns[name].retract(keys[newer], rows[newer])
                self._columns[name].retract_older(keys[older], rows[older])

    def _removes_by_group(self, keys: Rows, rows: Rows) -> Flags:
        removes = np.zeros(len(keys), np.bool_)
        for group in self._groups:
            if group.removes:
                newer, _ = group.order(keys, rows)
                removes |= newer
        return removes

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
        orders = [group.advance(keys, rows) for group in self._groups]
        for name, rule in self._rules.fields.items():
            if rule.group is None:
                self._columns[name].add(keys, rows)
                continue
            newer, older = orders[rule.group]
            self._columns[name].add(keys[newer], rows[newer])
            self._columns[name].add_older(keys[older], rows[older])

    def _replace(self, keys: Rows, rows: Rows) -> None:
        if not len(keys):
            return
        for column in self._columns.values():
            column.replace(keys, rows)
        for group in self._groups:
            group.replace(keys, rows)

    def result(self, keeps_kind: Flags) -> pa.Table:
        kept = np.flatnonzero(self._inserted & ~self._removed)
        last = self._last[kept]
        return self._results(kept, last, np.where(keeps_kind[kept], self._kinds[last], np.int8(_INSERT)))

    def every_result(self, ends: Rows) -> pa.Table:
        """The result of each key, also where it is a delete. `ends`: the last row of each key."""
        # Java gives 0 to a key whose rows are all ignored, so that a row which came before them may follow them. They
        # keep their place here.
        last = np.where(self._last == _NONE, ends, self._last)
        kinds = np.where(self._inserted & ~self._removed, np.int8(_INSERT), np.int8(DELETE_KIND))
        return self._results(np.arange(len(ends)), last, kinds)

    def _results(self, kept: Rows, last: Rows, kinds: npt.NDArray[np.int8]) -> pa.Table:
        columns: dict[str, ChunkedArray] = {}
        for name in self._rows.column_names:
            if name == KIND:
                columns[name] = pa.chunked_array([kinds])
            elif name in self._columns:
                columns[name] = self._columns[name].values(kept)
            else:
                columns[name] = self._rows.column(name).take(last)
        return pa.table(columns, schema=self._rows.schema)


class _Group:
    """The row of each key that has the sequence fields of one group; _NONE while they are null."""

    def __init__(self, group: SequenceGroup, rows: pa.Table, keys: int) -> None:
        self.removes = group.removes
        self._order = RowOrder([rows.column(name) for name in group.fields])
        self._at = np.full(keys, _NONE, np.int64)

    def order(self, keys: Rows, rows: Rows) -> tuple[Flags, Flags]:
        """Which rows are not older than the group's last one, and which are. A row without sequence is neither."""
        held = self._at[keys]
        stands = ~self._order.is_null(rows)
        newer: Flags = stands & ((held == _NONE) | (self._order.compare(rows, held) >= 0))
        return newer, stands & ~newer

    def advance(self, keys: Rows, rows: Rows) -> tuple[Flags, Flags]:
        """As `order`; then the newer rows have the group."""
        newer, older = self.order(keys, rows)
        self._at[keys[newer]] = rows[newer]
        return newer, older

    def replace(self, keys: Rows, rows: Rows) -> None:
        self._at[keys] = rows
