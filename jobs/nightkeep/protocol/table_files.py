"""What a format provides for sweep and expiry: where a table's files may be, and what needs them.

A file is live while a root reaches it: a snapshot, tag, branch or changelog, a retained version, a metadata file.
Names are relative to the store's root and spelled as the store does: decoded, without scheme and authority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NewType, TypeVar, cast

import pyarrow as pa

from nightkeep.errors import RefusedTable
from nightkeep.model import Address, Run
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.log_upkeep import LogUpkeep
from nightkeep.storage import Storage

_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field("name", pa.string(), nullable=False),
    pa.field("bytes", pa.int64()),
    pa.field("needed", pa.bool_(), nullable=False),
)
FILES = pa.schema(_FIELDS)
"""Live files. `bytes`: the size by metadata, null if not stated there. `needed`: a reader of the root opens the file,
so it must exist; other files are only protected, such as those that a retained commit removed. Names may repeat."""

R = TypeVar("R")
"""The value of a root."""
Q = TypeVar("Q")
"""A source of files. Hashes and pickles."""
R_co = TypeVar("R_co", covariant=True)
Q_co = TypeVar("Q_co", covariant=True)


@dataclass(frozen=True, slots=True)
class FileKind:
    """Files of one kind, such as `data` or `manifest`. `pattern` must match the whole name below the place.

    `pattern` must mean the same to RE2 and to Rust's regex: no look-around, no back-references.
    """

    name: str
    pattern: str


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A folder of the table, with all below it. The first of `kinds` that matches a file is the file's kind.

    A file of no kind is never removed. `folder` is empty for the store's root. `shared`: files of another table may be
    there too, with names of the same form, so only files that this table names are known to be its own.
    """

    folder: str
    kinds: tuple[FileKind, ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Where the files of one table may be.

    `home`: the folder that contains the quarantine.
    `foreign`: patterns of names below a place. A match shows that a deeper folder, the pattern's only group, is another
    table's; nothing in it is removed.
    `by_bare_name`: the format's own cleaning compares only the last component of names, so a file with the last
    component of a live file stays too.
    `floor_ms`: no younger file is removed unless the order allows it.
    `dry_only`: why no file may be removed from a table whose files can still be listed.
    `any_path`: metadata names files by paths that its author chose. A file that only metadata names, and no listing, is
    removed only if no folder on its path holds another table.
    `unreadable`: names of files in its folders that look like the table's metadata and cannot be read. They stay.
    """

    table: Address
    storage: Storage
    home: str
    places: tuple[TableFolder, ...]
    foreign: tuple[str, ...] = ()
    by_bare_name: bool = False
    floor_ms: int = DAY_MS
    dry_only: RefusedTable | None = None
    unreadable: tuple[str, ...] = ()
    any_path: bool = False


def refuse_changes(table_files: TableFiles) -> None:
    """Raises RefusedTable for a table whose files may be listed but not moved or deleted."""
    if table_files.dry_only is not None:
        raise table_files.dry_only


@dataclass(frozen=True, slots=True)
class Retention:
    """What to retain: `now_ms`, how old a file must be to be removed, and versions to keep.

    The kept versions only wait for a check. Their remaining files stay, but are not `needed`: no reader requires them.
    Versions `going` are about to be removed: what the current metadata names of them alone is not protected.
    """

    now_ms: int
    older_than_ms: int
    keep: frozenset[int] = frozenset()
    going: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Root(Generic[R_co]):
    """Something that keeps files alive. Equal ids mean equal content. `version` is set if readers can ask for it.

    `task` is the format's own value and pickles. `passing`: every commit replaces this root, so its disappearance does
    not mean that files are being deleted.
    """

    id: str
    task: R_co = field(compare=False)
    version: int | None = None
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Unproven:
    """`subject` is a list that is not proven complete: no other metadata would contradict if it lacked entries.

    `why` names the missing evidence. `kinds` are the kinds of files that only this list names, which are not removed
    then; empty means files of any kind.
    """

    subject: str
    why: str
    kinds: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.subject}: {self.why}"


@dataclass(frozen=True, slots=True)
class Reach(Generic[Q_co]):
    """What a root names: its files (schema FILES), and sources that name more files. Equal sources are read once.

    Sources hash and pickle. The files of the sources themselves, such as manifests, are among `files`. `unproven`:
    lists that were read and that nothing else confirms. `contents`: names and digests of metadata files that were read;
    two of them are equal only if one file was copied over the other.
    """

    files: pa.Table
    sources: tuple[Q_co, ...] = ()
    unproven: tuple[Unproven, ...] = ()
    contents: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Removal:
    """The totals of a removal, before or after it. `failed`: files that could not be removed. `older_than_ms`: the age
    that was asked for, None for the table's own."""

    files: int
    bytes: int
    older_than_ms: int | None
    failed: int = 0


@dataclass(frozen=True, slots=True)
class RemovalEntries:
    """Functions that write entries for removals to a table's history. They do not change what readers see."""

    announce: Callable[[Removal, Run], None]
    """Writes the entry before the first file is removed. Raises RefusedTable if the table forbids removals."""
    conclude: Callable[[Removal, Run], None]
    """Writes the entry after the last file, also if some could not be removed."""


@dataclass(frozen=True, slots=True)
class ExpireRequest:
    """What the caller asks for, besides the table's own options. Of the two, the one that keeps more applies.

    `keep` are versions that must not expire: those of runs that no check has judged yet.
    """

    now_ms: int
    keep: frozenset[int] = frozenset()
    older_than_ms: int | None = None
    retain_last: int | None = None


def _already_unreachable(run: Run) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Expiry(Generic[R_co]):
    """The roots that may expire, oldest first, and why others stay: (id, reason).

    `forget` makes the roots unreachable, oldest first, and deletes no other file; those are removed later. It returns
    False if another writer committed first: nothing has changed then, and the expiry must be planned anew. If the
    process is killed in between, every remaining version can be read. Safe to call again. By default nothing is left to
    do: readers can no longer reach the roots.

    `files_only`: only files of the roots are left to remove, if any.
    """

    roots: tuple[Root[R_co], ...]
    kept: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    forget: Callable[[Run], bool] = field(default=_already_unreachable, compare=False)
    files_only: bool = False


@dataclass(frozen=True, slots=True)
class LogPoint:
    """A version of a table, identified by content: the table's own id, and the digest of the version's commit.

    A log names a removed file once. A sweep remembers the point up to which it has removed what the log names, and the
    next one goes on from there. Where commits after the point are gone, only a listing finds their files.
    """

    table_id: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class LogRemovals(Generic[R_co]):
    """Files that the log names as removed, long enough ago.

    `roots`: what they reach are the files; none where the log names no such file. `through`: the newest version such
    that all versions up to it removed only such files. It is the point that was asked for if no later version did, and
    None without either.
    """

    roots: tuple[Root[R_co], ...]
    through: LogPoint | None


@dataclass(frozen=True, slots=True)
class RemovedByLog(Generic[R_co]):
    """Functions that read removals from a table's log. All raise EvidenceError for a log that cannot be read."""

    gap: Callable[[LogPoint | None], str | None]
    """Why the log does not name all that was removed since the point, or since the table's first version without one.
    None if it does."""
    removals: Callable[[LogPoint | None, Retention], LogRemovals[R_co]]
    """What was removed since the point, or since the table's first version. Nothing that a version to keep needs was
    removed by a version up to `through`."""
    settled: Callable[[Retention], LogPoint | None]
    """The newest point such that what was removed up to it is old enough for a sweep by a listing. None if none is."""


@dataclass(frozen=True, slots=True)
class RetainedFiles(Generic[R, Q]):
    """Functions of a format's room `retention`: the files of a table, and which of them are needed. Pickles.

    All raise EvidenceError for metadata that cannot be read or that contradicts other metadata, as no file may be
    called an orphan then, and RefusedTable for unknown features."""

    table_files: Callable[[], TableFiles]
    roots: Callable[[Retention], tuple[Root[R], ...]]
    """All roots, read again by each call. Raises CorruptMetadata if there is none."""
    reach: Callable[[Root[R]], Reach[Q]]
    """The files and sources of a root. Raises MissingFile for a missing file of the root, also if the root has just
    expired.

    Every list is compared with all that the root states of it. What the root does not state is `unproven`."""
    live: Callable[[Q], Iterator[pa.RecordBatch]]
    """The files (schema FILES) that one source of a Reach keeps alive."""
    expiry: Callable[[ExpireRequest], Expiry[R]]
    """What would expire, from metadata only. If it is empty, nothing is to be changed."""
    removals: RemovalEntries | None = None
    """None for a format whose history has no entries for removals."""
    log: LogUpkeep | None = None
    """For a format whose log of versions is tended apart from its data files."""
    by_log: RemovedByLog[R] | None = None
    """For a format whose log names the files that it removed."""


SomeRoot = NewType("SomeRoot", object)
"""The value of a root of a table of any format. Only that format looks into it."""
SomeSource = NewType("SomeSource", object)
"""A source of files of such a table."""
OpenRoot = Root[SomeRoot]
OpenExpiry = Expiry[SomeRoot]
OpenFiles = RetainedFiles[SomeRoot, SomeSource]


def of_any_format(files: RetainedFiles[R, Q]) -> OpenFiles:
    """The same value, for callers that only pass its roots and sources back to its own functions."""
    return cast(OpenFiles, files)


def files_table(names: Sequence[str], *, sizes: Sequence[int | None] | None = None, needed: bool = True) -> pa.Table:
    """A table with schema FILES for `names`."""
    columns: tuple[pa.Array[Any], ...] = (
        pa.array(names, pa.string()),
        pa.nulls(len(names), pa.int64()) if sizes is None else pa.array(sizes, pa.int64()),
        pa.repeat(pa.scalar(needed), len(names)),
    )
    return pa.Table.from_arrays(columns, schema=FILES)
