"""Small files in a bucket. One request writes an object, and a condition states what it may replace."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, ClassVar, cast
from uuid import uuid4

from nightkeep.errors import MissingFile, RefusedTable
from nightkeep.storage.exclusive import require_exclusive_create
from nightkeep.storage.kept import REMOVED, KeptFile, ListedKept, require_small
from nightkeep.storage.objects.names import split_location
from nightkeep.storage.objects.store import ObjectStorage

if TYPE_CHECKING:
    from obstore import UpdateVersion


@dataclass(frozen=True, slots=True)
class KeptInBucket:
    """The verbs of `KeptFiles` over the objects below a prefix.

    A request takes some 20 ms, most of which is waiting, so several files are read at once.
    """

    storage: ObjectStorage
    at_once: ClassVar[int] = 16

    @property
    def root(self) -> str:
        return self.storage.root

    def address(self, name: str) -> str:
        return f"{self.root}/{name}"

    def read(self, name: str) -> KeptFile:
        found = self._found(name)
        if found.data == REMOVED:
            raise FileNotFoundError(2, "it was removed", self.address(name))
        return found

    def write(self, name: str, data: bytes) -> None:
        self.storage.replace(name, data, temporary=name)

    def swap(self, name: str, data: bytes, *, read: KeptFile | None) -> bool:
        if read is not None:
            return self.storage.swap(name, data, tag=cast("UpdateVersion", read.tag))
        return self.storage.swap(name, data, tag=None) or self._replaced_removed(name, data)

    def remove(self, name: str, *, read: KeptFile | None) -> bool:
        if read is not None:
            return self.swap(name, REMOVED, read=read)
        self.storage.delete(name)
        return True

    def discard(self, name: str, *, read: KeptFile) -> bool:
        """Mark it as removed on the condition, then delete the mark, which nobody else replaces without writing."""
        return self.remove(name, read=read) and self.remove(name, read=None)

    def stand_in(self, name: str, to: str) -> None:
        """A copy, if nothing is there: a key may be denied to one kind of request alone."""
        if not self.swap(to, self._found(name).data, read=None):
            raise FileExistsError(self.address(to))

    def write_stream(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self.storage.replaced(name)

    def list(self, folder: str) -> tuple[ListedKept, ...]:
        below = f"{folder}/" if folder else ""
        files = self.storage.list(folder)
        return tuple(ListedKept(each.name.removeprefix(below), each.modified_ms * 1_000_000) for each in files)

    def folders(self) -> tuple[str, ...]:
        return self.storage.folders("")

    def exists(self) -> bool:
        return next(self.storage.walk(""), None) is not None

    def prepare(self, folder: str) -> None:
        """Buckets have no folders."""
        _require_conditions(self.storage)

    def _found(self, name: str) -> KeptFile:
        """What an object holds, also one that was removed."""
        try:
            return KeptFile(*self.storage.tagged(name, require=require_small))
        except MissingFile as failure:
            raise FileNotFoundError(2, "no such file", self.address(name)) from failure

    def _replaced_removed(self, name: str, data: bytes) -> bool:
        found = self._found(name)
        return found.data == REMOVED and self.swap(name, data, read=found)


@cache
def _require_conditions(storage: ObjectStorage) -> None:
    """Try both conditions on an unneeded object, once per process and store.

    Raises RefusedTable if the store ignores one: two writers could then overwrite what the other one wrote.
    """
    require_exclusive_create(storage)
    kept, name = KeptInBucket(storage), f"_nightkeep/probe-{uuid4()}"
    try:
        kept.write(name, b"first")
        before = kept.read(name)
        kept.write(name, b"second")
        is_ignored = kept.swap(name, b"third", read=before)
        is_honoured = kept.swap(name, b"fourth", read=kept.read(name))
    finally:
        storage.delete(name)
    if is_ignored or not is_honoured:
        feature = "its store does not replace on the condition that an object is unchanged (If-Match)"
        raise RefusedTable(storage.root, feature, "use a store that honours conditional writes")


def kept_in_bucket(place: str) -> KeptInBucket:
    """The files below the prefix of an address. Raises AddressError for what is no address of a bucket."""
    scheme, authority, prefix = split_location(place)
    return KeptInBucket(ObjectStorage(f"{scheme}://{authority}/{prefix}".rstrip("/")))
