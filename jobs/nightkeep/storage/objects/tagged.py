"""Objects that are read and changed by several writers: each content has a tag, and a change names the tag it read."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, Final
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.storage.exclusive import require_exclusive_create
from nightkeep.storage.objects.clients import Client, client, is_key, split_location
from nightkeep.storage.objects.failures import asking
from nightkeep.storage.objects.files import create_object
from nightkeep.storage.objects.store import ObjectStorage

if TYPE_CHECKING:
    from obstore import PutMode, UpdateVersion

_PROBE: Final = 100


@dataclass(frozen=True, slots=True)
class Tagged:
    """The content of an object, and what stands for it in conditions: stores name it in one of these ways."""

    data: bytes
    e_tag: str | None
    version: str | None = None

    @property
    def condition(self) -> UpdateVersion:
        named: UpdateVersion = {}
        if self.e_tag is not None:
            named["e_tag"] = self.e_tag
        if self.version is not None:
            named["version"] = self.version
        return named


def read_tagged(storage: ObjectStorage, name: str, *, most: int) -> Tagged:
    """The whole content. Raises MissingFile, ValueError for more bytes than `most`, and OSError if the store does not
    answer."""
    subject = _subject(storage, name)
    with asking(subject):
        answer = obstore.get(_client(storage), _key(storage, name))
    # The answer's head is here already, but not its bytes.
    if (size := answer.meta["size"]) > most:
        raise ValueError(f"{size:,} bytes, of which at most {most:,} are read")
    with asking(subject):
        return Tagged(bytes(answer.bytes()), answer.meta["e_tag"], answer.meta["version"])


def swap_tagged(storage: ObjectStorage, name: str, data: bytes, *, read: Tagged | None) -> bool:
    """Replace what was read, or create what was not there, in one conditional request. False, and nothing changes, if
    the object is another one by now.

    After a lost answer the client repeats the request, which then finds its own object: an object with these bytes is
    True, whoever wrote it. Raises OSError if the store does not answer.
    """
    mode: PutMode = "create" if read is None else read.condition
    with asking(_subject(storage, name)):
        try:
            obstore.put(_client(storage), _key(storage, name), data, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError, NotFoundError):
            pass
        else:
            return True
    try:
        return read_tagged(storage, name, most=len(data)).data == data
    except (MissingFile, ValueError):
        return False


def write_stream(storage: ObjectStorage, name: str) -> AbstractContextManager[BinaryIO]:
    """A sink for an object that is created, or replaced, once the context is left without an error."""
    return create_object(_client(storage), _key(storage, name), subject=_subject(storage, name))


@cache
def require_conditional_swap(storage: ObjectStorage) -> None:
    """Try both conditions on an unneeded object, once per process and store.

    Raises RefusedTable if the store ignores one: two writers could then overwrite what the other one wrote.
    """
    require_exclusive_create(storage)
    name = f"_nightkeep/probe-{uuid4()}"
    try:
        storage.replace(name, b"first", temporary=name)
        before = read_tagged(storage, name, most=_PROBE)
        storage.replace(name, b"second", temporary=name)
        is_ignored = swap_tagged(storage, name, b"third", read=before)
        is_honoured = swap_tagged(storage, name, b"fourth", read=read_tagged(storage, name, most=_PROBE))
    finally:
        storage.delete(name)
    if is_ignored or not is_honoured:
        feature = "its store does not replace on the condition that an object is unchanged (If-Match)"
        raise RefusedTable(storage.root, feature, "use a store that honours conditional writes")


def _client(storage: ObjectStorage) -> Client:
    scheme, authority, _ = split_location(storage.root)
    return client(scheme, authority, storage.options, storage.renewal)


def _key(storage: ObjectStorage, name: str) -> str:
    _, _, prefix = split_location(storage.root)
    if not is_key(name):
        raise CorruptMetadata(f"{storage.root}: file name", "a name below this folder", name)
    return f"{prefix}/{name}" if prefix else name


def _subject(storage: ObjectStorage, name: str) -> str:
    return f"{storage.root}/{name}"
