"""The metadata of variants -> the names of object fields, each decoded once for all rows with the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nightkeep.kernels.arrow_buffers import BYTE_BITS, Words, byte_spans, words_at
from nightkeep.kernels.flat_hash import flat_hash_blocks, joined
from nightkeep.kernels.variant_scalars import Bytes, Flags, Numbers, byte_views
from nightkeep.model.arrow_types import Array, DictionaryArray

_VERSION: Final = 1
_VERSION_MASK: Final = 0x0F
_OFFSET_SHIFT: Final = 6
_WIDTH_MASKS: Final = np.array([(1 << BYTE_BITS * width) - 1 for width in range(5)], np.uint64)


@dataclass(frozen=True, slots=True)
class VariantNames:
    """The dictionaries of a column of variants. `codes` has the dictionary of each row; `firsts` and `counts` the
    first name of each dictionary in `names`, and how many it has. `hashes` are two hashes of each name."""

    codes: Numbers
    firsts: Numbers
    counts: Numbers
    names: Array
    hashes: tuple[Words, Words]


def variant_names(metadata: Array) -> VariantNames:
    """The names of a column of metadata. Raises ValueError for nulls, and for bytes that are no dictionary."""
    if metadata.null_count:
        raise ValueError("a variant without metadata")
    distinct: DictionaryArray = metadata.dictionary_encode()
    codes = distinct.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    data, begins, ends = byte_spans(distinct.dictionary)
    starts, stops = begins.astype(np.int64), ends.astype(np.int64)
    require(stops > starts, lambda at: "an empty variant metadata, expected a header")
    header = data[starts]
    known = header & _VERSION_MASK == _VERSION
    require(known, lambda at: f"variant metadata of version {header[at] & _VERSION_MASK}, expected {_VERSION}")
    widths = (header >> _OFFSET_SHIFT).astype(np.int64) + 1
    require(starts + 1 + widths <= stops, lambda at: f"variant metadata of {stops[at] - starts[at]} bytes, cut off")
    counts = unsigned(data, starts + 1, widths)
    bases = starts + 1 + widths * (counts + 2)
    require(bases <= stops, lambda at: f"a dictionary of {counts[at]} names in {stops[at] - starts[at]} bytes")
    firsts = np.cumsum(counts) - counts
    owners = np.repeat(np.arange(len(counts)), counts)
    places = starts[owners] + 1 + widths[owners] * (1 + np.arange(len(owners)) - firsts[owners])
    begin, end = (unsigned(data, places + shift * widths[owners], widths[owners]) for shift in (0, 1))
    fits = (begin <= end) & (bases[owners] + end <= stops[owners])
    require(fits, lambda at: f"name {at - firsts[owners[at]]} of a dictionary from byte {begin[at]} to {end[at]}")
    names = byte_views(data, bases[owners] + begin, end - begin, np.arange(len(owners)), len(owners))
    return VariantNames(codes, firsts, counts, names, joined(flat_hash_blocks([names], len(names))))


def unsigned(data: Bytes, places: Numbers, widths: Numbers) -> Numbers:
    """Little-endian numbers of 1 to 4 bytes. What lies beyond the data reads as zero."""
    return (words_at(data, places) & _WIDTH_MASKS[widths]).astype(np.int64)


def require(fits: Flags, found: Callable[[int], str]) -> None:
    """Raise ValueError, with what was found, for the first flag that is not set."""
    if not fits.all():
        raise ValueError(found(int(np.argmin(fits))))
