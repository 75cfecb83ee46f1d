"""A store -> the same store with some top-level folders in another place, such as those of a table's branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from nightkeep.errors import CorruptMetadata
from nightkeep.storage.verbs import ListedFile, Storage, always

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class MovedFolders:
    """Implements Storage. The top-level `folders` are those in the folder `home`; all others are the store's own.

    Names come back as they were asked for, but for lists of the top level, which are the store's own. Raises
    CorruptMetadata for a name that leads out of a moved folder.
    """

    whole: Storage
    folders_moved: frozenset[str]
    home: str

    @property
    def root(self) -> str:
        return self.whole.root

    def read(self, name: str) -> bytes:
        return self.whole.read(self._place(name))

    def open(self, name: str) -> pa.NativeFile:
        return self.whole.open(self._place(name))

    def exists(self, name: str) -> bool:
        return self.whole.exists(self._place(name))

    def stat(self, name: str) -> ListedFile | None:
        found = self.whole.stat(self._place(name))
        return None if found is None else self._named(found)

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        return tuple(self._named(found) for found in self.whole.list(self._place(folder)))

    def folders(self, folder: str) -> tuple[str, ...]:
        return tuple(self._name(found) for found in self.whole.folders(self._place(folder)))

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        for batch in self.whole.walk(self._place(folder)):
            yield [self._named(found) for found in batch]

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self.whole.create(self._place(name))

    def put(self, name: str, data: bytes) -> None:
        self.whole.put(self._place(name), data)

    def put_if_absent(self, name: str, data: bytes, *, temporary: str, may_go: Callable[[], bool] = always) -> bool:
        return self.whole.put_if_absent(self._place(name), data, temporary=self._place(temporary), may_go=may_go)

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        self.whole.replace(self._place(name), data, temporary=self._place(temporary))

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        return self.whole.move(self._place(name), self._place(to), may_go=may_go)

    def delete(self, name: str) -> bool:
        return self.whole.delete(self._place(name))

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        kept = self.whole.delete_all([self._place(name) for name in names])
        return tuple((self._name(name), why) for name, why in kept)

    def _place(self, name: str) -> str:
        parts = name.split("/")
        if parts[0] not in self.folders_moved:
            return name
        if ".." in parts:
            raise CorruptMetadata(f"{self.root}/{self.home}", "a name below this folder", name)
        return f"{self.home}/{name}"

    def _name(self, place: str) -> str:
        name = place.removeprefix(f"{self.home}/")
        return name if name.partition("/")[0] in self.folders_moved else place

    def _named(self, found: ListedFile) -> ListedFile:
        return found._replace(name=self._name(found.name))


def whole_store(storage: Storage) -> Storage:
    """The store itself, of which `storage` may be a view."""
    return storage.whole if isinstance(storage, MovedFolders) else storage
