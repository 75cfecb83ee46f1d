"""What a format tells about a table whose files are to be swept or expired: where they may be, and what needs them.

A file is live as long as a root reaches it: a snapshot, tag, branch or changelog, a retained version, a metadata file.
Names are relative to the store's root, as the store spells them: decoded, without scheme and authority.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from nightkeep.errors import RefusedTable
from nightkeep.model import Address, Run
from nightkeep.storage import Storage

_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field("name", pa.string(), nullable=False),
    pa.field("bytes", pa.int64()),
    pa.field("needed", pa.bool_(), nullable=False),
)
FILES = pa.schema(_FIELDS)
"""Live files. `bytes` as metadata says, null where it does not; `needed`: a reader of the root opens it, so that it
must be there. Others are only protected, such as what a retained commit removed. A name may come repeatedly."""

DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class FileKind:
    """Files of one kind, such as `data` or `manifest`: those whose name below their place `pattern` matches as a whole.

    `pattern` is a regular expression that RE2 and Rust's regex read alike: no look-around, no back-references.
    """

    name: str
    pattern: str


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A folder of the table's own, with all below it; the first of `kinds` that matches a file is its kind.

    A file of no kind is never touched. `folder` is empty for the store's root. `shared`: files of another table may be
    there that nothing tells from this one's, so that only what the table itself names is known to be its own.
    """

    folder: str
    kinds: tuple[FileKind, ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Where files of one table may be, and nothing of another's.

    `home` is the folder that the quarantine is kept in. `foreign`: patterns of names below a place which, where they
    are found in any deeper folder, make that folder another table's, to be left alone with all below it; a pattern's
    only group is that folder. `by_bare_name`: the format's own cleaning goes by the last part of a name alone, so that
    a file with the bare name of a live one stays as well. `floor_ms`: no younger file is touched unless told.
    `dry_only`: why nothing may be changed, of a table whose files can be told all the same.
    """

    table: Address
    storage: Storage
    home: str
    places: tuple[TableFolder, ...]
    foreign: tuple[str, ...] = ()
    by_bare_name: bool = False
    floor_ms: int = DAY_MS
    dry_only: RefusedTable | None = None


def refuse_changes(territory: TableFiles) -> None:
    """Raises RefusedTable for a table of which files can be told and none may be moved or deleted."""
    if territory.dry_only is not None:
        raise territory.dry_only


@dataclass(frozen=True, slots=True)
class Retention:
    """What is asked of roots: `now_ms`, how old a file must be to go, and versions to keep: what is left of them stays.

    They wait for a check, and no reader counts on them: files that only they name are not `needed`.
    """

    now_ms: int
    older_than_ms: int
    keep: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Root:
    """Something that keeps files alive. Equal ids mean equal content; `version` is set where readers can ask for it.

    `task` is the format's own, and pickles. `passing`: every commit puts another one in its place, so that it is no
    sign of files about to go where it is gone.
    """

    id: str
    task: object = field(compare=False)
    version: int | None = None
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Unproven:
    """`subject` could lack entries, and nothing that is told elsewhere would contradict: there is no evidence.

    `why` says what is not told. `kinds` are those of files that only it would name, which are left alone then; empty:
    files of any kind.
    """

    subject: str
    why: str
    kinds: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.subject}: {self.why}"


@dataclass(frozen=True, slots=True)
class Reach:
    """What a root names itself: FILES, and what else is to be read for more; equal sources are read once.

    Sources hash and pickle. Files of the sources themselves (manifests, say) are among `files`. `unproven`: what was
    read and nothing else confirms. `contents`: names and digests of metadata files that were read, of which no two
    have one content unless one was copied over the other.
    """

    files: pa.Table
    sources: tuple[object, ...] = ()
    unproven: tuple[Unproven, ...] = ()
    contents: tuple[tuple[str, str], ...] = ()


@runtime_checkable
class Sweeps(Protocol):
    """A table whose orphans can be told. Pickles. Every verb raises EvidenceError for metadata it cannot read, or that
    contradicts what is told elsewhere: nothing may be called an orphan then. RefusedTable for features unknown."""

    def territory(self) -> TableFiles: ...

    def roots(self, retention: Retention) -> tuple[Root, ...]:
        """All that keeps files alive now, listed afresh by each call. At least one, else CorruptMetadata."""

    def reach(self, root: Root) -> Reach:
        """Raises MissingFile for what the root must have and has not, be it only because it expired meanwhile.

        What is read has been compared with all that the root tells of it; what it does not tell is `unproven`."""

    def live(self, source: object) -> Iterator[pa.RecordBatch]:
        """FILES that one source of a Reach keeps alive."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Files about to go, or gone: `failed` could not be removed. `older_than_ms` is the age that was asked for, None:
    as the table says."""

    files: int
    bytes: int
    older_than_ms: int | None
    failed: int = 0


@runtime_checkable
class Announces(Protocol):
    """A table whose history tells of removals; neither entry changes what readers see."""

    def announce(self, removal: Removal, run: Run) -> None:
        """Before the first file goes. Raises RefusedTable where the table forbids removals."""

    def conclude(self, removal: Removal, run: Run) -> None:
        """After the last one, also where some failed."""


@dataclass(frozen=True, slots=True)
class ExpireRequest:
    """What the caller asks beyond the table's own options; the gentler of the two holds.

    `keep` are versions that must not go: bases of runs that no check has judged yet.
    """

    now_ms: int
    keep: frozenset[int] = frozenset()
    older_than_ms: int | None = None
    retain_last: int | None = None


@dataclass(frozen=True, slots=True)
class Expiry:
    """What may go, oldest first, and why the rest stays: (id, reason). `state` is the format's own, for `forget`.

    `files_only`: the roots are out of every reader's reach already, so that only their files are left to go, if any.
    """

    roots: tuple[Root, ...]
    kept: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    state: object = None
    files_only: bool = False


@runtime_checkable
class Expires(Sweeps, Protocol):
    """A table whose old versions can be let go."""

    def expiry(self, request: ExpireRequest) -> Expiry:
        """What would go, from metadata only. An empty one is a reason to change nothing."""

    def forget(self, expiry: Expiry, run: Run) -> bool:
        """Make the roots unreachable, oldest first, and delete no other file: what only they reached is removed later.

        False, and nothing changed, where another writer was first and all is to be planned anew. Killed in the middle
        it leaves a table whose every remaining version can be read. Safe to call again.
        """


def files_table(names: Sequence[str], *, sizes: Sequence[int | None] | None = None, needed: bool = True) -> pa.Table:
    """FILES of `names`."""
    columns: tuple[pa.Array[Any], ...] = (
        pa.array(names, pa.string()),
        pa.nulls(len(names), pa.int64()) if sizes is None else pa.array(sizes, pa.int64()),
        pa.repeat(pa.scalar(needed), len(names)),
    )
    return pa.Table.from_arrays(columns, schema=FILES)
