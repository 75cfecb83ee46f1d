"""The verbs of a store, which formats call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

_COMPARED: Final = 8 << 20
"""Bytes of each file in memory while two are compared."""


class ListedFile(NamedTuple):
    """One file in storage: name relative to the root, size in bytes, modification time in epoch milliseconds.

    A tuple, because a listing makes millions of them before they become columns.
    """

    name: str
    bytes: int
    modified_ms: int


def always() -> bool:
    """A `may_go` that allows every file."""
    return True


class Readable(Protocol):
    """What is read from its begin to its end."""

    def read(self, size: int, /) -> bytes: ...


class Storage(Protocol):
    """The verbs of a store. Only `put_if_absent` and `replace` may race with other writers on one name.

    `temporary` is a name that nobody else uses; a crash may leave a file with that name. Raises CorruptMetadata for a
    name that leads out of the root, as names come from metadata.
    """

    @property
    def root(self) -> str: ...

    def read(self, name: str) -> bytes:
        """Whole content. Raises MissingFile."""

    def open(self, name: str) -> pa.NativeFile:
        """A file for random reads, to be closed by the caller. Raises MissingFile."""

    def exists(self, name: str) -> bool: ...

    def stat(self, name: str) -> ListedFile | None:
        """One file; None if it does not exist."""

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        """Files directly in `folder`, sorted by name; empty if the folder does not exist."""

    def folders(self, folder: str) -> tuple[str, ...]:
        """Folders directly in `folder`, sorted by name; empty if it does not exist."""

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        """Every file below `folder`, at any depth, in batches and in any order. A link counts as a file.

        Files that are created or deleted meanwhile may or may not be included.
        """

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A sink for a new file. The file is durable once the context is left without an error."""

    def put(self, name: str, data: bytes) -> None:
        """Write a new file whose name nobody else uses. Raises FileExistsError, unless the existing file has the same
        bytes and may be the result of a repeated request."""

    def put_if_absent(self, name: str, data: bytes, *, temporary: str, may_go: Callable[[], bool] = always) -> bool:
        """Create `name` with `data` atomically. False, and nothing changes, if the name exists, or if `may_go`, called
        directly before, returns False.

        After an OSError it is unknown whether the file was created. False does not prove that the file is another's:
        after a lost answer some stores get the request again, which then finds our own file.
        """

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        """Overwrite a hint atomically. Only for files that may be out of date or lost; nothing else is overwritten."""

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        """Move a file to the name `to`. False, and nothing changes, if `to` exists.

        Directly before `name` is removed, `to` is checked and then `may_go` is called. If either fails, OSError is
        raised, and `name` stays; `to` may stay too.

        On a disk the file keeps its time; in a bucket it gets the time of the move. A crash may leave it under both
        names, and on a disk also a hidden file beside `to`. Raises MissingFile.
        """

    def delete(self, name: str) -> bool:
        """Remove one file; False if it did not exist."""

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Remove files; some may not exist. Returns those that could not be removed, each with the reason."""


def delete_each(storage: Storage, names: Sequence[str]) -> None:
    """Remove files one by one; some may not exist."""
    for name in names:
        storage.delete(name)


def same_bytes(ours: Readable, theirs: Readable) -> bool:
    """Whether two open files have equal bytes from here on."""
    while True:
        chunk = ours.read(_COMPARED)
        if chunk != theirs.read(_COMPARED):
            return False
        if not chunk:
            return True


def spelled(storage: Storage, name: str) -> str:
    """The full path of a file, for messages."""
    return f"{storage.root.rstrip('/')}/{name}"
