"""A path on this machine -> an open folder or file, opened folder by folder, so that no symbolic link is followed.

Each name is opened relative to the descriptor of the folder above it (openat(2), O_NOFOLLOW). So a link that replaces a
folder between two steps is noticed too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ELOOP, ENODEV, ENXIO
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Final

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable

LINKED: Final = "a symbolic link that leads out of the table's folder is not followed"
ADVICE: Final = "move the files here, or mount their folder in the link's place"

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: otherwise the open of a FIFO without a writer waits."""
_NO_FILE: Final = frozenset({ELOOP, ENXIO, ENODEV})
"""Errors of open(2) for links in a circle, a socket, and a device without a driver."""
_DESCRIPTORS: Final = "/proc/self/fd"


@contextmanager
def opened_folder(anchor: str, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of the folder `parts` below `anchor`. With `make`, missing folders are created.

    Links on the way to `anchor` are followed, as the operator or the catalog chose that path. Raises RefusedTable for a
    link below it, FileNotFoundError, and NotADirectoryError.
    """
    if make:
        _make_anchor(Path(anchor))
    descriptor = os.open(anchor, _FOLDER)
    try:
        for depth, part in enumerate(parts, start=1):
            inner = _inner(descriptor, part, subject="/".join((anchor.rstrip("/"), *parts[:depth])), make=make)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(path: str, anchor: str | None) -> Iterator[int]:
    """The descriptor of a regular file for reading. With `anchor`, links are followed only if they stay below it.

    Raises MissingFile, RefusedTable for a link out of `anchor`, and CorruptMetadata for anything but a regular file.
    """
    try:
        descriptor = os.open(path, _FILE)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(path, "a file that metadata names", "no such file") from None
    except OSError as failure:
        if failure.errno in _NO_FILE:
            raise CorruptMetadata(path, "a regular file", str(failure.strerror)) from failure
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if S_ISDIR(mode):
            raise MissingFile(path, "a file that metadata names", "a folder")
        if not S_ISREG(mode):
            raise CorruptMetadata(path, "a regular file", "a device, a socket or a pipe")
        _require_below(descriptor, path, anchor)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def listed_folder(path: str, anchor: str | None) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of a folder. Their stat starts at the open folder, so the kernel walks the path once per folder, not
    once per file.

    Raises RefusedTable if a link leads out of `anchor`.
    """
    descriptor = os.open(path, _FOLDER)
    try:
        _require_below(descriptor, path, anchor)
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def reopened(descriptor: int, path: str) -> str:
    """A path that opens the same open file once more, if the system has such paths."""
    link = f"{_DESCRIPTORS}/{descriptor}"
    return link if os.path.exists(link) else path


def _require_below(descriptor: int, path: str, anchor: str | None) -> None:
    if anchor is None:
        return
    with _opened(anchor) as above:
        own = _real(above, anchor)
    real = _real(descriptor, path)
    if real != own and not real.startswith(f"{own.rstrip('/')}/"):
        raise RefusedTable(path, LINKED, ADVICE)


def _real(descriptor: int, path: str) -> str:
    """The path of an open file or folder, without any link."""
    try:
        return os.readlink(f"{_DESCRIPTORS}/{descriptor}")
    except OSError:
        return os.path.realpath(path)


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _inner(descriptor: int, part: str, *, subject: str, make: bool) -> int:
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
    except FileNotFoundError:
        if not make:
            raise
    except OSError:
        if S_ISLNK(os.stat(part, dir_fd=descriptor, follow_symlinks=False).st_mode):
            raise RefusedTable(subject, LINKED, ADVICE) from None
        raise
    # Another process may create it at the same time.
    with suppress(FileExistsError):
        os.mkdir(part, dir_fd=descriptor)
        os.fsync(descriptor)
    return _inner(descriptor, part, subject=subject, make=False)


def _make_anchor(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_anchor(folder.parent)
    folder.mkdir(exist_ok=True)
    with _opened(str(folder.parent)) as above:
        os.fsync(above)
