"""A prefix of a bucket as a store. One conditional request creates an object, which is never visible in part.

Names are keys below the prefix, without any encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, pairwise
from typing import TYPE_CHECKING, BinaryIO, Final

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError

from nightkeep.errors import AddressError, CorruptMetadata, MissingFile, RefusedTable
from nightkeep.limits import FILE
from nightkeep.storage.kept import require_small
from nightkeep.storage.many_requests import at_once
from nightkeep.storage.names import Bounds, require_bound
from nightkeep.storage.near_folders import near_folder
from nightkeep.storage.objects.clients import Client, client
from nightkeep.storage.objects.failures import asking
from nightkeep.storage.objects.files import create_object, open_object
from nightkeep.storage.objects.names import is_key, split_location
from nightkeep.storage.objects.properties import relevant
from nightkeep.storage.objects.renewed import Options, Renewal
from nightkeep.storage.verbs import ListedFile, always

if TYPE_CHECKING:
    from obstore import Bytes, ObjectMeta, PutMode, UpdateVersion

_PAGE: Final = 1000
"""Keys in a page of a listing and in a bulk deletion: the maximum of S3."""
_CONFLICTS: Final = 10
_PIECE: Final = 32 * 1024 * 1024
"""Bytes per request for an object that is read as a whole, so that no request takes too long."""
_COPIED_BYTES: Final = 5 << 30
"""The largest object that S3 copies in one request (CopyObject). A larger one is read and written."""


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """A prefix of a bucket. `root` is like `s3://bucket/prefix`; `options` are the properties needed to reach it.
    Credentials among them that end after a while have a `renewal`.

    Objects are created, moved and deleted only below one of `bounds`, folders below the root. S3 gives times in whole
    seconds in some answers and in milliseconds in others, so all verbs return whole seconds. Objects whose names end in
    `/` stand for folders and are not files. Requests are repeated for a minute; then OSError is raised. PermissionError
    is raised at once if the store denies access.
    """

    root: str
    options: Options = field(default=(), repr=False)
    bounds: Bounds = field(default=("",), kw_only=True)
    renewal: Renewal | None = field(default=None, repr=False, kw_only=True)

    def read(self, name: str) -> bytes:
        return self.tagged(name, require=lambda size: FILE.require(size, self._subject(name)))[0]

    def tagged(self, name: str, *, require: Callable[[int], None]) -> tuple[bytes, UpdateVersion]:
        """Whole content, and what a `swap` names it by: stores do that in one of two ways. Raises MissingFile, and what
        `require` raises for the size."""
        with asking(self._subject(name)):
            answer = obstore.get(self._client(), self._key(name))
        # The answer's head is here already, but not its bytes.
        meta = answer.meta
        require(meta["size"])
        tag: UpdateVersion = {}
        if meta["e_tag"] is not None:
            tag["e_tag"] = meta["e_tag"]
        if meta["version"] is not None:
            tag["version"] = meta["version"]
        with asking(self._subject(name)):
            return bytes(answer.bytes()), tag

    def open(self, name: str) -> pa.NativeFile:
        return open_object(self._client(), self._key(name), subject=self._subject(name))

    def exists(self, name: str) -> bool:
        return self.stat(name) is not None

    def stat(self, name: str) -> ListedFile | None:
        head = self._head(name)
        return None if head is None else self._stored(head)

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        with asking(self._subject(folder)):
            listing = obstore.list_with_delimiter(self._client(), self._folder(folder))
        return tuple(sorted(map(self._stored, listing["objects"]), key=lambda stored: stored.name))

    def folders(self, folder: str) -> tuple[str, ...]:
        with asking(self._subject(folder)):
            listing = obstore.list_with_delimiter(self._client(), self._folder(folder))
        return tuple(sorted(map(self._name, listing["common_prefixes"])))

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        batch: list[ListedFile] = []
        entries = self._entries(folder)
        for entry, following in pairwise(chain(entries, [None])):
            if entry is not None and not self._is_folder(entry, following):
                batch.append(self._stored(entry))
            if len(batch) == _PAGE:
                yield batch
                batch = []
        if batch:
            yield batch

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        self._own_key(name)
        if self.exists(name):
            raise FileExistsError(f"{self._subject(name)}: expected no such file")
        return self.replaced(name)

    def replaced(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A sink for an object that is created, or replaced, once the context is left without an error."""
        return create_object(self._client(), self._own_key(name), subject=self._subject(name))

    def put(self, name: str, data: bytes) -> None:
        # After a lost answer the client repeats the request, and may find the object that it wrote itself.
        if not self._created(name, data) and self.read(name) != data:
            raise FileExistsError(f"{self._subject(name)}: expected no such file")

    def put_if_absent(self, name: str, data: bytes, *, temporary: str, may_go: Callable[[], bool] = always) -> bool:
        """One conditional request. `temporary` is not used."""
        return may_go() and self._created(name, data)

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        with asking(self._subject(name)):
            obstore.put(self._client(), self._own_key(name), data)

    def swap(self, name: str, data: bytes, *, tag: UpdateVersion | None) -> bool:
        """Replace the content that has this tag, or create what was not there, in one conditional request. False, and
        nothing changes, if the object is another one by now.

        After a lost answer the client repeats the request, which then finds its own object: an object with these bytes
        is True, whoever wrote it. Raises OSError if the store does not answer.
        """
        mode: PutMode = "create" if tag is None else tag
        with asking(self._subject(name)), suppress(AlreadyExistsError, PreconditionError, NotFoundError):
            obstore.put(self._client(), self._own_key(name), data, mode=mode, use_multipart=False)
            return True
        try:
            return self.tagged(name, require=lambda size: require_small(size, len(data)))[0] == data
        except (MissingFile, ValueError):
            return False

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        """The store copies the object, and the copy is compared. The copy's time is that of the copying.

        One request looks for `to` and another writes it, so a `to` that another writer creates in between is
        overwritten."""
        self._own_key(name)
        self._own_key(to)
        source = self._head(name)
        if source is None:
            raise MissingFile(self._subject(name), "a file to be moved", "no such file")
        if self.exists(to):
            return False
        self._copy(source, to)
        if not self._is_copy(source, self._head(to)):
            raise OSError(f"{self._subject(to)}: expected a copy of {name}, found other bytes; both are left")
        if not may_go():
            raise OSError(
                f"{self._subject(name)}: expected to be moved in time, found that it took too long; it is left"
            )
        self._delete(name)
        return True

    def delete(self, name: str) -> bool:
        if not self.exists(name):
            return False
        self._delete(name)
        return True

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """One request per page of names. If some names of a page fail, one request for each gives the reason.

        If the store does not answer at all, no further request is made: the remaining names are returned, although they
        may be gone."""
        failed: list[tuple[str, str]] = []
        for start in range(0, len(names), _PAGE):
            page = names[start : start + _PAGE]
            if self._delete_page(page):
                continue
            silence = self._silence(page[0])
            if silence is not None:
                return (*failed, *((name, silence) for name in names[start:]))
            failed += self._delete_each(page)
        return tuple(failed)

    def _delete_page(self, names: Sequence[str]) -> bool:
        try:
            keys = [self._own_key(name) for name in names]
            with asking(self.root):
                obstore.delete(self._client(), keys)
        except (OSError, MissingFile, RefusedTable):
            return False
        return True

    def _silence(self, name: str) -> str | None:
        """The error of a store that does not even answer whether a file exists; None if it answers."""
        try:
            self._head(name)
        except PermissionError:
            return None
        except OSError as failure:
            return str(failure)
        return None

    def _delete_each(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        reasons = at_once(self._not_deleted, names)
        yield from ((name, why) for name, why in zip(names, reasons, strict=True) if why is not None)

    def _not_deleted(self, name: str) -> str | None:
        try:
            self._delete(name)
        except (OSError, RefusedTable) as failure:
            return str(failure)
        return None

    def _delete(self, name: str) -> None:
        # S3 does not state whether the object existed; other stores do.
        with suppress(MissingFile), asking(self._subject(name)):
            obstore.delete(self._client(), self._own_key(name))

    def _created(self, name: str, data: bytes) -> bool:
        for _ in range(_CONFLICTS):
            try:
                with asking(self._subject(name)):
                    obstore.put(self._client(), self._own_key(name), data, mode="create", use_multipart=False)
            except FileExistsError:
                # The client raises the same error if S3 only reports another request in progress for this name
                # (409 ConditionalRequestConflict). That one may still fail, so look whether the object exists.
                if self.exists(name):
                    return False
            else:
                return True
        raise OSError(f"{self._subject(name)}: expected it to be created or to exist, found neither")

    def _head(self, name: str) -> ObjectMeta | None:
        try:
            with asking(self._subject(name)):
                return obstore.head(self._client(), self._key(name))
        except MissingFile:
            return None

    def _is_copy(self, source: ObjectMeta, copy: ObjectMeta | None) -> bool:
        if copy is None or copy["size"] != source["size"]:
            return False
        # The tag of an upload in parts is made from the tags of its parts; a copy in one piece has another tag.
        if copy["e_tag"] is not None and copy["e_tag"] == source["e_tag"]:
            return True
        # Reading both takes long, and the copy may be gone by then.
        return self._digest(source) == self._digest(copy) and self._head(self._name(copy["path"])) == copy

    def _copy(self, source: ObjectMeta, to: str) -> None:
        name = self._name(source["path"])
        if source["size"] <= _COPIED_BYTES:
            with asking(self._subject(name)):
                obstore.copy(self._client(), source["path"], self._own_key(to))
            return
        with self.create(to) as sink:
            for piece in self._pieces(source):
                sink.write(piece)

    def _digest(self, head: ObjectMeta) -> bytes:
        digest = sha256()
        for piece in self._pieces(head):
            digest.update(piece)
        return digest.digest()

    def _pieces(self, head: ObjectMeta) -> Iterator[Bytes]:
        for start in range(0, head["size"], _PIECE):
            end = min(start + _PIECE, head["size"])
            with asking(self._subject(self._name(head["path"]))):
                piece = obstore.get_range(self._client(), head["path"], start=start, end=end)
            yield piece

    def _entries(self, folder: str) -> Iterator[ObjectMeta]:
        listing = iter(obstore.list(self._client(), self._folder(folder), chunk_size=_PAGE))
        while True:
            with asking(self._subject(folder)):
                page = next(listing, None)
            if page is None:
                return
            yield from page

    def _is_folder(self, entry: ObjectMeta, following: ObjectMeta | None) -> bool:
        """Whether an entry stands for a folder: the client drops the `/` at the end of its name."""
        if entry["size"]:
            return False
        holds_next = following is not None and following["path"].startswith(entry["path"] + "/")
        return holds_next or self._head(self._name(entry["path"])) is None

    def _stored(self, head: ObjectMeta) -> ListedFile:
        return ListedFile(self._name(head["path"]), head["size"], int(head["last_modified"].timestamp()) * 1000)

    def _client(self) -> Client:
        scheme, authority, _ = split_location(self.root)
        return client(scheme, authority, self.options, self.renewal)

    def _subject(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _key(self, name: str) -> str:
        if not is_key(name, self.root.partition("://")[0]):
            raise CorruptMetadata(f"{self.root}: file name", "a name below this folder", name)
        return self._prefix + name

    def _own_key(self, name: str) -> str:
        """The key of an object that is to change. Raises RefusedTable if it is below none of the bounds."""
        key = self._key(name)
        require_bound(self.bounds, name, subject=self._subject(name))
        return key

    def _folder(self, folder: str) -> str:
        return self._key(folder) if folder else self._prefix.rstrip("/")

    def _name(self, key: str) -> str:
        return key.removeprefix(self._prefix)

    @property
    def _prefix(self) -> str:
        _, _, prefix = split_location(self.root)
        return f"{prefix}/" if prefix else ""


def open_objects(location: str, properties: Mapping[str, str]) -> ObjectStorage:
    """The store of a prefix. Raises AddressError if there is no object, and OSError if the store does not answer."""
    scheme, authority, prefix = split_location(location)
    storage = ObjectStorage(f"{scheme}://{authority}/{prefix}".rstrip("/"), relevant(properties))
    if next(storage.walk(""), None) is None:
        above, _, name = prefix.rstrip("/").rpartition("/")
        parent = ObjectStorage(f"{scheme}://{authority}/{above}".rstrip("/"), relevant(properties))
        raise AddressError(f"{location}: expected the files of a table, found none{near_folder(parent, name)}")
    return storage
