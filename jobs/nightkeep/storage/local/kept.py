"""Small files in a folder of this machine. A file is written beside its place, made durable, and renamed.

Writers of one folder take turns by a lock on it, where the file system has such locks.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO, ClassVar, cast

from nightkeep.storage.kept import MOST_BYTES, KeptFile, ListedKept, require_small


@dataclass(frozen=True, slots=True)
class KeptOnDisk:
    """The verbs of `KeptFiles` over a folder. Others may put anything there: links, pipes, folders."""

    root: str
    at_once: ClassVar[int] = 1

    def address(self, name: str) -> str:
        return os.path.join(self.root, name)

    def read(self, name: str) -> KeptFile:
        """A link to nothing is an OSError: something stands there."""
        path = self.address(name)
        try:
            return KeptFile(_bytes(path))
        except FileNotFoundError as failure:
            if os.path.islink(path):
                raise OSError("a link to nothing") from failure
            raise
        except NotADirectoryError as failure:
            raise FileNotFoundError(failure.errno, failure.strerror, path) from failure

    def write(self, name: str, data: bytes) -> None:
        path = self.address(name)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with _in_turn(path), _replaced(path) as sink:
            sink.write(data)

    def swap(self, name: str, data: bytes, *, read: KeptFile | None) -> bool:
        path = self.address(name)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with _in_turn(path):
            if self._is(name, read):
                with _replaced(path) as sink:
                    sink.write(data)
                return True
            return False

    def remove(self, name: str, *, read: KeptFile | None) -> bool:
        path = self.address(name)
        with _in_turn(path):
            if read is not None and not self._is(name, read):
                return False
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(path)
            return True

    def discard(self, name: str, *, read: KeptFile) -> bool:
        return self.remove(name, read=read)

    def stand_in(self, name: str, to: str) -> None:
        """A link, which needs no space on a full disk."""
        os.link(self.address(name), self.address(to))

    @contextmanager
    def write_stream(self, name: str) -> Iterator[BinaryIO]:
        path = self.address(name)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with _replaced(path) as sink:
            yield sink

    def list(self, folder: str) -> tuple[ListedKept, ...]:
        """Folders too: one may stand where a document should be."""
        try:
            with os.scandir(self.address(folder)) as entries:
                found = [each for entry in entries for each in _listed(entry)]
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(sorted(found, key=lambda each: each.name))

    def folders(self) -> tuple[str, ...]:
        try:
            with os.scandir(self.root or ".") as entries:
                return tuple(sorted(entry.name for entry in entries if entry.is_dir()))
        except FileNotFoundError:
            return ()

    def exists(self) -> bool:
        return os.path.isdir(self.root)

    def prepare(self, folder: str) -> None:
        """A file system renames and locks."""
        os.makedirs(self.address(folder), exist_ok=True)

    def _is(self, name: str, read: KeptFile | None) -> bool:
        try:
            found = self.read(name)
        except FileNotFoundError:
            return read is None
        return read is not None and found.data == read.data


def _listed(entry: os.DirEntry[str]) -> Iterator[ListedKept]:
    with suppress(OSError):
        yield ListedKept(entry.name, entry.stat(follow_symlinks=False).st_mtime_ns)


@contextmanager
def _in_turn(path: str) -> Iterator[None]:
    """The lock of the file's folder."""
    try:
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield
        return
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        # A process that was forked meanwhile holds the folder open too.
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)
        os.close(folder)


@contextmanager
def _replaced(path: str) -> Iterator[BinaryIO]:
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as sink:
            yield cast(BinaryIO, sink)
            sink.flush()
            os.fsync(sink.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _bytes(path: str) -> bytes:
    # With O_NONBLOCK a FIFO without a writer opens at once and is then refused; otherwise the open would wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("no regular file")
        require_small(status.st_size)
        with os.fdopen(descriptor, "rb", closefd=False) as source:
            return source.read(MOST_BYTES)
    finally:
        os.close(descriptor)
