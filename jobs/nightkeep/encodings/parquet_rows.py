"""Row groups of an open Parquet file -> Arrow batches of chosen columns and rows.

Positions are row ordinals in the file. The rows in pages are checked against the footer's counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from nightkeep.encodings.arrow_limits import LIMITS, beyond_arrow
from nightkeep.encodings.open_parquet import open_parquet
from nightkeep.errors import CorruptMetadata, reason_of
from nightkeep.kernels.arrow_buffers import flagged_rows, with_views
from nightkeep.kernels.bitmap import Width, from_positions, mask
from nightkeep.model.arrow_types import ArrowField

BATCH_ROWS: Final = 1 << 16
_SMALLER: Final = 16
_UNSUPPORTED: Final = "not supported by the C++ implementation"
"""Part of the message of the OSError for a codec that Arrow knows but lacks (arrow/util/compression.cc)."""


@dataclass(frozen=True, slots=True)
class ParquetGroup:
    """A row group of an open file, by its number, and the ascending indexes of the Parquet columns to read."""

    source: pa.NativeFile
    footer: pq.FileMetaData
    fields: Sequence[ArrowField]
    number: int
    leaves: Sequence[int]
    subject: str


GroupDecoder = Callable[[ParquetGroup, int], Iterator[pa.RecordBatch] | None]
"""(a row group, most rows of a batch) -> its batches, or None if it is not for this decoder."""


class ParquetRows:
    """One open file, closed with the last reference. Raises CorruptMetadata naming `subject` if it is not Parquet.

    Arrow decodes what `decoder` does not take or cannot decode.
    """

    def __init__(self, source: pa.NativeFile, *, subject: str, decoder: GroupDecoder | None = None) -> None:
        self._subject, self._source, self._decoder = subject, source, decoder
        try:
            self._parquet, _ = open_parquet(source)
        except (pa.ArrowException, OSError, ValueError) as failure:
            raise CorruptMetadata(subject, "a Parquet file", reason_of(failure)) from failure
        self.footer = footer = self._parquet.metadata
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        self.starts: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.fields: list[ArrowField] = list(self._parquet.schema_arrow)
        self.rows: int = footer.num_rows

    def batches(
        self, leaves: Sequence[int], *, groups: Sequence[int] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches in file order, each with the position of its first row.

        `leaves` are ascending indexes of the Parquet columns to read. `groups` None: all row groups. A batch has at
        most `batch_rows` rows.
        """
        for group in range(len(self.starts) - 1) if groups is None else groups:
            start, stop = int(self.starts[group]), int(self.starts[group + 1])
            for batch in self._batches(group, leaves, max(1, min(batch_rows, stop - start))):
                yield start, batch
                start += batch.num_rows
            if start != stop:
                subject, missing = f"{self._subject} row group {group}", stop - start
                raise CorruptMetadata(subject, "the rows in its pages that its footer counts", f"{missing} fewer")

    def _batches(self, group: int, leaves: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        found = ParquetGroup(self._source, self.footer, self.fields, group, leaves, self._subject)
        return group_batches(found, batch_rows, self._decoder, self._decoded(group, leaves, batch_rows))

    def _decoded(self, group: int, leaves: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The batches of a row group; smaller if nested columns exceed what Arrow holds in one array (2 GiB)."""
        done = 0
        while True:
            try:
                for batch in _rest(self._by_arrow(group, leaves, batch_rows), done):
                    done += batch.num_rows
                    yield batch
                return
            except LIMITS as failure:
                if batch_rows == 1:
                    raise beyond_arrow(self._subject, failure) from failure
                batch_rows = max(1, batch_rows // _SMALLER)

    def _by_arrow(self, group: int, leaves: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Raises LIMITS."""
        # By index: Arrow reads a dot in a name as a path.
        pending = self._parquet.reader.iter_batches(batch_rows, [group], column_indices=list(leaves), use_threads=False)
        while True:
            with self._decoding():
                batch = next(pending, None)
            if batch is None:
                return
            yield batch

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except LIMITS:
            raise
        except (pa.ArrowException, OSError) as failure:
            if _UNSUPPORTED in str(failure):
                raise beyond_arrow(self._subject, failure) from failure
            raise CorruptMetadata(self._subject, "pages of a Parquet file", reason_of(failure)) from failure


def group_batches(
    group: ParquetGroup, batch_rows: int, decoder: GroupDecoder | None, by_arrow: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The group's batches by `decoder`, or `by_arrow` if that does not take it.

    What the decoder fails at comes by Arrow too, as views: not all that a format allows is known to every decoder, and
    whether a file is damaged is for Arrow to decide.
    """
    batches = None if decoder is None else decoder(group, batch_rows)
    if batches is None:
        yield from by_arrow
        return
    done = 0
    try:
        for batch in batches:
            yield batch
            done += batch.num_rows
    except CorruptMetadata:
        yield from map(with_views, _rest(by_arrow, done))


def _rest(batches: Iterable[pa.RecordBatch], done: int) -> Iterator[pa.RecordBatch]:
    """The rows after the first `done`."""
    start = 0
    for batch in batches:
        stop = start + batch.num_rows
        if stop > done:
            yield batch.slice(max(0, done - start))
        start = stop


def parts_holding(starts: npt.NDArray[np.int64], positions: BitMap64) -> Sequence[int]:
    """The parts of a file, such as row groups, that contain any of these rows. `starts` has the first row of each part,
    then the number of rows."""
    bounds = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return [part for part, (start, stop) in enumerate(bounds) if positions.range_cardinality(start, stop)]


def only(pieces: Iterable[tuple[int, pa.Table]], positions: BitMap64) -> Iterator[pa.Table]:
    """The rows at `positions`. Each piece comes with the position of its first row; pieces without rows are dropped."""
    for start, piece in pieces:
        held = positions.range_cardinality(start, start + piece.num_rows)
        if held == piece.num_rows:
            yield piece
        elif held:
            yield flagged_rows(piece, mask(positions, piece.num_rows, start))


def sample(of_rows: int, rows: int, seed: int) -> BitMap64:
    """Positions of a uniform random sample of `rows` of `of_rows` rows; all rows if there are fewer."""
    chosen = np.random.default_rng(seed).choice(of_rows, min(rows, of_rows), replace=False, shuffle=False)
    return BitMap64(from_positions(chosen.astype(np.int64), Width.BITS_64))


def leaf_bounds(fields: Iterable[ArrowField], first: int = 0) -> Sequence[int]:
    """The index of each field's first leaf, counted from `first`; then the index after the last leaf."""
    return list(accumulate((_width(field.type) for field in fields), initial=first))


def _width(kind: pa.DataType) -> int:
    """The number of Parquet columns that store a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    return sum(_width(kind.field(child).type) for child in range(kind.num_fields)) or 1
