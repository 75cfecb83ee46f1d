"""What a format gives to be packed and clustered: its files as planning sees them, their rows, and who writes new ones.

Nothing here knows of logs, manifests or vectors: what a format adds to a file (tags, ids, statistics) is its writer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.model import Clustering, Run, UnitKey
from nightkeep.storage import Storage


class SizedFile(Protocol):
    """A live data file with what hides rows of it, from metadata only. Files must pickle, as tasks have them.

    `name` is unique in the table. `bytes` are on storage, `rows` physical, None where metadata does not say.
    `deletes` is how many deletion vectors and delete files apply to this file, though one may hide no row of it;
    `deleted_rows` are those that metadata says they hide, at most `rows`.
    """

    @property
    def name(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def rows(self) -> int | None: ...

    @property
    def deleted_rows(self) -> int: ...

    @property
    def deletes(self) -> int: ...


class WrittenDataFile(Protocol):
    """A new data file that nothing references: its name in storage, its rows and its bytes, both more than none."""

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
    """Reads the rows of one unit that no delete hides. Columns are named as by the unit's Writer.

    Pseudo columns among them (row ids, versions of rows) are values as readers see them, inherited ones included.
    Files without rows are not opened. Called again, every verb answers the same.
    """

    def batches(self, files: Sequence[F_contra], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The live rows of `files`, file by file in their order, in tables of one schema.

        A table has about as many rows as `sizing.batch_rows` says; some may have none.
        """

    def count(self, files: Sequence[F_contra]) -> int:
        """How many rows `batches` yields, or more where that is dear to know; never fewer."""

    def sampled(self, files: Sequence[F_contra], columns: Sequence[str], share: float) -> pa.Table:
        """About `share` of the rows of each file, at least one of each; hidden rows may be among them.

        `columns` are top-level ones. There are as many rows in the sample each time it is drawn, and the same.
        """


class Writer(Protocol[W_co]):
    """Writes data files of one unit. `columns` is what chunks must hold, in any order; what else they hold is left out.

    Pseudo columns that files must carry (row ids, versions of rows) are among them.
    """

    @property
    def columns(self) -> Sequence[str]: ...

    def write(self, chunks: Iterable[pa.Table], *, rows_per_file: int) -> Sequence[W_co]:
        """Every row in order, in files of `rows_per_file` rows, the last one of fewer; no file where there is no row.

        Chunks are consumed as they are written: the writer holds about a row group of them.
        """


class OpenFile(Protocol):
    """An open data file. Rows are named as by the unit's Writer; None stands for all columns."""

    rows: int

    def batches(self, names: Sequence[str] | None, *, batch_rows: int) -> Iterator[pa.Table]:
        """All rows in their order, in tables of one schema."""

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        """The rows at positions."""

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        """Some rows at random."""


class Inputs(Protocol[F, W, E_co]):
    """What one task replaces: `files` of one unit, which `key` names. Must pickle."""

    @property
    def key(self) -> UnitKey: ...

    @property
    def files(self) -> tuple[F, ...]: ...

    def rows(self, storage: Storage) -> RowSource[F]: ...

    def packer(self, storage: Storage, run: Run, target_bytes: int) -> Writer[W]:
        """Writes files that tell later plans which run packed them to which target."""

    def clusterer(self, storage: Storage, run: Run, clustering: Clustering) -> Writer[W]:
        """Writes files that tell later plans which cube they are of."""

    def measure(self) -> Writer[WrittenDataFile]:
        """A writer as the others whose files tell their size and are forgotten."""

    def edit(self, written: Sequence[W], *, removed: Sequence[F]) -> E_co:
        """The change of the table's metadata that replaces `removed` by what was written."""
