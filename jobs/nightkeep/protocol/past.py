"""What a format provides of a table's past: the commits of all writers, and what each of them states of the rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol

import pyarrow as pa

from nightkeep.errors import MissingFile
from nightkeep.protocol.work import S, T, U

KeepsRows = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Some of the rows of a batch."""


class RowClaim(StrEnum):
    """What a commit states of the rows that readers see."""

    KEEPS_ROWS = "keeps-rows"
    """It writes the same rows in other files: a compaction, a clustering, another form of deletes."""
    CHANGES_ROWS = "changes-rows"
    TOUCHES_NO_FILES = "touches-no-files"
    """It changes metadata alone, such as a setting or a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCommit:
    """One commit, by whoever. `parent` is the version that it is built on, None where it is the first.

    `digest` is `VersionIdentity.commit` of the version. `kind` is the format's own word, such as COMPACT, `author` who
    made it, as far as metadata states. `rows`: by how many the commit states that the stored rows grew, None if it does
    not state it. `bytes_added`: of the files that it adds, as its metadata states them. `faults` are sentences on what
    its metadata contradicts in itself. `goes_back`: it states that it is a rollback.
    """

    version: int
    parent: int | None
    digest: str
    claim: RowClaim
    kind: str
    author: str
    time_ms: int
    rows: int | None = None
    bytes_added: int = 0
    faults: tuple[str, ...] = ()
    goes_back: bool = False

    def __str__(self) -> str:
        return f"version {self.version}, {self.kind} by {self.author}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Commits up to the newest version, oldest first. Each one's parent is the one before, but for gaps that `cut`
    explains: why commits that were asked for are not there.

    `undone` are versions that metadata still has and that the newest is not built on; `goes_back` of them states
    whether metadata records the rollback.
    """

    commits: tuple[PastCommit, ...]
    cut: str | None = None
    undone: tuple[PastCommit, ...] = ()


class ReadsPast(Protocol):
    """Reads the commits after the version `since`, and without it those that are not older than `since_ms`, the time in
    milliseconds. The newest version is read in any case. Metadata only.

    Raises EvidenceError for metadata that cannot be read.
    """

    def __call__(self, *, since: int | None, since_ms: int | None) -> Past: ...


@dataclass(frozen=True, slots=True)
class FileSample:
    """Which of the files that commits added are opened: so many of an audit and of a commit at most, chosen by `seed`,
    and no more than so many bytes of those whose values are read."""

    seed: str
    files: int = 200
    of_commit: int = 20
    bytes: int = 1 << 30


def _no_file_faults(commits: Sequence[int], sample: FileSample) -> Mapping[int, tuple[str, ...]]:
    return {}


def _never(failure: MissingFile) -> bool:
    return False


def _whole(before: T, after: T) -> tuple[T, T]:
    return before, after


def _none_twice(unit: object) -> int:
    return 0


def _not_recorded(version: int) -> bool:
    return False


def _none_expire(snapshot: object) -> str | None:
    return None


def _every_row(unit: object, clock_ms: int) -> KeepsRows:
    return lambda rows: rows


def _all_read(unit: object) -> str | None:
    return None


def _one_layout(unit: object) -> Hashable:
    return None


@dataclass(frozen=True, slots=True)
class PastReading(Generic[S, U]):
    """Functions of a format's room `reading` for an audit. Pickles."""

    read: ReadsPast
    files: Callable[[U], Mapping[Hashable, int]]
    """The data files of a unit and their bytes. A file with other deletes, or at another level, is another one."""
    comparable: Callable[[S, S], tuple[S, S]] = _whole
    """Two versions with the same columns, where the later one has some of its own that no row had before."""
    apart: Callable[[U, U], tuple[U, U]] = _whole
    """A unit at two versions, without files that readers of both see alike: those need not even be opened."""
    expires: Callable[[S], str | None] = _none_expire
    """The option of a version by which a compaction may leave out rows by their age, None without one."""
    without_aged: Callable[[U, int], KeepsRows] = _every_row
    """Leaves out of rows those that an expiry by age before the time, in milliseconds, may have changed: of the unit as
    it was before, the keys of which a row has expired."""
    twice: Callable[[U], int] = _none_twice
    """How many rows of a unit readers see although a newer row of the same key is there. Reads at most key columns."""
    is_expired: Callable[[MissingFile], bool] = _never
    """Whether the file may be gone although the log has a version with it, as only older versions than the newest need
    it: for a format that deletes files before versions."""
    unread: Callable[[U], str | None] = _all_read
    """Why the rows of a unit cannot be read, None if they can."""
    went_back: Callable[[int], bool] = _not_recorded
    """Whether earlier metadata, which the newest goes on from, had this version as the newest: somebody has gone back
    behind it since, and it has expired."""
    layout: Callable[[U], Hashable] = _one_layout
    """What rows are divided into units by: a compaction may move rows from units of one layout to those of another."""
    file_faults: Callable[[Sequence[int], FileSample], Mapping[int, tuple[str, ...]]] = _no_file_faults
    """Sentences on what files contradict of the metadata of these commits, which added them: counts of rows, vectors,
    statistics. By version, without those that have none."""
