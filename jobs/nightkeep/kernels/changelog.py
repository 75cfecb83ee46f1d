"""Changes of one batch, in order -> rows to write, which of them the batch itself replaces, keys to delete before it.

What Iceberg's BaseTaskWriter.BaseEqualityDeltaWriter does row by row with a map from key to position, for a whole
batch at once: of each key only the change before matters.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import Array, one_array
from nightkeep.kernels.curve import order_of

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

_MOST = np.iinfo(np.int64).max
_NEAR = 1 << 40


@dataclass(frozen=True, slots=True)
class Resolved:
    """Row ordinals of a batch, each ascending.

    `written` become rows of data files, in this order. `replaced`, some of them, are superseded or deleted by a later
    change of the batch: they are to be hidden by position. `unseen` stand for keys that the batch did not write
    before it deleted or upserted them, the first such change of each key: older rows are to be hidden by equality.
    """

    written: Rows
    replaced: Rows
    unseen: Rows


def key_codes(keys: pa.Table) -> Rows:
    """A number for each row, int64 and not negative; two are equal just if the rows' values are. Null equals null.

    Every type that Arrow can dictionary-encode. Zeros of two signs differ, as do NaNs of different bits.
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
    """Numbers below a width, at least 1: an integer's own where they are near each other, else its dictionary's."""
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        low, high = (bound.as_py() for bound in pc.min_max(column).values())
        if high - low < _NEAR:
            return column.cast(pa.int64()).to_numpy() - low, high - low + 1
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    assert isinstance(encoded, pa.DictionaryArray)
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
