"""Bytes in and out of one table's folder; every other module reads and writes through here.

Names are relative to the table's root. Nothing but a hint is ever overwritten: a write creates a file or fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from nightkeep.errors import AddressError, CorruptMetadata, MissingFile


@dataclass(frozen=True, slots=True)
class Stored:
    """One file in storage: name relative to the root, size in bytes, modification time in epoch milliseconds."""

    name: str
    bytes: int
    modified_ms: int


class Storage(Protocol):
    """What a format may ask of a store. Only `put_if_absent` and `replace` may race with others on one name.

    `temporary` is a name that nobody else would use; a death on the way may leave a file of that name behind.
    Raises CorruptMetadata for a name that leads out of the root: names come from metadata.
    """

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

    def put_if_absent(self, name: str, data: bytes, *, temporary: str) -> bool:
        """Create `name` with `data` atomically; False, and nothing changed, where it exists already.

        An OSError leaves open which of the two happened.
        """

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
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
        found: list[Stored] = []
        prefix = f"{folder}/" if folder else ""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self._path(folder)) as entries:
            for entry in entries:
                # Others delete while we list: a file that is gone by now is not listed.
                with suppress(FileNotFoundError):
                    stat = entry.stat()
                    if entry.is_file():
                        found.append(Stored(prefix + entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000))
        return tuple(sorted(found, key=lambda stored: stored.name))

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        path = self._path(name)
        _make_folder(path.parent)
        with open(path, "xb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        # The name is durable only with its folder: a commit must not outlive the files it names.
        _sync_folder(path.parent)

    def put(self, name: str, data: bytes) -> None:
        with self.create(name) as sink:
            sink.write(data)

    def put_if_absent(self, name: str, data: bytes, *, temporary: str) -> bool:
        self.put(temporary, data)
        try:
            self._link(temporary, name)
        except FileExistsError:
            return False
        finally:
            self.delete(temporary)
        return True

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        self.put(temporary, data)
        self._rename(temporary, name)

    def delete(self, name: str) -> bool:
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            return False
        return True

    def _link(self, name: str, other: str) -> None:
        os.link(self._path(name), self._path(other))
        _sync_folder(self._path(other).parent)

    def _rename(self, name: str, other: str) -> None:
        os.replace(self._path(name), self._path(other))

    def _path(self, name: str) -> Path:
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts:
            raise CorruptMetadata(f"{self.root}: file name", "a name below this folder", name)
        return Path(self.root, relative)


def open_storage(location: str) -> LocalStorage:
    """The store behind a table's location: a local path or a `file:` URI. Raises AddressError for the rest."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        raise AddressError(f"{location}: expected a local path or file:// URI, found scheme {parts.scheme!r}")
    path = unquote(parts.path) if parts.scheme else location
    if not os.path.isdir(path):
        raise AddressError(f"{location}: expected the folder of a table, found none")
    return LocalStorage(os.path.abspath(path))


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
