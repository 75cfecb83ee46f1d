"""Interfaces that a format implements for packing and clustering: files for planning, writers of new files, edits.

They have no logs, manifests or vectors: a format's writer adds its own tags, ids and statistics to a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from nightkeep.clustering.live_rows import LiveRows
from nightkeep.clustering.sizing import row_group_bytes
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
W = TypeVar("W", bound=WrittenDataFile)
W_co = TypeVar("W_co", bound=WrittenDataFile, covariant=True)
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)


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


@dataclass(frozen=True, slots=True)
class FileLayout:
    """How new files are laid out: packed to a target size or, with a clustering, along a curve."""

    target_bytes: int
    clustering: Clustering | None = None

    @property
    def group_bytes(self) -> int | None:
        """The stored size of a row group at most. None for packed files: their rows have no order to skip by."""
        return None if self.clustering is None else row_group_bytes(self.target_bytes)


class Inputs(Protocol[F, W, E_co]):
    """The `files` that one task replaces, of the unit `key`. Must be picklable."""

    @property
    def key(self) -> UnitKey: ...

    @property
    def files(self) -> Sequence[F]: ...

    def rows(self, storage: Storage) -> LiveRows[F]: ...

    def writer(self, storage: Storage, run: Run, layout: FileLayout) -> Writer[W]:
        """A writer of files. Later plans can see the layout of a file and the run that wrote it."""

    def edit(self, written: Sequence[W], *, removed: Sequence[F]) -> E_co:
        """The change of the table's metadata that replaces `removed` by `written`."""
