"""Wanted keys, held keys -> the row that holds each wanted key. Unsorted keys are an error, never a wrong answer."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.kernels.key_order import EncodedKeys, encode, require_ascending


def find_keys(wanted: pa.Table, held: pa.Table) -> npt.NDArray[np.int64]:
    """The row of `held` that has the key of each row of `wanted`, or -1 where none has.

    Both tables hold exactly the key columns, in key order, with equal types and no nulls, both strictly
    ascending in Paimon's key order (nightkeep.kernels.key_order). Result: one int64 per row of `wanted`.
    Raises ValueError naming the side and the row, or the column, that breaks this.
    Cost: one pass over `held` to prove its order, then a binary search by the smaller side.
    """
    wanted_keys, held_keys = encode(wanted, held)
    require_ascending(wanted_keys, f"wanted keys ({', '.join(wanted.column_names)})")
    require_ascending(held_keys, f"held keys ({', '.join(held.column_names)})")
    if wanted.num_rows <= held.num_rows:
        return _search(wanted_keys, held_keys)
    positions = np.full(wanted.num_rows, -1, np.int64)
    answers = _search(held_keys, wanted_keys)
    hits = np.flatnonzero(answers >= 0)
    positions[answers[hits]] = hits
    return positions


def _search(needles: EncodedKeys, hay: EncodedKeys) -> npt.NDArray[np.int64]:
    if len(hay.leading) == 0 or len(needles.leading) == 0:
        return np.full(len(needles.leading), -1, np.int64)
    low = np.searchsorted(hay.leading, needles.leading, side="left")
    if len(hay.words) > 1:
        high = np.searchsorted(hay.leading, needles.leading, side="right")
        low = _narrow(needles, hay, low, high)
    place = np.minimum(low, len(hay.leading) - 1)
    matching = np.arange(len(place))
    for k in range(len(hay.words)):
        matching = matching[hay.word(k, place[matching]) == needles.word(k, matching)]
    answers = np.full(len(place), -1, np.int64)
    answers[matching] = place[matching]
    return answers


def _narrow(
    needles: EncodedKeys, hay: EncodedKeys, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The first row in [low, high) not below each needle; rows in there agree with it in word 0."""
    low, high = low.copy(), high.copy()
    open_rows = np.flatnonzero(low < high)
    while len(open_rows):
        middle = (low[open_rows] + high[open_rows]) >> 1
        below = _below(hay, middle, needles, open_rows)
        low[open_rows[below]] = middle[below] + 1
        high[open_rows[~below]] = middle[~below]
        open_rows = open_rows[low[open_rows] < high[open_rows]]
    return low


def _below(
    hay: EncodedKeys, middle: npt.NDArray[np.int64], needles: EncodedKeys, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    below = np.zeros(len(rows), np.bool_)
    tied = np.arange(len(rows))
    for k in range(1, len(hay.words)):
        held, wanted = hay.word(k, middle[tied]), needles.word(k, rows[tied])
        below[tied] = held < wanted
        tied = tied[held == wanted]
        if not len(tied):
            break
    return below
