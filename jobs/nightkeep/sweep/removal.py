"""Files that are to go -> gone, or put aside: in bounded parts, each file after one more look at it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from nightkeep.model import Run
from nightkeep.sweep.order import Acted, Mode
from nightkeep.sweep.sets import Tally
from nightkeep.territory import Announces, Territory


def remove(
    territory: Territory,
    batches: Iterator[pa.RecordBatch],
    run: Run,
    *,
    mode: Mode,
    total: Tally,
    older_than_ms: int,
    recheck: bool = True,
    announce: Announces | None = None,
) -> Acted:
    """Remove the files of `batches` (ORPHANS), of which there are `total`, or put them aside.

    With `recheck` a file goes only while it has the size and time that were listed. The table's history tells of it
    before the first file goes and after the last, also where some could not be removed; those are returned. Raises
    RefusedTable, and touches nothing, where the table forbids removals.
    """
    raise NotImplementedError
