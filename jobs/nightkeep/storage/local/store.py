"""A folder of a POSIX file system as a store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from errno import EDQUOT, EFBIG, EMLINK, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, EXDEV
from pathlib import PurePosixPath
from stat import S_IMODE, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, BinaryIO, Final
from uuid import uuid4

from nightkeep.errors import CorruptMetadata, MissingFile, NotCreated, RefusedTable
from nightkeep.limits import FILE
from nightkeep.storage.local.open_folders import listed_folder, opened_file, opened_folder, reopened
from nightkeep.storage.many_requests import each_chunk, merged
from nightkeep.storage.names import Bounds, bound_of, is_name, parts_of, require_bound
from nightkeep.storage.verbs import ListedFile, always, same_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH: Final = 10_000
_CHUNK: Final = 8 << 20
_UNLINKED: Final = frozenset({EXDEV, EPERM, EMLINK, ENOSYS, EOPNOTSUPP})
"""Errors of link(2) if a second name is impossible: on another mount, for another user's file (proc(5),
protected_hardlinks), for a file with too many names, on a file system without hard links."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A folder of a POSIX file system. Atomic creation is a hard link: link(2) fails if the name exists, unlike the
    check-then-rename of the formats' own local file systems.

    Files are created, moved and deleted only below one of `bounds`, folders below the root, and no symbolic link below
    it is followed. Files that are read there may be behind links that do not lead out of it.
    """

    root: str
    bounds: Bounds = field(default=("",), kw_only=True)

    def read(self, name: str) -> bytes:
        with (
            opened_file(self._path(name), self._anchor(name)) as descriptor,
            open(descriptor, "rb", closefd=False) as f,
        ):
            FILE.require(os.fstat(descriptor).st_size, self._subject(name))
            return f.read()

    def exists(self, name: str) -> bool:
        return os.path.exists(self._path(name))

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        files: list[ListedFile] = []
        prefix = f"{folder}/" if folder else ""
        with suppress(FileNotFoundError, NotADirectoryError), self._listed(folder) as entries:
            for entry in entries:
                # Others may delete files during the listing; those are not listed.
                with suppress(FileNotFoundError):
                    stat = entry.stat()
                    if entry.is_file():
                        files.append(ListedFile(prefix + entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000))
        return tuple(sorted(files, key=lambda stored: stored.name))

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        with self.changing(name, make=True) as (folder, last):
            with open(os.open(last, _NEW, 0o666, dir_fd=folder), "wb") as sink:
                yield sink
                sink.flush()
                os.fsync(sink.fileno())
            # A name is durable only after its folder is synced. A commit must not outlive the files that it names.
            os.fsync(folder)

    def put(self, name: str, data: bytes) -> None:
        with self.create(name) as sink:
            sink.write(data)

    def put_if_absent(self, name: str, data: bytes, *, temporary: str, may_go: Callable[[], bool] = always) -> bool:
        try:
            self.put(temporary, data)
        except OSError as failure:
            self.delete_all([temporary])
            raise NotCreated(self._subject(name), "to be created", str(failure)) from failure
        try:
            if not may_go():
                return False
            self._link(temporary, name)
        except FileExistsError:
            return False
        finally:
            self.delete(temporary)
        return True

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        with self.changing(name, make=True):
            self.put(temporary, data)
            self._rename(temporary, name)

    def open(self, name: str) -> pa.NativeFile:
        import pyarrow as pa  # noqa: PLC0415 -- DAG files import this module, and read nothing at random

        path = self._path(name)
        with opened_file(path, self._anchor(name)) as descriptor:
            # 55 MB of Parquet decode in 0.12 s, as if Arrow read the path itself; without the map in 0.13 s.
            return pa.memory_map(reopened(descriptor, path), "rb")

    def stat(self, name: str) -> ListedFile | None:
        try:
            status = os.lstat(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if S_ISDIR(status.st_mode):
            return None
        return ListedFile(name, status.st_size, status.st_mtime_ns // 1_000_000)

    def folders(self, folder: str) -> tuple[str, ...]:
        folders: list[str] = []
        with suppress(FileNotFoundError, NotADirectoryError), self._listed(folder) as entries:
            folders += [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return tuple(sorted(f"{folder}/{name}" if folder else name for name in folders))

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        batch: list[ListedFile] = []
        pending = [folder]
        while pending:
            for stored in self._files(pending.pop(), pending):
                batch.append(stored)
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        try:
            with self.changing(name) as (source, _), self.changing(to, make=True) as (target, _):
                self.given(source, target, name, to)
                os.fsync(target)
        except FileExistsError:
            return False
        except FileNotFoundError:
            raise MissingFile(self._subject(name), "a file to be moved", "no such file") from None
        if self.stat(to) is None or not may_go():
            raise OSError(
                f"{self._subject(name)}: expected to be moved in time, found that it took too long; it is left"
            )
        self.delete(name)
        return True

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        # To walk to a folder takes longer than to delete a file in it.
        kept = each_chunk(self._kept_in_folder, names, of=lambda name: (*parts_of(name)[:-1], not name.strip("./")))
        return tuple(merged(kept).items())

    def delete(self, name: str) -> bool:
        try:
            with self.changing(name) as (folder, last):
                self.removed(folder, last, name)
        except FileNotFoundError:
            return False
        return True

    def looked_at(self, folder: int, last: str) -> os.stat_result:
        """What the file `last` of an open folder is; a link is not followed."""
        return os.stat(last, dir_fd=folder, follow_symlinks=False)

    def removed(self, folder: int, last: str, name: str) -> None:
        """Remove the file `last` of an open folder; `name` is its whole name."""
        try:
            os.unlink(last, dir_fd=folder)
        except OSError as failure:
            failure.filename = self._subject(name)
            raise

    def _kept_in_folder(self, names: Sequence[str]) -> dict[str, str]:
        """As `delete_all`, for names in one folder."""
        kept: dict[str, str] = {}
        try:
            with suppress(FileNotFoundError), self.changing(names[0]) as (folder, _):
                for name in names:
                    self._path(name)
                    try:
                        self.removed(folder, parts_of(name)[-1], name)
                    except FileNotFoundError:
                        continue
                    except OSError as failure:
                        kept[name] = str(failure)
        except (OSError, RefusedTable) as failure:
            return dict.fromkeys(names, str(failure))
        return kept

    def _files(self, folder: str, pending: MutableSequence[str]) -> Iterator[ListedFile]:
        """Files directly in `folder`. Adds its subfolders to `pending`. Links count as files and are never followed."""
        prefix = f"{folder}/" if folder else ""
        with suppress(FileNotFoundError, NotADirectoryError), self._listed(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(prefix + entry.name)
                    continue
                # Others may delete files during the listing; those are not listed.
                with suppress(FileNotFoundError):
                    stat = entry.stat(follow_symlinks=False)
                    yield ListedFile(prefix + entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000)

    def given(self, source: int, target: int, name: str, to: str) -> None:
        """Give a file of an open folder a second name in another one, or make a copy with that name if links are
        impossible. Raises FileExistsError."""
        try:
            self._linked(source, target, name, to)
        except OSError as failure:
            if failure.errno not in _UNLINKED:
                raise
            status = self._lstat(name)
            if not S_ISREG(status.st_mode):
                raise
            self._copied(name, to, status)

    def _copied(self, name: str, to: str, status: os.stat_result) -> None:
        """Copy a file with its time and mode. The copy gets its name once it is complete; no engine reads it before.

        A crash may leave the copy under a temporary name that nobody else uses.
        """
        temporary = str(PurePosixPath(to).with_name(f".nightkeep-moving-{uuid4().hex}"))
        try:
            with self._plain(name) as source, self.create(temporary) as sink:
                shutil.copyfileobj(source, sink, _CHUNK)
                sink.flush()
                os.fchmod(sink.fileno(), S_IMODE(status.st_mode))
                os.utime(sink.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
            now = self._lstat(name)
            is_same = (now.st_size, now.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
            if not is_same or not self._equal(name, temporary):
                raise OSError(f"{self._subject(name)}: expected the bytes that were copied, found others; it is left")
            self._link(temporary, to)
        finally:
            self.delete(temporary)

    def _equal(self, name: str, other: str) -> bool:
        with self._plain(name) as ours, self._plain(other) as theirs:
            return same_bytes(ours, theirs)

    def _lstat(self, name: str) -> os.stat_result:
        with self.changing(name) as (folder, last):
            return self.looked_at(folder, last)

    @contextmanager
    def _plain(self, name: str) -> Iterator[BinaryIO]:
        """Open a file for reading. The file itself must not be a link."""
        with self.changing(name) as (folder, last), open(os.open(last, _PLAIN, dir_fd=folder), "rb") as source:
            yield source

    def _link(self, name: str, other: str) -> None:
        with self.changing(name) as (source, _), self.changing(other, make=True) as (target, _):
            self._linked(source, target, name, other)
            os.fsync(target)

    def _linked(self, source: int, target: int, name: str, other: str) -> None:
        last, new = parts_of(name)[-1], parts_of(other)[-1]
        os.link(last, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)

    def _rename(self, name: str, other: str) -> None:
        with self.changing(name) as (source, last), self.changing(other, make=True) as (target, new):
            os.replace(last, new, src_dir_fd=source, dst_dir_fd=target)

    @contextmanager
    def changing(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """For a file that is to change: its open folder, reached without following a link, and its name in that folder.

        Raises RefusedTable for a name below none of the bounds, and for a link on the way.
        """
        self._path(name)
        bound = require_bound(self.bounds, name, subject=self._subject(name))
        *parts, last = parts_of(name[len(bound) :])
        try:
            with opened_folder(f"{self.root}/{bound}".rstrip("/") or "/", parts, make=make) as folder:
                yield folder, last
        except OSError as failure:
            if failure.filename == last or (not failure.filename and failure.errno in (EDQUOT, EFBIG, ENOSPC)):
                failure.filename = self._subject(name)
            raise

    def _listed(self, folder: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return listed_folder(self._path(folder), self._anchor(folder))

    def _anchor(self, name: str) -> str | None:
        """The folder that links must not lead out of when this name is read; None if it is below no bound."""
        bound = bound_of(self.bounds, name)
        return None if bound is None else f"{self.root}/{bound}".rstrip("/") or "/"

    def _subject(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def _path(self, name: str) -> str:
        if not is_name(name):
            raise CorruptMetadata(f"{self.root}: file name", "a name below this folder", name)
        return "/".join((self.root.rstrip("/"), *parts_of(name))) or "/"
