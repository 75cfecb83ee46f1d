"""Small files in a folder of HDFS. A rename that never overwrites decides who of several writers was first.

HDFS replaces no file on a condition. A file that is changed on one is a folder of versions, `NAME.versions/NUMBER`: the
newest is the content, and whoever creates the next has changed what was read. Replaced versions stay for as long as a
change may take, so that the number after one that was read is never free again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO, ClassVar, Final
from uuid import uuid4

from nightkeep.errors import MissingFile, NightkeepError
from nightkeep.storage import ListedFile
from nightkeep.storage.hdfs.client import CALL_SECONDS
from nightkeep.storage.hdfs.store import HdfsStorage
from nightkeep.storage.kept import REMOVED, KeptFile, ListedKept, require_small

_VERSIONS: Final = ".versions"
_CHANGE_SECONDS: Final = 300.0
"""How old what was read may be when the call that changes it begins."""
_KEPT_MS: Final = int(1000 * (_CHANGE_SECONDS + 4 * CALL_SECONDS))
"""A change takes a few calls. This long after its replacement, nobody changes a version any more."""


@dataclass(frozen=True, slots=True)
class _Version:
    """What was read, by its number, and when by this machine's clock. Number 0 is a file that was never changed."""

    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class KeptInHdfs:
    """The verbs of `KeptFiles` over a folder of HDFS."""

    storage: HdfsStorage
    at_once: ClassVar[int] = 8

    @property
    def root(self) -> str:
        return self.storage.root

    def address(self, name: str) -> str:
        return f"{self.root}/{name}"

    def read(self, name: str) -> KeptFile:
        found = self._found(name)
        if found is None or found.data == REMOVED:
            raise FileNotFoundError(2, "no such file", self.address(name))
        return found

    def write(self, name: str, data: bytes) -> None:
        if not self._versions(name):
            self.storage.replace(name, data, temporary=_beside(name))
        # A file that is changed on a condition keeps its versions, also where the first came in the meantime.
        while versions := self._versions(name):
            if self._follow(name, data, _Version(_number(versions[-1]), time.monotonic())):
                return

    def swap(self, name: str, data: bytes, *, read: KeptFile | None) -> bool:
        if read is not None and isinstance(read.tag, _Version) and read.tag.number:
            return self._follow(name, data, read.tag)
        found = self._found(name)
        if read is None:
            is_there = found is not None and found.data != REMOVED
            version = _Version(0, time.monotonic()) if found is None else found.tag
        else:
            is_there = found is None or found.data != read.data
            version = read.tag
        return not is_there and isinstance(version, _Version) and self._follow(name, data, version)

    def remove(self, name: str, *, read: KeptFile | None) -> bool:
        if read is not None:
            return self.swap(name, REMOVED, read=read)
        if self._versions(name):
            self.write(name, REMOVED)
        self.storage.delete(name)
        return True

    def discard(self, name: str, *, read: KeptFile) -> bool:
        """A file that was never changed on a condition is deleted. Of another one the mark of its removal stays, as the
        number after one that was read must never be free again."""
        if isinstance(read.tag, _Version) and read.tag.number:
            return self.remove(name, read=read)
        found = self._found(name)
        if found is None or found.data != read.data:
            return False
        self.storage.delete(name)
        return True

    def stand_in(self, name: str, to: str) -> None:
        """A copy: files of HDFS have one name."""
        if not self.swap(to, self.read(name).data, read=None):
            raise FileExistsError(self.address(to))

    def write_stream(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self.storage.replaced(name, temporary=_beside(name))

    def list(self, folder: str) -> tuple[ListedKept, ...]:
        below = f"{folder}/" if folder else ""
        plain = [file for file in self.storage.list(folder) if not _is_beside(file.name)]
        changed = dict(self._changed(folder))
        found = {file.name: file for file in plain} | changed
        return tuple(
            ListedKept(name.removeprefix(below), found[name].modified_ms * 1_000_000) for name in sorted(found)
        )

    def folders(self) -> tuple[str, ...]:
        return tuple(name for name in self.storage.folders("") if not name.endswith(_VERSIONS))

    def exists(self) -> bool:
        return self.storage.exists("")

    def prepare(self, folder: str) -> None:
        """A rename of HDFS overwrites nothing, and each write makes the folders that it needs."""

    def _found(self, name: str) -> KeptFile | None:
        """What was read, and whether it was removed; None if there never was such a file."""
        while versions := self._versions(name):
            seconds = time.monotonic()
            # After a pause of this process the newest may be another, and this one forgotten.
            with suppress(MissingFile):
                return KeptFile(self._bytes(versions[-1]), _Version(_number(versions[-1]), seconds))
        seconds = time.monotonic()
        file = self.storage.stat(name)
        if file is None:
            return None
        try:
            return KeptFile(self._bytes(file), _Version(0, seconds))
        except MissingFile:
            return None

    def _bytes(self, file: ListedFile) -> bytes:
        require_small(file.bytes)
        return self.storage.read(file.name)

    def _follow(self, name: str, data: bytes, read: _Version) -> bool:
        """Create the version after the one that was read; False if another writer was first."""
        ours = f"{name}{_VERSIONS}/{read.number + 1:020d}"
        temporary = _beside(name)
        self.storage.put(temporary, data)
        is_ours = False
        try:
            is_ours = self.storage.move(
                temporary, ours, may_go=lambda: time.monotonic() - read.seconds < _CHANGE_SECONDS
            )
        finally:
            if not is_ours:
                self.storage.delete_all([temporary])
        if is_ours:
            self._forget_old(name)
        return is_ours

    def _forget_old(self, name: str) -> None:
        """Remove versions that were replaced long ago. The next change tries again what fails."""
        with suppress(OSError, NightkeepError):
            versions = self._versions(name)
            latest = versions[-1].modified_ms - _KEPT_MS
            self.storage.delete_all([old.name for old, new in pairwise(versions) if new.modified_ms < latest])

    def _versions(self, name: str) -> tuple[ListedFile, ...]:
        """By number, ascending."""
        return tuple(file for file in self.storage.list(f"{name}{_VERSIONS}") if _number(file))

    def _changed(self, folder: str) -> Iterator[tuple[str, ListedFile]]:
        """The newest version of each file that is changed on a condition, but for those that were removed."""
        for each in self.storage.folders(folder):
            name = each.removesuffix(_VERSIONS)
            versions = self._versions(name) if name != each else ()
            if versions and not (versions[-1].bytes == len(REMOVED) and self._found_removed(name)):
                yield name, versions[-1]

    def _found_removed(self, name: str) -> bool:
        found = self._found(name)
        return found is not None and found.data == REMOVED


def kept_in_hdfs(place: str) -> KeptInHdfs:
    """The files below a folder of HDFS. Raises AddressError for what is no address of one."""
    return KeptInHdfs(HdfsStorage(place.rstrip("/")))


def _beside(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last[:100]}-{uuid4().hex}.tmp"


def _is_beside(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".") and name.endswith(".tmp")


def _number(version: ListedFile) -> int:
    text = version.name.rpartition("/")[2]
    return int(text) if text.isascii() and text.isdigit() else 0
