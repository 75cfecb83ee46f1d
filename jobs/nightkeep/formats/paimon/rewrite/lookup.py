"""Keys of upgraded rows -> the rows they replace, as (file, position), on the first deeper level with the key.

Reads only key columns, of files and row groups whose key range may hold a wanted key. LookupLevels.java looks keys up
one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.data.stored_rows import Edges
from nightkeep.formats.paimon.metadata.binary_row import SortKey
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.formats.paimon.metadata.values import canonical
from nightkeep.formats.paimon.rewrite.stored_keys import StoredKeys
from nightkeep.kernels.bitmap import mask
from nightkeep.kernels.lookup import find_keys
from nightkeep.storage import Storage

LOOKUP_ROWS: Final = 1 << 18
"""Keys of a looked-up file that are read at a time."""
_NO_ROWS: Final = np.zeros(0, np.int64)
_PRUNABLE = frozenset(
    {TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.DATE, TypeRoot.CHAR, TypeRoot.VARCHAR}
)
"""Types of the first key column whose Parquet row-group statistics order as Paimon's keys do, for every writer."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows of one file that upgraded keys replace: `wanted` are row numbers of keys, `positions` rows of the file."""

    file: PaimonDataFile
    wanted: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]


def find_replaced(
    storage: Storage, bucket: Bucket, keys: pa.Table, *, below: int, marked: Mapping[str, BitMap64]
) -> tuple[Hits, ...]:
    """The live rows with one of `keys`, on the first level below `below` that has the key.

    `keys` holds the key columns, unique and ascending. `marked` are rows already deleted, by file name. They are
    skipped, and the search for their key goes on.
    """
    keys = keys.combine_chunks()
    remaining = np.arange(keys.num_rows)
    replaced: list[Hits] = []
    for level in sorted({file.level for file in bucket.files if file.level > below}):
        wanted = keys if len(remaining) == keys.num_rows else keys.take(remaining)
        order = StoredKeys(wanted.combine_chunks(), bucket)
        hits = [
            hit
            for file in bucket.files
            if file.level == level and (hit := _find_in(PaimonFileReader(storage, bucket, file), order, file))
        ]
        live = [_unmarked(hit, marked.get(hit.file.name), names=remaining) for hit in hits]
        replaced += live
        gone = np.concatenate([hit.wanted for hit in live]) if live else remaining[:0]
        remaining = np.setdiff1d(remaining, gone, assume_unique=True)
    return tuple(hit for hit in replaced if len(hit.wanted))


def find_rows(storage: Storage, bucket: Bucket, files: Sequence[PaimonDataFile], keys: pa.Table) -> tuple[Hits, ...]:
    """The rows of `files` with one of `keys`, hidden or not. `keys` as in `find_replaced`."""
    order = StoredKeys(keys.combine_chunks(), bucket)
    hits = (_find_in(PaimonFileReader(storage, bucket, file), order, file) for file in files)
    return tuple(hit for hit in hits if hit is not None and len(hit.wanted))


def _find_in(reader: PaimonFileReader, order: StoredKeys, file: PaimonDataFile) -> Hits | None:
    """Reads a batch of keys at a time, and searches it for those wanted keys that lie between its ends."""
    span = order.span(file.min_key, file.max_key)
    if span.start >= span.stop:
        return None
    wanted = StoredKeys(order.keys.slice(span.start, span.stop - span.start), order.bucket)
    hits, positions = [_NO_ROWS], [_NO_ROWS]
    before: SortKey | None = None
    for group in _groups(reader, wanted):
        start = int(reader.starts[group])
        for held in reader.batches(wanted.keys.column_names, [group], batch_rows=LOOKUP_ROWS):
            low, before = _ends(StoredKeys(held, order.bucket), before, subject=reader.subject)
            near = wanted.within(low, before)
            row_of_key = find_keys(wanted.keys.slice(near.start, near.stop - near.start), held)
            found = np.flatnonzero(row_of_key >= 0)
            hits.append(found + span.start + near.start)
            positions.append(row_of_key[found] + start)
            start += held.num_rows
    return Hits(file, np.concatenate(hits), np.concatenate(positions))


def _ends(held: StoredKeys, before: SortKey | None, *, subject: str) -> tuple[SortKey, SortKey]:
    """The first and the last key. Raises ValueError unless they sort after the key `before`."""
    low = held.key(0)
    if before is not None and low <= before:
        raise ValueError(f"{subject}: a row group starts with a key that is not above those before it")
    return low, held.key(-1)


def _groups(reader: PaimonFileReader, wanted: StoredKeys) -> list[int]:
    """Row groups whose first key column may hold a wanted key; all of them if the ranges cannot be trusted."""
    every = range(len(reader.starts) - 1)
    if wanted.types[0].root not in _PRUNABLE:
        return list(every)
    name = wanted.keys.column_names[0]
    return [group for group in every if _meets(reader.edges(name, group), wanted)]


def _meets(edges: Edges | None, wanted: StoredKeys) -> bool:
    if edges is None:
        return True
    kind = wanted.types[0]
    low, high = (canonical(pa.scalar(edge, kind.arrow), kind) for edge in edges)
    span = wanted.span((low,), (high,))
    return bool(span.start < span.stop)


def _unmarked(hits: Hits, marked: BitMap64 | None, *, names: npt.NDArray[np.int64]) -> Hits:
    """The live hits, with keys numbered as the caller's."""
    wanted = names[hits.wanted]
    if not marked or not len(hits.positions):
        return Hits(hits.file, wanted, hits.positions)
    live = ~mask(marked, int(hits.positions.max()) + 1)[hits.positions]
    return Hits(hits.file, wanted[live], hits.positions[live])
