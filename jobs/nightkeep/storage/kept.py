"""The verbs of small files that several writers change: documents, holds and ledgers, in a folder, a bucket or HDFS.

Names are relative to the place, with `/` between folders. Everything that Nightkeep keeps beside the tables goes
through this protocol, so nothing needs a folder that two machines share.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

MOST_BYTES: Final = 256 << 20
"""A document of a million files is about this large. A larger file was not written by Nightkeep."""
REMOVED: Final = b'{"removed": true}\n'
"""The content of a file that was removed on a condition, where a store replaces on a condition but deletes on none."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """The bytes of a file when it was read, and the store's tag of them. A change requires that tag."""

    data: bytes
    tag: object = None


@dataclass(frozen=True, slots=True)
class ListedKept:
    """One file of a folder: its name in the folder, and when it was written, in nanoseconds since 1970."""

    name: str
    modified_ns: int


class KeptFiles(Protocol):
    """The verbs of a place. Every write is complete and durable, or was not done.

    Verbs raise OSError if the store does not answer. `at_once` is how many files are best read at the same time.
    """

    @property
    def root(self) -> str: ...

    @property
    def at_once(self) -> int: ...

    def address(self, name: str) -> str:
        """Where a file is, for people and for other processes."""

    def read(self, name: str) -> KeptFile:
        """Raises FileNotFoundError, and ValueError for what is no file of a bounded size."""

    def write(self, name: str, data: bytes) -> None:
        """Create a file, or replace whatever it holds: readers see the old content or the new one."""

    def swap(self, name: str, data: bytes, *, read: KeptFile | None) -> bool:
        """Replace what was read, or create what was not there. False, and nothing changes, if it is another content by
        now; then it is read again. After an OSError it is unknown whether the change was done."""

    def remove(self, name: str, *, read: KeptFile | None) -> bool:
        """Remove what was read; False if it is another content by now. None: whatever is there."""

    def discard(self, name: str, *, read: KeptFile) -> bool:
        """Remove what was read, and the place of it, for a file that nobody is about to change; False if it is another
        content by now. A store that deletes on no condition may lose what is written between its two requests."""

    def stand_in(self, name: str, to: str) -> None:
        """Make the file `to` have the content of `name`, with less space than a write needs, if the store can.

        Raises FileExistsError if `to` exists."""

    def write_stream(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A sink for a large file, which is created or replaced once the context is left without an error."""

    def list(self, folder: str) -> Sequence[ListedKept]:
        """Files directly in a folder, sorted by name; none if there is no such folder."""

    def folders(self) -> Sequence[str]:
        """Folders directly in this place, sorted by name; none if the place does not exist."""

    def exists(self) -> bool:
        """Whether the place is there at all: a folder, or an object below the prefix."""

    def prepare(self, folder: str) -> None:
        """Make a folder, so that a write in it needs nothing but the file. Raises RefusedTable if the store does not
        keep what `swap` promises."""


def require_small(size: int, most: int = MOST_BYTES) -> None:
    """Raise ValueError for a file of more bytes than are read."""
    if size > most:
        raise ValueError(f"{size:,} bytes, of which at most {most:,} are read")
