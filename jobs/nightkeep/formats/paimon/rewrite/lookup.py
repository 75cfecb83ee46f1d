"""Keys of lifted rows -> the rows they replace, as (file, position), on the first deeper level with the key.

Reads only key columns, of files and row groups whose key range may hold a wanted key. LookupLevels.java looks keys up
one by one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.data.stored_rows import Edges
from nightkeep.formats.paimon.metadata.binary_row import SortKey, sort_key
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import Value, canonical
from nightkeep.kernels.bitmap import mask
from nightkeep.kernels.lookup import find_keys
from nightkeep.storage import Storage

_PRUNABLE = frozenset({
    TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT,
    TypeRoot.DATE, TypeRoot.CHAR, TypeRoot.VARCHAR,
})  # fmt: skip
"""Types of the first key column whose Parquet row-group statistics order as Paimon's keys do, for every writer."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows of one file that lifted keys replace: `wanted` are row numbers of keys, `positions` rows of the file."""

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
        order = _KeyOrder(wanted.combine_chunks(), bucket)
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
    order = _KeyOrder(keys.combine_chunks(), bucket)
    hits = (_find_in(PaimonFileReader(storage, bucket, file), order, file) for file in files)
    return tuple(hit for hit in hits if hit is not None and len(hit.wanted))


@dataclass(frozen=True, slots=True)
class _KeyOrder:
    """Ascending keys, searchable by whole key or by the first key column."""

    keys: pa.Table
    bucket: Bucket

    @property
    def types(self) -> tuple[PaimonType, ...]:
        schema = self.bucket.schemas.current
        return tuple(field.type for field in schema.select(schema.trimmed_keys))

    def span(self, low: tuple[Value, ...], high: tuple[Value, ...]) -> slice:
        """Rows whose leading columns lie in [low, high]. Both have the first `len(low)` key values."""
        types = self.types[: len(low)]

        def row_key(row: int) -> SortKey:
            values = [canonical(self.keys.column(i)[row], kind) for i, kind in enumerate(types)]
            return sort_key(values, types)

        rows = range(self.keys.num_rows)
        start = bisect_left(rows, sort_key(low, types), key=row_key)
        stop = bisect_right(rows, sort_key(high, types), key=row_key)
        return slice(start, stop)


def _find_in(reader: PaimonFileReader, order: _KeyOrder, file: PaimonDataFile) -> Hits | None:
    span = order.span(file.min_key, file.max_key)
    if span.start >= span.stop:
        return None
    wanted = order.keys.slice(span.start, span.stop - span.start)
    groups = _groups(reader, _KeyOrder(wanted, order.bucket))
    held = reader.read(wanted.column_names, groups)
    row_of_key = find_keys(wanted, held)
    hits = np.flatnonzero(row_of_key >= 0)
    ordinals = [np.arange(reader.starts[g], reader.starts[g + 1]) for g in groups]
    positions = np.concatenate(ordinals)[row_of_key[hits]] if ordinals else row_of_key[:0]
    return Hits(file, hits + span.start, positions)


def _groups(reader: PaimonFileReader, wanted: _KeyOrder) -> list[int]:
    """Row groups whose first key column may hold a wanted key; all of them if the ranges cannot be trusted."""
    every = range(len(reader.starts) - 1)
    if wanted.types[0].root not in _PRUNABLE:
        return list(every)
    name = wanted.keys.column_names[0]
    return [group for group in every if _meets(reader.edges(name, group), wanted)]


def _meets(edges: Edges | None, wanted: _KeyOrder) -> bool:
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
