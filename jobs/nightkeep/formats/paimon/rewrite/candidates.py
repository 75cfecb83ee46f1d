"""Rows with their places -> those that compete for their keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.data.columns import KIND, SEQUENCE, PaimonFileReader, key_columns
from nightkeep.formats.paimon.data.sequence import sequence_order
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.lookup import Hits
from nightkeep.kernels.merge import OrderBy, keep_latest
from nightkeep.storage import Storage

SOURCE, POSITION, LEVEL = "source", "position", "level"
"""Columns of a row's place: the number of its file, its position there, and the file's level."""
_ZERO = pa.scalar(0, pa.int32())


def placed(rows: pa.Table, at: npt.NDArray[np.int64], *, source: int, level: int) -> pa.Table:
    count = rows.num_rows
    rows = rows.append_column(SOURCE, pa.array(np.full(count, source, np.int32)))
    rows = rows.append_column(POSITION, pa.array(at))
    return rows.append_column(LEVEL, pa.array(np.full(count, level, np.int32)))


def file_places(rows: pa.Table, chosen: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The file numbers and positions of the chosen rows, in their order."""
    places = rows.select([SOURCE, POSITION]).take(chosen)
    return places.column(SOURCE).to_numpy(), places.column(POSITION).to_numpy()


def lowest_level_only(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Only one of a key's rows above level 0 competes: the one on the lowest level
    (LookupMergeFunction.pickHighLevel)."""
    levels = pc.unique(rows.column(LEVEL))
    if len(levels) - (0 in levels.to_numpy()) < 2:
        return rows
    lifted = rows.filter(pc.equal(rows.column(LEVEL), _ZERO))
    upper = rows.filter(pc.greater(rows.column(LEVEL), _ZERO))
    inverted = upper.append_column("nearness", pc.negate(upper.column(LEVEL)))
    kept = keep_latest(inverted, keys=keys, order=[OrderBy("nearness")])
    return pa.concat_tables([upper.take(kept), lifted])


def level0_only(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The newest level-0 row of each key that has rows only on level 0. Their old rows must be looked up."""
    marked = rows.select([*keys, SEQUENCE])
    marked = marked.append_column("upper", pc.greater(rows.column(LEVEL), _ZERO).cast(pa.int8()))
    kept = keep_latest(marked, keys=keys, order=[OrderBy("upper"), OrderBy(SEQUENCE)])
    newest = marked.take(kept)
    return newest.filter(pc.equal(newest.column("upper"), pa.scalar(0, pa.int8())))


def old_rows(storage: Storage, bucket: Bucket, hit: Hits, *, source: int) -> pa.Table:
    order = [by.column for by in sequence_order(bucket.schemas.current)]
    names = [*key_columns(bucket), *order, KIND]
    at = np.sort(hit.positions)
    rows = pa.concat_tables(PaimonFileReader(storage, bucket, hit.file).taken(names, at))
    return placed(rows, at, source=source, level=hit.file.level)
