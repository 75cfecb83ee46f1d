"""Open data files -> their live rows, a batch at a time, and samples of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.clustered_files import OpenFile
from nightkeep.clustering.sizing import batch_rows
from nightkeep.kernels.bitmap import mask
from nightkeep.model.file_columns import SizedFile


def live_batches(
    reader: OpenFile, file: SizedFile, columns: Sequence[str], hidden: BitMap64 | None
) -> Iterator[pa.Table]:
    """The rows of a file in their order, without those at `hidden` positions.

    Uses a mask. The gate reads by position instead, so that it does not share a mistake here.
    """
    start = 0
    for batch in reader.batches(columns, batch_rows=batch_rows(file.bytes, reader.rows)):
        if hidden:
            keep = ~mask(hidden, batch.num_rows, start)
            start += batch.num_rows
            batch = batch if keep.all() else batch.filter(pa.array(keep))
        yield batch


def sample_share(readers: Iterable[OpenFile], columns: Sequence[str], share: float) -> pa.Table:
    """About `share` of the rows of each file, deleted ones included, at least one each. Opens one file at a time."""
    parts = [reader.sampled(columns, int(reader.rows * share) + 1, number) for number, reader in enumerate(readers)]
    return pa.concat_tables(parts)
