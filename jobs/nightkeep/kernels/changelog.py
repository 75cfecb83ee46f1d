"""Changes of one batch, in order -> rows to write, those of them that the batch replaces, and older keys to delete.

Does for a whole batch what Iceberg's BaseTaskWriter.BaseEqualityDeltaWriter does row by row with a map from key to
position. Only the previous change of the same key matters.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import one_array
from nightkeep.kernels.curve import order_of
from nightkeep.model.arrow_types import Array

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

_MOST = np.iinfo(np.int64).max
_NEAR = 1 << 40


@dataclass(frozen=True, slots=True)
class Resolved:
    """Row ordinals of a batch, each ascending.

    `written` become rows of data files, in this order. `replaced` are those of them that a later change of the batch
    replaces or deletes: they need position deletes. `unseen` has, for each key that the batch deletes or upserts before
    it wrote it, the first such change: older rows of these keys need equality deletes.
    """

    written: Rows
    replaced: Rows
    unseen: Rows


def key_codes(keys: pa.Table) -> Rows:
    """A code for each row, int64 and not negative. Two codes are equal if and only if the rows are. Null equals null.

    Takes every type that Arrow can dictionary-encode. 0.0 and -0.0 differ, as do NaNs with different bits.
    """
    codes = np.zeros(keys.num_rows, np.int64)
    number = 1
    for column in keys.itercolumns():
        own, width = _column_codes(one_array(column))
        if number > _MOST // width:
            _, codes = np.unique(codes, return_inverse=True)
            number = int(codes.max(initial=0)) + 1
        codes = codes * width + own
        number *= width
    return codes.astype(np.int64, copy=False)


def _column_codes(column: Array) -> tuple[Rows, int]:
    """Codes, and a width above all of them: offsets from the least integer if near, else dictionary codes."""
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        low, high = (bound.as_py() for bound in pc.min_max(column).values())
        if high - low < _NEAR:
            return column.cast(pa.int64()).to_numpy() - low, high - low + 1
    encoded = column.dictionary_encode("encode")
    return encoded.indices.to_numpy(zero_copy_only=False), max(1, len(encoded.dictionary))


def resolve(keys: Rows, writes: Flags, *, upsert: bool) -> Resolved:
    """`keys` are key_codes of changes in their order, `writes` whether a change writes its row or deletes its key.

    With `upsert` a write deletes its key first; without, it only replaces what the batch itself wrote.
    """
    order = order_of(keys.view(np.uint64))
    ordered, wrote = keys[order], writes[order]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = ordered[1:] != ordered[:-1]
    after_write = np.zeros(len(order), np.bool_)
    after_write[1:] = wrote[:-1] & ~starts[1:]
    unseen = np.flatnonzero(~after_write & (~wrote | upsert))
    group = np.cumsum(starts)[unseen]
    firsts = np.ones(len(unseen), np.bool_)
    firsts[1:] = group[1:] != group[:-1]
    return Resolved(
        written=np.flatnonzero(writes),
        replaced=np.sort(order[np.flatnonzero(after_write) - 1]),
        unseen=np.sort(order[unseen[firsts]]),
    )
