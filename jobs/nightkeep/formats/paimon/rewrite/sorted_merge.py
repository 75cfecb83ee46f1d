"""Rows in the order of keys and sequence -> the row that a merge without a lookup makes of each key.

Follows ReducerMergeFunctionWrapper and DropDeleteReader of Paimon 2.0.0 (C/mergetree): the only row of a key stays as
it is, whatever its kind. A retract stays too, as a tombstone, unless nothing older is left that it could delete.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS
from nightkeep.formats.paimon.metadata.merge_engine import MergeRules
from nightkeep.formats.paimon.rewrite.fold import fold
from nightkeep.kernels.arrow_buffers import Rows


def merge_sorted(rows: pa.Table, starts: Rows, rules: MergeRules, *, drops_retracts: bool) -> pa.Table:
    """One row per key, of the same columns and in the order of keys; with `drops_retracts`, only rows that add.

    `rows` are sorted by key and then by sequence; key i has the rows from `starts[i]` to the next start. Raises
    ValueError and OverflowError as `fold` does, which sees only keys of several rows.
    """
    sizes = np.diff(np.append(starts, rows.num_rows))
    several = sizes > 1
    wanted = starts
    if several.any():
        chosen = np.repeat(several, sizes)
        own = rows.filter(pa.array(chosen))
        begins = np.cumsum(np.append(0, sizes[several]))[:-1]
        folded = fold(own, begins, rules, keeps_deletes=True)
        wanted = starts.copy()
        wanted[several] = rows.num_rows + np.arange(len(begins))
        rows = pa.concat_tables([rows, folded])
    if drops_retracts:
        kinds = rows.column(KIND).to_numpy()
        wanted = wanted[~np.isin(kinds[wanted], RETRACT_KINDS)]
    return rows if len(wanted) == rows.num_rows else rows.combine_chunks().take(wanted)
