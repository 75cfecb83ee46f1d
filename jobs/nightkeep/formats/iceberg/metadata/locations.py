"""Locations in metadata -> names in storage, below the root of this machine, a bucket or HDFS. Nothing is decoded."""

from __future__ import annotations

import re
from typing import Final

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.storage import Storage
from nightkeep.storage.hdfs.names import SCHEME as HDFS
from nightkeep.storage.names import MAX_NAME_BYTES
from nightkeep.storage.objects.names import SCHEMES

MACHINE: Final = "/"
"""The root of this machine's storage."""
_STORES: Final = {**SCHEMES, HDFS: HDFS}
ADVICE: Final = {
    "files of unknown schemes": f"keep the table on this machine, or on one of {', '.join(_STORES)}",
    "files of another host": "write file:/ or file:/// locations",
    "files in several stores": "keep them in one place",
    "keys with empty parts": "rewrite the table's files with locations without // in their paths",
}
"""Refused kinds of locations, each with what works instead."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_STORED: Final = re.compile(rf"({'|'.join(_STORES)})://([^/]+)(/|$)")
_FILE: Final = "file:"


def storage_name(location: str) -> str:
    """The name in storage of the file at a location: its absolute path without the first slash, or its key.

    `/a b`, `file:/a b` and `file:///a b` are the same file; the key of `s3://bucket/a b` is `a b`. Percent signs are
    ordinary characters, as in Java's HadoopFileIO and S3FileIO and in pyiceberg. Raises RefusedTable for another
    scheme or a host, CorruptMetadata for anything but an absolute path of a file.
    """
    match = _STORED.match(location)
    path = location[match.start(3) :] if match else location.removeprefix(_FILE)
    scheme = None if match else _SCHEME.match(location)
    if scheme and path == location:
        raise _refusal(location, "files of unknown schemes", f"{scheme[1]} is not handled")
    if path.startswith("//") and not match:
        if path != location and not path.startswith("///"):
            raise _refusal(location, "files of another host", f"{path[2:].partition('/')[0]} is not handled")
        path = "/" + path.lstrip("/")
    _require_path(location, path)
    if match and "//" in path:
        # Our clients read several slashes as one; in S3 they make a different key.
        raise _refusal(location, "keys with empty parts", f"{path[1:]} is not handled")
    return path[1:]


def root_of(location: str) -> str:
    """The root of the storage of the file at a location: `/`, `s3://bucket` for each scheme of S3, `hdfs://namenode`."""
    match = _STORED.match(location)
    return f"{_STORES[match[1]]}://{match[2]}" if match else MACHINE


def name_in(storage: Storage, location: str) -> str:
    """As `storage_name`. Also raises RefusedTable for a file outside `storage`, the table's storage."""
    require_in(storage, location)
    return storage_name(location)


def require_in(storage: Storage, location: str) -> None:
    """Raises RefusedTable for a file or folder outside `storage`, the table's storage."""
    root = root_of(location)
    if root != storage.root:
        raise _refusal(location, "files in several stores", f"those in both {storage.root} and {root} are not handled")


def _refusal(location: str, name: str, use: str) -> RefusedTable:
    return RefusedTable(location, f"{name}: {use}", ADVICE[name])


def _require_path(location: str, path: str) -> None:
    parts = path.split("/")
    if parts[0] or not parts[-1] or {".", ".."} & set(parts) or "\0" in path or len(path) > MAX_NAME_BYTES:
        raise CorruptMetadata("location in table metadata", "an absolute path or URI of a file", repr(location))


def stored_name(location: str) -> str:
    """The name of the file at a location as a listing gives it. Raises as `storage_name`.

    Repeated slashes become one on this machine. Keys of an object store stay unchanged.
    """
    name = storage_name(location)
    return re.sub("/{2,}", "/", name) if location.startswith(("/", "file:")) else name
