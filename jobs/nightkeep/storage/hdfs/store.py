"""A folder of HDFS as a store. A file gets its name once it is complete, by a rename that never overwrites.

A file that is being written has a name too, so a commit is written under another name first. A writer that is killed
leaves such a file; nobody waits for its lease, as it is never written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from pathlib import PurePosixPath
from typing import BinaryIO, Final, TypeVar

import pyarrow as pa
from hdfs_native import Client, FileStatus, WriteOptions

from nightkeep.errors import AddressError, CorruptMetadata, MissingFile, NotCreated, RefusedTable
from nightkeep.limits import FILE
from nightkeep.storage.hdfs.client import asked, client
from nightkeep.storage.hdfs.files import open_ranges, written
from nightkeep.storage.hdfs.names import SCHEME, is_hdfs_name, split_hdfs
from nightkeep.storage.many_requests import at_once
from nightkeep.storage.names import Bounds, bound_of, parts_of, require_bound
from nightkeep.storage.near_folders import near_folder
from nightkeep.storage.verbs import ListedFile, always

T = TypeVar("T")

_PAGE: Final = 1000
_BATCH: Final = 10_000
_DELETED_AT_ONCE: Final = 128
_PIECE: Final = 32 * 1024 * 1024
_OPEN_FOLDER: Final = 0o755
_NO_EXECUTION: Final = 0o666


@dataclass(frozen=True, slots=True)
class HdfsStorage:
    """A folder of HDFS. `root` is like `hdfs://namenode:8020/warehouse/t`, or `hdfs://nameservice/...`.

    Files are created, moved and deleted only below one of `bounds`, folders below the root. New files and folders have
    the permissions of the bound, so that a group of users can go on with them. Failures are waited out for a minute;
    then OSError is raised. PermissionError is raised at once.
    """

    root: str
    bounds: Bounds = field(default=("",), kw_only=True)

    def read(self, name: str) -> bytes:
        path = self._path(name)
        reader = self._ask(name, lambda client: client.read(path))
        FILE.require(len(reader), self._subject(name))
        lengths = ((start, min(_PIECE, len(reader) - start)) for start in range(0, len(reader), _PIECE))
        return b"".join(self._transfer(name, partial(reader.read_range, *length)) for length in lengths)

    def open(self, name: str) -> pa.NativeFile:
        path = self._path(name)
        reader = self._ask(name, lambda client: client.read(path))
        return open_ranges(reader, partial(self._transfer, name), subject=self._subject(name))

    def exists(self, name: str) -> bool:
        return self._status(name) is not None

    def stat(self, name: str) -> ListedFile | None:
        status = self._status(name)
        return None if status is None or status.isdir else ListedFile(name, status.length, status.modification_time)

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        files = (self._listed(entry) for entry in self._entries(folder) if not entry.isdir)
        return tuple(sorted(files, key=lambda stored: stored.name))

    def folders(self, folder: str) -> tuple[str, ...]:
        return tuple(sorted(self._listed(entry).name for entry in self._entries(folder) if entry.isdir))

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        batch: list[ListedFile] = []
        pending = [folder]
        while pending:
            for entry in self._entries(pending.pop()):
                stored = self._listed(entry)
                if entry.isdir:
                    pending.append(stored.name)
                else:
                    batch.append(stored)
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        path = self._own_path(name)
        options = WriteOptions(overwrite=False, create_parent=True, permission=self._mode(name) & _NO_EXECUTION)
        writer = self._ask(name, lambda client: client.create(path, options))
        with written(writer, partial(self._transfer, name), partial(self._removed, name)) as sink:
            yield sink

    def put(self, name: str, data: bytes) -> None:
        with self.create(name) as sink:
            sink.write(data)

    def put_if_absent(self, name: str, data: bytes, *, temporary: str, may_go: Callable[[], bool] = always) -> bool:
        self._own_path(name)
        try:
            self.put(temporary, data)
        except OSError as failure:
            self.delete_all([temporary])
            raise NotCreated(self._subject(name), "to be created", str(failure)) from failure
        is_created = False
        try:
            is_created = may_go() and self._renamed(temporary, name)
        finally:
            if not is_created:
                self.delete_all([temporary])
        return is_created

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        with self.replaced(name, temporary=temporary) as sink:
            sink.write(data)

    @contextmanager
    def replaced(self, name: str, *, temporary: str) -> Iterator[BinaryIO]:
        """The sink of a file that takes the place of `name` once the context is left without an error."""
        self._own_path(name)
        with self.create(temporary) as sink:
            yield sink
        was = self.stat(temporary)
        try:
            self._rename(temporary, name, overwrite=True)
        except MissingFile:
            # The client repeats a request whose answer is lost, and the first one did it.
            there = self.stat(name)
            if was is None or there is None or there[1:] != was[1:]:
                raise

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        """One rename, which keeps the file's time. There is no moment at which the file has both names."""
        self._own_path(name)
        self._own_path(to)
        before = self.stat(name)
        if before is None:
            raise MissingFile(self._subject(name), "a file to be moved", "no such file")
        if self.exists(to):
            return False
        if not may_go():
            raise OSError(
                f"{self._subject(name)}: expected to be moved in time, found that it took too long; it is left"
            )
        return self._renamed(name, to, was=before)

    def delete(self, name: str) -> bool:
        self._own_path(name)
        status = self._status(name)
        if status is not None and status.isdir:
            raise IsADirectoryError(f"{self._subject(name)}: expected a file to be deleted, found a folder")
        return status is not None and self._removed(name)

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Several at a time. If the namenode does not answer at all, the remaining names are returned unasked."""
        failed: list[tuple[str, str]] = []
        for start in range(0, len(names), _DELETED_AT_ONCE):
            silence = self._silence()
            if silence is not None:
                return (*failed, *((name, silence) for name in names[start:]))
            page = names[start : start + _DELETED_AT_ONCE]
            reasons = at_once(self._not_deleted, page)
            failed += ((name, why) for name, why in zip(page, reasons, strict=True) if why is not None)
        return tuple(failed)

    def _removed(self, name: str) -> bool:
        path = self._own_path(name)
        return self._ask(name, lambda client: client.delete(path))

    def _not_deleted(self, name: str) -> str | None:
        try:
            self.delete(name)
        except (OSError, RefusedTable) as failure:
            return str(failure)
        return None

    def _silence(self) -> str | None:
        try:
            self._status("")
        except PermissionError:
            return None
        except OSError as failure:
            return str(failure)
        return None

    def _renamed(self, name: str, to: str, *, was: ListedFile | None = None) -> bool:
        """Rename without overwriting. False if `to` exists, unless it is the file that `name` `was`.

        The client repeats a request whose answer is lost, and then finds that the first one did it.
        """
        try:
            self._rename(name, to, overwrite=False)
        except FileExistsError:
            return False
        except MissingFile:
            there = self.stat(to)
            if there is None:
                raise
            return was is not None and there[1:] == was[1:]
        return True

    def _rename(self, name: str, to: str, *, overwrite: bool) -> None:
        source, target = self._own_path(name), self._own_path(to)
        folder, mode = str(PurePosixPath(target).parent), self._mode(to)
        self._ask(to, lambda client: client.mkdirs(folder, mode, create_parent=True))
        self._ask(name, lambda client: client.rename(source, target, overwrite))

    def _entries(self, folder: str) -> Iterator[FileStatus]:
        path = self._path(folder)
        with suppress(MissingFile, NotADirectoryError):
            entries = self._ask(folder, lambda client: iter(client.list_status(path)))
            while page := self._ask(folder, lambda _: tuple(islice(entries, _PAGE))):
                # The listing of a file is the file itself.
                yield from (entry for entry in page if entry.path != path)

    def _status(self, name: str) -> FileStatus | None:
        path = self._path(name)
        try:
            return self._ask(name, lambda client: client.get_file_info(path))
        except (MissingFile, NotADirectoryError):
            return None

    def _mode(self, name: str) -> int:
        """The permissions of the folder that holds the table's files, for new folders in it."""
        bound = bound_of(self.bounds, name) or ""
        return _mode_of(self, bound)

    def _listed(self, entry: FileStatus) -> ListedFile:
        prefix = self._path("").rstrip("/") + "/"
        return ListedFile(entry.path.removeprefix(prefix), entry.length, entry.modification_time)

    def _ask(self, name: str, call: Callable[[Client], T]) -> T:
        """The namenode's answer to a call."""
        return asked(self._subject(name), self._authority, partial(call, client(self._authority)))

    def _transfer(self, name: str, call: Callable[[], T]) -> T:
        """The datanodes' answer to a call of a reader or a writer."""
        return asked(self._subject(name), self._authority, call, of_bytes=True)

    def _subject(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _path(self, name: str) -> str:
        if not is_hdfs_name(name):
            raise CorruptMetadata(f"{self.root}: file name", "a name below this folder", name)
        _, root = split_hdfs(self.root)
        return "/" + "/".join((*parts_of(root), *parts_of(name)))

    def _own_path(self, name: str) -> str:
        """The path of a file that is to change. Raises RefusedTable if it is below none of the bounds."""
        path = self._path(name)
        require_bound(self.bounds, name, subject=self._subject(name))
        return path

    @property
    def _authority(self) -> str:
        return split_hdfs(self.root)[0]


@lru_cache(maxsize=256)
def _mode_of(storage: HdfsStorage, folder: str) -> int:
    status = storage._status(folder)
    return status.permission & 0o777 if status is not None and status.isdir else _OPEN_FOLDER


def open_hdfs(location: str) -> HdfsStorage:
    """The store of a folder. Raises AddressError if there is none, and OSError if the namenode does not answer."""
    authority, path = split_hdfs(location)
    storage = HdfsStorage(f"{SCHEME}://{authority}/{path}".rstrip("/"))
    status = storage._status("")
    if status is None or not status.isdir:
        above, _, name = path.rstrip("/").rpartition("/")
        parent = HdfsStorage(f"{SCHEME}://{authority}/{above}".rstrip("/"))
        raise AddressError(f"{location}: expected the folder of a table, found none{near_folder(parent, name)}")
    return storage
