"""Interfaces that a format implements for packing and clustering: files for planning, their rows, writers of new files.

They have no logs, manifests or vectors: a format's writer adds its own tags, ids and statistics to a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.model import Clustering, Run, UnitKey
from nightkeep.model.file_columns import SizedFile
from nightkeep.storage import Storage


class WrittenDataFile(Protocol):
    """A new data file that no version refers to: its name in storage, its rows and bytes, both above 0."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def bytes(self) -> int: ...


F = TypeVar("F", bound=SizedFile)
F_contra = TypeVar("F_contra", bound=SizedFile, contravariant=True)
W = TypeVar("W", bound=WrittenDataFile)
W_co = TypeVar("W_co", bound=WrittenDataFile, covariant=True)
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)


class RowSource(Protocol[F_contra]):
    """Reads the live rows of one unit. Columns have the names that the unit's Writer uses.

    Pseudo columns (row ids, versions of rows) have the values that readers see, inherited ones included. Files without
    rows are not opened. Repeated calls give the same result.
    """

    def batches(self, files: Sequence[F_contra], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The live rows of `files`, file by file in their order, in tables of one schema.

        A table has about as many rows as `sizing.batch_rows` says; some may have none.
        """

    def count(self, files: Sequence[F_contra]) -> int:
        """The number of rows that `batches` yields. May be too high if the exact number is expensive, never too low."""

    def sampled(self, files: Sequence[F_contra], columns: Sequence[str], share: float) -> pa.Table:
        """About `share` of the rows of each file, at least one per file. Deleted rows may be included.

        `columns` are top-level columns. Repeated calls return the same sample.
        """


class Writer(Protocol[W_co]):
    """Writes data files of one unit. Chunks must have `columns`, in any order; other columns are dropped.

    `columns` includes pseudo columns that files must have (row ids, versions of rows).
    """

    @property
    def columns(self) -> Sequence[str]: ...

    def write(self, chunks: Iterable[pa.Table], *, rows_per_file: int) -> Sequence[W_co]:
        """Write all rows in order, in files of `rows_per_file` rows; the last may have fewer. No file for no rows.

        Chunks are consumed while writing: about one row group is in memory.
        """


class OpenFile(Protocol):
    """An open data file. Columns have the names that the unit's Writer uses; None means all columns."""

    rows: int

    def batches(self, names: Sequence[str] | None, *, batch_rows: int) -> Iterator[pa.Table]:
        """All rows in their order, in tables of one schema."""

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        """The rows at positions."""

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        """Some rows at random."""


class Inputs(Protocol[F, W, E_co]):
    """The `files` that one task replaces, of the unit `key`. Must be picklable."""

    @property
    def key(self) -> UnitKey: ...

    @property
    def files(self) -> Sequence[F]: ...

    def rows(self, storage: Storage) -> RowSource[F]: ...

    def packer(self, storage: Storage, run: Run, target_bytes: int) -> Writer[W]:
        """A writer of packed files. Later plans can see the run and the target size of such a file."""

    def clusterer(self, storage: Storage, run: Run, clustering: Clustering) -> Writer[W]:
        """A writer of clustered files. Later plans can see the cube of such a file."""

    def measure(self) -> Writer[WrittenDataFile]:
        """A writer to measure file sizes: its files are discarded."""

    def edit(self, written: Sequence[W], *, removed: Sequence[F]) -> E_co:
        """The change of the table's metadata that replaces `removed` by `written`."""
