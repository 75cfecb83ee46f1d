"""Views of texts or bytes -> the few values among which the least and the greatest are."""

from typing import Final, cast

import numpy as np
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import buffer_values
from nightkeep.model.arrow_types import Array

_VIEW_WORDS: Final = 4
"""A view has its length, the first four bytes, then the other bytes or where they are (Arrow, "Variable-size Binary
View Layout"), in words of four bytes."""


def end_values(column: Array) -> Array:
    """Values of a column of views that have its least or its greatest first four bytes, in row order, without nulls.

    Zeros follow a shorter value: none is before one with lower first bytes. Arrow has no extremes of views, and takes
    ten times as long to copy and compare all values.
    """
    views = buffer_values(column, 1, np.dtype("<u4")).reshape(-1, _VIEW_WORDS)
    views = views[column.offset : column.offset + len(column)]
    if column.null_count:
        views = views[column.is_valid().to_numpy(zero_copy_only=False)]
    firsts = views[:, 1].byteswap()
    ends = (firsts == firsts.min(initial=np.iinfo(np.uint32).max)) | (firsts == firsts.max(initial=0))
    chosen = np.ascontiguousarray(views[ends])
    buffers = [None, pa.py_buffer(chosen.data), *column.buffers()[2:]]
    return cast(Array, pa.Array.from_buffers(column.type, len(chosen), buffers))
