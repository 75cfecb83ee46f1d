"""Rows of keys in their order -> which of them count, and in which order a sequence group takes them.

The gate's own means: running maxima over all rows at once. The rewrite goes through the rows of a key one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import DELETE_KIND, RETRACT_KINDS
from nightkeep.formats.paimon.gate.comparable import comparable
from nightkeep.formats.paimon.metadata.merge_engine import MergeEngine, MergeRules, SequenceGroup

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
NO_BASE = -1


@dataclass(frozen=True, slots=True)
class Taken:
    """Flags per row. `newer`: a group takes the row after what it has. `older`: it takes the row before that.
    `earlier`: it took the row before the key's base."""

    newer: Flags
    older: Flags
    earlier: Flags


@dataclass(frozen=True, slots=True)
class RowRoles:
    """What each row of a key is to the key's result. All arrays have one value per row.

    `base` is the place of the key's base, whose values stand, null or not, until later rows replace them: NO_BASE where
    there is none. `left`: the key has a row. `taken` has the rows of each sequence group, `ungrouped` those of columns
    without a group.
    """

    base: Places
    left: Flags
    ungrouped: Taken
    taken: tuple[Taken, ...]


def row_roles(rows: pa.Table, keys: Places, kinds: npt.NDArray[np.int8], rules: MergeRules) -> RowRoles:
    """`rows` are sorted by key and then by sequence, with the columns of the groups; `keys` has an ascending number per
    row, equal for rows of one key."""
    starts, of_key = np.unique(keys, return_index=True, return_inverse=True)[1:]
    at, ends = np.arange(len(keys)), np.append(starts[1:], len(keys)) - 1
    retract: Flags = np.isin(kinds, RETRACT_KINDS)
    deletes: Flags = kinds == DELETE_KIND
    updates = rules.engine is MergeEngine.PARTIAL_UPDATE
    # A partial update starts from the values of its first row, even if that is a retract.
    base = np.where(retract[starts] & updates, starts, NO_BASE)
    removal = np.full(len(starts), NO_BASE)
    if rules.removes_on_delete:
        removal = _last(deletes, of_key, starts)
        base = np.maximum(base, removal)
    ignored: Flags = retract & rules.ignores_deletes
    orders = [_Order(group, rows, of_key, ignored) for group in rules.groups]
    # That first retract is also taken back, unless retracts are ignored.
    since = base if rules.groups and not rules.ignores_deletes else base + 1
    taken = [order.taken(base, since) for order in orders]
    while any(group.removes for group in rules.groups):
        newer = np.logical_or.reduce([t.newer for t, g in zip(taken, rules.groups, strict=True) if g.removes])
        some, where = np.unique(of_key[deletes & newer], return_index=True)
        if not len(some):
            break
        removal[some] = at[deletes & newer][where]
        base = np.maximum(base, removal)
        since = np.where(base == removal, base + 1, since)
        taken = [order.taken(base, since) for order in orders]
    left: Flags = removal != ends
    if updates:
        left &= _last(~retract, of_key, starts) != NO_BASE
    counts: Flags = (at > base[of_key]) & ~(retract & updates)
    ungrouped = Taken(counts, np.zeros(len(at), np.bool_), at < base[of_key])
    return RowRoles(base[of_key], left[of_key], ungrouped, tuple(taken))


def _last(flags: Flags, of_key: Places, starts: Places) -> Places:
    """The place of the last flagged row of each key; NO_BASE where there is none."""
    last = np.full(len(starts), NO_BASE)
    last[of_key[flags]] = np.flatnonzero(flags)
    return last


class _Order:
    """One group's rows by the rank of their sequence fields among all rows, null first."""

    def __init__(self, group: SequenceGroup, rows: pa.Table, of_key: Places, ignored: Flags) -> None:
        fields = {name: pl.Series(comparable(rows.column(name))) for name in group.fields}
        sorted_rows = pl.DataFrame(fields).with_row_index("at").sort(list(fields), nulls_last=False)
        changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in fields)
        self._rank = np.empty(len(of_key), np.int64)
        self._rank[sorted_rows["at"].to_numpy()] = sorted_rows.select(changes.cum_sum())[changes.meta.output_name()]
        has_one = pl.DataFrame(fields).select(one=pl.any_horizontal(pl.all().is_not_null()))
        self._stands: Flags = has_one["one"].to_numpy() & ~ignored
        self._of_key = of_key

    def taken(self, base: Places, since: Places) -> Taken:
        """The group's rows from the place `since` of each key on, when its last row at first is the key's `base`."""
        at = np.arange(len(self._of_key))
        processed = self._stands & (at >= since[self._of_key])
        level = np.where(processed | (at == base[self._of_key]), self._rank + 1, 0)
        floor = self._of_key * (len(at) + 2)
        highest = np.maximum.accumulate(floor + level)
        before = np.maximum(np.append(NO_BASE, highest[:-1]), floor)
        newer = processed & (floor + level >= before)
        return Taken(newer, processed & ~newer, self._stands & (at < base[self._of_key]))
