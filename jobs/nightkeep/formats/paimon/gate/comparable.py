"""Values -> values that the gate's sorts put into Paimon's order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nightkeep.model.arrow_types import ChunkedArray


def comparable(column: ChunkedArray) -> ChunkedArray:
    """Floats as integers that order like Java's Double.compare: -0.0 below 0.0, NaN last."""
    if not pa.types.is_floating(column.type):
        return column
    width = column.type.bit_width
    values = column.combine_chunks().fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), values.dtype.type("nan"), values).view(f"i{width // 8}")
    ordered = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    return pa.chunked_array([pa.array(ordered, mask=column.is_null().combine_chunks().to_numpy(zero_copy_only=False))])
