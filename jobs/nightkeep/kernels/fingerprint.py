"""Rows -> a fingerprint of their multiset. It does not depend on row order, batches or encodings."""

from collections.abc import Iterable

import pyarrow as pa

from nightkeep.kernels.arrow_buffers import Words
from nightkeep.kernels.flat_hash import joined
from nightkeep.kernels.row_hash import hash_blocks
from nightkeep.model import Fingerprint

NOTHING = Fingerprint(0, 0, 0)


def fingerprint(rows: pa.RecordBatch | pa.Table) -> Fingerprint:
    """The fingerprint of `rows` over all their columns, in column order and whatever the columns are called.

    Equal for equal multisets of rows of one schema; null differs from every value, -0.0 from 0.0, one NaN
    from another; a map does not depend on the order of its entries. Types that differ only in their encoding
    (dictionary, views, large offsets) agree; others need not: cast both sides to one schema first.
    Computed on one machine by one version, it is the same in every process.
    Raises ValueError for a type without a rule: union and list views.
    """
    if isinstance(rows, pa.RecordBatch):
        return _sum(hash_blocks(rows.columns, rows.num_rows))
    if rows.num_columns == 0:
        return _sum(hash_blocks([], rows.num_rows))
    return sum((fingerprint(batch) for batch in rows.to_batches()), start=NOTHING)


def row_hashes(batch: pa.RecordBatch) -> tuple[Words, Words]:
    """The two hashes of each row, in row order, that a fingerprint sums."""
    return joined(hash_blocks(batch.columns, batch.num_rows))


def _sum(blocks: Iterable[tuple[Words, Words]]) -> Fingerprint:
    return sum((Fingerprint(len(a), int(a.sum()), int(b.sum())) for a, b in blocks), start=NOTHING)
