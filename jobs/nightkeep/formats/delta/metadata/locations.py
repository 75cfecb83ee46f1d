"""Paths of the log <-> names in storage. Decodes percent escapes once; nothing outside the table's folder is accepted.

An absolute path below the table's own root is equivalent to a relative one.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.storage import LocalStorage, Storage
from nightkeep.storage.hdfs.names import SCHEME as HDFS
from nightkeep.storage.hdfs.store import HdfsStorage
from nightkeep.storage.names import MAX_NAME_BYTES
from nightkeep.storage.objects.names import SCHEMES
from nightkeep.storage.objects.store import ObjectStorage

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Characters that a URI path may hold unescaped. Not the colon: it would make the first folder a scheme.
_AS_IT_IS = "/!*'(),;$&+=@~-._"


def is_absolute(path: str) -> bool:
    """Whether an action's path is absolute (a URI or a file system path), not relative to the table."""
    return path.startswith("/") or _SCHEME.match(path) is not None


def storage_name(path: str, root: str, *, anywhere: bool = False) -> str:
    """The name in the store at `root` of the file at an action's `path`, a URI (PROTOCOL.md, "Add File").

    Raises RefusedTable for an absolute path elsewhere, CorruptMetadata for a path that names no file below the table's
    folder. With `anywhere`, a file elsewhere has its path as its name.
    """
    name = own_name(path, root)
    if name is None and anywhere:
        return path
    if name is None:
        feature = "a data file outside the table's folder (a shallow clone's) is not handled"
        raise RefusedTable(path, feature, "make a deep clone of the table")
    return name


def own_name(path: str, root: str) -> str | None:
    """As storage_name; None for an absolute path that is not below `root`."""
    name = _decoded(path)
    if is_absolute(path):
        own = _below(name, root)
        if own is None:
            return None
        name = own
    long = len(name) > MAX_NAME_BYTES
    if long or {"", ".", ".."} & set(name.split("/")) or "\0" in name or "?" in path or "#" in path:
        raise CorruptMetadata("path of an action", "a URI of a file below the table's folder", repr(path))
    return name


def located(storage: Storage, path: str) -> tuple[Storage, str]:
    """The store and the name of the file at `path`, a URI as in the log, for the table whose folder is `storage`.

    Shallow clones name their files by absolute paths. Raises RefusedTable for one of another kind of store than the
    table's, and for a relative one.
    """
    name = own_name(path, storage.root)
    if name is not None:
        return storage, name
    parts = urlsplit(path)
    place = unquote(parts.path).lstrip("/")
    match storage:
        case LocalStorage() if parts.scheme in ("", "file") and parts.path.startswith("/"):
            return LocalStorage("/"), place
        case ObjectStorage() if parts.scheme in SCHEMES:
            return ObjectStorage(f"{parts.scheme}://{parts.netloc}"), place
        case HdfsStorage() if parts.scheme == HDFS:
            return HdfsStorage(f"{HDFS}://{parts.netloc}"), place
    raise RefusedTable(
        storage.root, f"{path} is in another kind of store than the table", "make a deep clone of the table"
    )


def log_path(name: str) -> str:
    """The path in the log for a file's name in storage. The inverse of `storage_name`."""
    return quote(name, safe=_AS_IT_IS)


def _decoded(path: str) -> str:
    try:
        name = unquote(path, errors="strict")
        name.encode()
    except UnicodeError as failure:
        raise CorruptMetadata(f"path {path!r}", "UTF-8 once it is decoded", reason_of(failure)) from failure
    return name


def _below(address: str, root: str) -> str | None:
    """The part of a decoded address below `root`, a local path or `scheme://authority/prefix`; None elsewhere."""
    folder = f"{_place(root)}/"
    place = _place(address)
    return place.removeprefix(folder) if place.startswith(folder) else None


def _place(address: str) -> str:
    """The normal form of an address: a local path without scheme, one scheme for each store, no slash at the end."""
    scheme, colon, rest = address.partition(":")
    if address.startswith("/") or not colon:
        return address.rstrip("/")
    if scheme.lower() == "file":
        match = _LOCAL.fullmatch(rest)
        return match[1].rstrip("/") if match else address
    return f"{_SCHEMES.get(scheme.lower(), scheme.lower())}:{rest}".rstrip("/")


_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
_LOCAL = re.compile(r"(?://(?:localhost)?)?(/[^/].*)", re.DOTALL)
"""The part after `file:`, as in file:/x, file:///x and file://localhost/x."""
