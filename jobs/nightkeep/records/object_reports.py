"""A prefix of a bucket for reports. One request writes an object, and a condition says what it may replace."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, ClassVar, Final, cast

from nightkeep.errors import MissingFile
from nightkeep.records.report_store import MOST_BYTES, KeptFile, ListedReport
from nightkeep.storage import ObjectStorage
from nightkeep.storage.objects.clients import split_location
from nightkeep.storage.objects.tagged import Tagged, read_tagged, require_conditional_swap, swap_tagged, write_stream

_REMOVED: Final = b'{"removed": true}\n'
"""The content of a file that was removed on a condition: stores replace on a condition, and few delete on one."""


@dataclass(frozen=True, slots=True)
class ObjectReports:
    """The verbs of `ReportStore` over the objects below a prefix.

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
        found = self._tagged(name)
        if found.data == _REMOVED:
            raise FileNotFoundError(2, "it was removed", self.address(name))
        return KeptFile(found.data, found)

    def write(self, name: str, data: bytes) -> None:
        self.storage.replace(name, data, temporary=name)

    def swap(self, name: str, data: bytes, *, read: KeptFile | None) -> bool:
        if read is not None:
            return swap_tagged(self.storage, name, data, read=cast(Tagged, read.tag))
        return swap_tagged(self.storage, name, data, read=None) or self._replaced_removed(name, data)

    def remove(self, name: str, *, read: KeptFile | None) -> bool:
        if read is not None:
            return swap_tagged(self.storage, name, _REMOVED, read=cast(Tagged, read.tag))
        self.storage.delete(name)
        return True

    def stand_in(self, name: str, to: str) -> None:
        """A copy by the store, if nothing is there: a key may be denied to one kind of request alone."""
        if not self.swap(to, self._tagged(name).data, read=None):
            raise FileExistsError(self.address(to))

    def write_stream(self, name: str) -> AbstractContextManager[BinaryIO]:
        return write_stream(self.storage, name)

    def list(self, folder: str) -> tuple[ListedReport, ...]:
        below = f"{folder}/" if folder else ""
        files = self.storage.list(folder)
        return tuple(ListedReport(each.name.removeprefix(below), each.modified_ms * 1_000_000) for each in files)

    def folders(self) -> tuple[str, ...]:
        return self.storage.folders("")

    def make_folder(self, folder: str) -> None:
        """Buckets have no folders."""

    def exists(self) -> bool:
        return next(self.storage.walk(""), None) is not None

    def require_conditions(self) -> None:
        require_conditional_swap(self.storage)

    def _tagged(self, name: str) -> Tagged:
        try:
            return read_tagged(self.storage, name, most=MOST_BYTES)
        except MissingFile as failure:
            raise FileNotFoundError(2, "no such file", self.address(name)) from failure

    def _replaced_removed(self, name: str, data: bytes) -> bool:
        found = self._tagged(name)
        return found.data == _REMOVED and swap_tagged(self.storage, name, data, read=found)


def object_reports(place: str) -> ObjectReports:
    """The reports below the prefix of an address. Raises AddressError for what is no address of a bucket."""
    scheme, authority, prefix = split_location(place)
    return ObjectReports(ObjectStorage(f"{scheme}://{authority}/{prefix}".rstrip("/")))
