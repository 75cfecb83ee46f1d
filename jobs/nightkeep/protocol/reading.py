"""What a format provides to read rows for people: a version as its engine shows it, and the files to read of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.protocol.work import S, Snapshot, U, Unit

if TYPE_CHECKING:
    # What reads no rows for people must not load a kernel.
    from nightkeep.kernels.spans import ColumnSpans

Path = tuple[str, ...]
"""A column, or a field of a struct, by logical names."""


class ReadView(StrEnum):
    """Which rows of a version a reader sees."""

    RAW = "raw"
    """The stored rows that no deletion vector deletes, nothing merged."""
    MERGE_ON_READ = "merge-on-read"
    """Every committed row, with newer versions of rows and all deletes applied."""
    READ_OPTIMIZED = "read-optimized"
    """What is compacted as far as it goes: the rows of the top level."""


class RowFile(Protocol):
    """An open data file. Columns have the names and types of the version that is read."""

    @property
    def subject(self) -> str: ...

    @property
    def groups(self) -> Sequence[int]:
        """The number of rows of each row group."""

    def spans(self, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
        """Bounds of these columns in each row group. A column without known bounds may be left out."""

    def pieces(self, columns: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """Rows of row groups in file order, deleted ones too, each piece with the position of its first row."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A data file of a section. `rows` are physical rows, None if unknown."""

    name: str
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class FileSection(Generic[U]):
    """Files of one unit that are read together; `unit` has these files only, in this order.

    `merges`: several of their rows may make one, so that only columns of `decisive` may leave out files. They decide
    which rows become one. Otherwise each file is read by itself.
    """

    unit: U
    files: tuple[ReadFile, ...]
    merges: bool = False
    decisive: frozenset[str] = frozenset()


def no_merge(unit: object, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """For a format whose files are read one by one."""
    return iter(())


@dataclass(frozen=True, slots=True)
class FileReads(Generic[U]):
    """Functions that read the files of a unit, on any machine. They pickle, as splits are read by tasks."""

    spans: Callable[[U, Collection[Path]], Mapping[Path, ColumnSpans]]
    """Bounds of these columns in each file of the unit, in their order, from metadata; partition values are bounds too.
    A column may be left out."""
    partition: Callable[[U, Collection[Path]], Mapping[Path, ColumnSpans]]
    """The unit's partition values among these columns, as bounds of one part."""
    open: Callable[[U, str], RowFile]
    """The data file of this name."""
    hidden: Callable[[U], Mapping[str, BitMap64]]
    """Positions of deleted rows by file name, of all files of the unit."""
    narrowed: Callable[[U, Collection[str]], U]
    """The unit with only the files of these names."""
    merged: Callable[[U, Sequence[str]], Iterator[pa.RecordBatch]] = no_merge
    """The rows that a merge of all files of the unit shows, of these columns. Only for sections that merge."""


class FindsVersion(Protocol[S]):
    """Reads a version by number or tag, with its columns; the newest, with the newest columns, by default.

    `read_as`: with the columns of that version. Raises RefusedTable for what no reader of ours handles, and UsageError
    for a version or tag that is not there.
    """

    def __call__(self, version: int | None = None, tag: str | None = None, *, read_as: S | None = None) -> S: ...


@dataclass(frozen=True, slots=True)
class ChangelogReads(Generic[S, U]):
    """Files in which commits report what they changed, as rows with the kind of each change."""

    sections: Callable[[S, int], Sequence[FileSection[U]]]
    """Files of the commits after a version up to this one, in the order of commits. None of them merges.

    Raises UsageError for versions that are not there, and RefusedTable for a table whose commits report no changes."""
    kind: str
    """The stored column that has the kind of a change, as a place in `kinds`."""
    kinds: tuple[str, ...]


def any_bucket(unit: object, keys: Mapping[str, Sequence[object]]) -> bool:
    """For a format without buckets."""
    return True


def by_bytes(snapshot: object) -> Sequence[str]:
    """For a format without collations."""
    return ()


def as_read(snapshot: object) -> pa.Schema:
    """For a format whose columns are shown as they are read."""
    return pa.schema([])


def shows_newest(snapshot: object) -> None:
    """For a format whose tables store no setting that changes what a read shows."""


@dataclass(frozen=True, slots=True)
class TableReading(Generic[S, U]):
    """Functions of a format's room `reading`."""

    snapshot: FindsVersion[S]
    columns: Callable[[S], pa.Schema]
    """The columns that readers see, in the table's order."""
    default_view: Callable[[S], ReadView]
    """The view of the engine's own batch read."""
    sections: Callable[[S, ReadView], Sequence[FileSection[U]]]
    """What a reader with this view reads. Raises RefusedTable for a view that the table does not have."""
    files: FileReads[U]
    content: Callable[[U], Hashable]
    """The unit's files with all deletes that may be of them. Units of one key and equal content have the same rows."""
    may_hold: Callable[[U, Mapping[str, Sequence[object]]], bool] = any_bucket
    """Whether the unit's bucket can hold a row with one of the wanted values in each of these columns."""
    shown: Callable[[S], pa.Schema] = as_read
    """Columns for which Arrow has a type of its own, with that type. Their values are read in its storage type."""
    collated: Callable[[S], Sequence[str]] = by_bytes
    """The columns that no condition may name, because their order and equality are not those of their bytes."""
    changelog: ChangelogReads[S, U] | None = None
    """None for a format whose commits report no changes that we read."""
    require_newest: Callable[[S], None] = shows_newest
    """Raises RefusedTable if a setting stored in the table makes the engine's own batch read show other rows than those
    of the newest version in the default view."""


OpenReading = TableReading[Snapshot, Unit]
"""The reading of a table of any format. Only that format looks into its snapshots and units."""
