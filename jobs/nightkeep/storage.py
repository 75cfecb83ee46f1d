"""Bytes in and out of one table's folder; every other module reads and writes through here.

Names are relative to the table's root. Nothing but a hint is ever overwritten: a write creates a file or fails.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from nightkeep.errors import AddressError, MissingFile


@dataclass(frozen=True, slots=True)
class Stored:
    """One file in storage: name relative to the root, size in bytes, modification time in epoch milliseconds."""

    name: str
    bytes: int
    modified_ms: int


class Storage(Protocol):
    """What a format may ask of a store. Only `put_if_absent` may race with others on one name."""

    @property
    def root(self) -> str: ...

    def read(self, name: str) -> bytes:
        """Whole content. Raises MissingFile."""

    def local_path(self, name: str) -> str:
        """A path that Arrow can open for random reads."""

    def exists(self, name: str) -> bool: ...

    def list(self, folder: str) -> tuple[Stored, ...]:
        """Files directly in `folder`, by name; empty where the folder does not exist."""

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A sink for a new file, durable once its context is left without an error."""

    def put(self, name: str, data: bytes) -> None:
        """Write a new file that nobody else would name."""

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Create `name` with `data` atomically; False, and nothing changed, where it exists already."""

    def replace(self, name: str, data: bytes) -> None:
        """Overwrite a hint, atomically; the only overwrite there is, of files that may lag or be lost."""

    def delete(self, name: str) -> bool:
        """Remove one file; False where it was gone."""


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A folder of a POSIX file system. Atomic creation is a hard link: link(2) fails where the name exists,
    unlike the check-then-rename that the formats' own local file systems use."""

    root: str

    def read(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            raise MissingFile(f"{self.root}/{name}", "a file that metadata names", "no such file") from None

    def local_path(self, name: str) -> str:
        return str(self._path(name))

    def exists(self, name: str) -> bool:
        return self._path(name).exists()

    def list(self, folder: str) -> tuple[Stored, ...]:
        try:
            found = [entry for entry in os.scandir(self._path(folder)) if entry.is_file()]
        except FileNotFoundError:
            return ()
        prefix = f"{folder}/" if folder else ""
        stats = [(prefix + entry.name, entry.stat()) for entry in found]
        return tuple(sorted(
            (Stored(name, stat.st_size, stat.st_mtime_ns // 1_000_000) for name, stat in stats),
            key=lambda stored: stored.name,
        ))  # fmt: skip

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())

    def put(self, name: str, data: bytes) -> None:
        with self.create(name) as sink:
            sink.write(data)

    def put_if_absent(self, name: str, data: bytes) -> bool:
        temporary = f"{name}.{uuid.uuid4().hex}.tmp"
        self.put(temporary, data)
        try:
            os.link(self._path(temporary), self._path(name))
        except FileExistsError:
            return False
        finally:
            os.unlink(self._path(temporary))
        _sync_folder(self._path(name).parent)
        return True

    def replace(self, name: str, data: bytes) -> None:
        temporary = f"{name}.{uuid.uuid4().hex}.tmp"
        self.put(temporary, data)
        os.replace(self._path(temporary), self._path(name))

    def delete(self, name: str) -> bool:
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            return False
        return True

    def _path(self, name: str) -> Path:
        return Path(self.root, name)


def open_storage(location: str) -> LocalStorage:
    """The store behind a table's location: a local path or a `file:` URI. Raises AddressError for the rest."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        raise AddressError(f"{location}: expected a local path or file:// URI, found scheme {parts.scheme!r}")
    path = unquote(parts.path) if parts.scheme else location
    if not os.path.isdir(path):
        raise AddressError(f"{location}: expected the folder of a table, found none")
    return LocalStorage(os.path.abspath(path))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
