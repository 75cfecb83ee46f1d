"""What a format may ask of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow as pa


class ListedFile(NamedTuple):
    """One file in storage: name relative to the root, size in bytes, modification time in epoch milliseconds.

    A tuple, as a listing makes millions of them on their way into columns.
    """

    name: str
    bytes: int
    modified_ms: int


def always() -> bool:
    """A mover that nobody hurries."""
    return True


class Storage(Protocol):
    """What a format may ask of a store. Only `put_if_absent` and `replace` may race with others on one name.

    `temporary` is a name that nobody else would use; a death on the way may leave a file of that name behind.
    Raises CorruptMetadata for a name that leads out of the root: names come from metadata.
    """

    @property
    def root(self) -> str: ...

    def read(self, name: str) -> bytes:
        """Whole content. Raises MissingFile."""

    def open(self, name: str) -> pa.NativeFile:
        """A file for random reads, to be closed by the caller. Raises MissingFile."""

    def exists(self, name: str) -> bool: ...

    def stat(self, name: str) -> ListedFile | None:
        """One file; None where it does not exist."""

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        """Files directly in `folder`, by name; empty where the folder does not exist."""

    def folders(self, folder: str) -> tuple[str, ...]:
        """Folders directly in `folder`, by name; empty where it does not exist."""

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        """Every file below `folder`, at any depth, in batches and in any order. A link is a file of its own.

        What comes and goes meanwhile may or may not be among them.
        """

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A sink for a new file, durable once its context is left without an error."""

    def put(self, name: str, data: bytes) -> None:
        """Write a new file that nobody else would name. Raises FileExistsError, unless it is one of the same bytes
        and the store may have been asked twice."""

    def put_if_absent(self, name: str, data: bytes, *, temporary: str, may_go: Callable[[], bool] = always) -> bool:
        """Create `name` with `data` atomically; False, and nothing changed, where it exists already, or where `may_go`,
        which is asked right before, says no.

        An OSError leaves open which of the two happened. If it may go, False proves that the name exists, and not whose
        it is: where an answer is lost on the way, some stores are asked again, and we meet our own file.
        """

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        """Overwrite a hint, atomically; the only overwrite there is, of files that may lag or be lost."""

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        """Give a file another name, with its bytes; False, and nothing changed, where `to` exists.

        Right before `name` goes, however long it took until then, `to` is looked at, and then `may_go` is asked: an
        OSError where either says no, and `name` stays, `to` perhaps as well.

        Its time stays on a disk, and is that of the moving in a bucket. A death on the way leaves it under both names,
        and on a disk perhaps a hidden file beside `to`. Raises MissingFile.
        """

    def delete(self, name: str) -> bool:
        """Remove one file; False where it was gone."""

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Remove files, of which some may be gone; those that could not be removed, each with the reason."""


def spelled(storage: Storage, name: str) -> str:
    """Where a file is, by its name in storage, for messages."""
    return f"{storage.root.rstrip('/')}/{name}"
