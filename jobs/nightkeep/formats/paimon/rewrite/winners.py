"""Rows of the files of a merge -> the newest row of each key, and the order in which the files are taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS, key_columns
from nightkeep.formats.paimon.data.sequence import sequence_order
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.rewrite.levels import sorted_runs
from nightkeep.kernels.merge import keep_latest


def numbered(bucket: Bucket, sources: Sequence[PaimonDataFile]) -> tuple[PaimonDataFile, ...]:
    """The bucket's files: the merged files first, because they are numbered already, then all others."""
    named = {file.name for file in sources}
    return (*sources, *(file for file in bucket.files if file.name not in named))


def oldest_first(files: Sequence[PaimonDataFile]) -> tuple[PaimonDataFile, ...]:
    """The files of the lowest run first, each run in key order."""
    return tuple(file for run in reversed(sorted_runs(files)) for file in run.files)


def winners(rows: pa.Table, bucket: Bucket, *, drops_retracts: bool) -> npt.NDArray[np.int64]:
    """Rows to write, in key order: the newest of each key, which may be a retract unless those are dropped."""
    kept = keep_latest(rows, keys=key_columns(bucket), order=sequence_order(bucket.schemas.current))
    if not drops_retracts:
        return kept
    kinds = rows.column(KIND).take(kept).to_numpy()
    return kept[~np.isin(kinds, RETRACT_KINDS)]
