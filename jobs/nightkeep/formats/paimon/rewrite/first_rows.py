"""Rows of a table that keeps the first row of each key -> the rows whose key the table does not have yet.

Follows FirstRowMergeFunction and FirstRowMergeFunctionWrapper (C/mergetree/compact) of Paimon 2.0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS, key_columns
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.lookup import find_replaced
from nightkeep.kernels.lookup import find_keys
from nightkeep.kernels.merge import in_order
from nightkeep.storage import Storage


def without_known(storage: Storage, bucket: Bucket, rows: pa.Table, lifted: pa.Table, *, below: int) -> pa.Table:
    """`rows` without those of keys that a level below `below` has.

    `lifted` are the keys of `rows` that are on level 0 only, unique and ascending. Raises ValueError for a retract: no
    first row can be taken back, and writers that ignore deletes write none.
    """
    refuse_retracts(rows)
    hits = find_replaced(storage, bucket, lifted, below=below, marked={})
    if not hits:
        return rows
    known = lifted.take(np.sort(np.concatenate([hit.wanted for hit in hits])))
    keys = key_columns(bucket)
    ordered, starts = in_order(rows.select(keys), keys=keys, order=[])
    found = find_keys(known, rows.select(keys).take(ordered[starts]))
    sizes = np.diff(np.append(starts, len(ordered)))
    stays = np.ones(len(starts), np.bool_)
    stays[found] = False
    kept = np.ones(rows.num_rows, np.bool_)
    kept[ordered] = np.repeat(stays, sizes)
    return rows.filter(pa.array(kept))


def refuse_retracts(rows: pa.Table) -> None:
    """Raises ValueError if `rows` have a row of kind -U or -D."""
    if bool(pc.any(pc.is_in(rows.column(KIND), pa.array(RETRACT_KINDS, pa.int8()))).as_py()):
        raise ValueError("expected no row of kind -U or -D in a table that keeps first rows (merge-engine), found one")
