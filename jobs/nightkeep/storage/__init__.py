"""Bytes in and out of one table's folder. All other modules read and write through this room.

Names are relative to the store's root. Only hints are ever overwritten: any other write creates a file or fails. `kept`
has the verbs of what stands beside the tables, which several writers change.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote, urlsplit

from nightkeep.errors import AddressError, did_you_mean
from nightkeep.storage.hdfs.names import SCHEME as HDFS
from nightkeep.storage.listed_files import MoveAnswer, MoveEnd, delete_listed, move_listed
from nightkeep.storage.local.store import LocalStorage
from nightkeep.storage.many_requests import NoAnswer, answers_of, at_once, location_of
from nightkeep.storage.moved_folders import MovedFolders, whole_store
from nightkeep.storage.names import Bounds, is_within
from nightkeep.storage.objects.names import SCHEMES
from nightkeep.storage.verbs import ListedFile, Storage, delete_each, same_bytes, spelled

__all__ = [
    "ListedFile",
    "LocalStorage",
    "MoveAnswer",
    "MoveEnd",
    "MovedFolders",
    "NoAnswer",
    "Storage",
    "answers_of",
    "at_once",
    "delete_each",
    "delete_listed",
    "is_within",
    "location_of",
    "move_listed",
    "open_storage",
    "same_bytes",
    "spelled",
    "whole_store",
    "within",
]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def open_storage(location: str, properties: Mapping[str, str] = _NOTHING) -> Storage:
    """The store of a table's location: a local path, a `file:` URI, a bucket such as `s3://bucket/prefix`, or HDFS.

    Only those of the catalog's `properties` are used that reach the store, such as `s3.endpoint`. A `file:` URI is
    decoded and others are not, as engines write them in this way. Raises AddressError for any other location and for
    one that does not exist, and OSError if the store does not answer.
    """
    parts = urlsplit(location)
    # DAG files import this room, and clients of stores take longer to import than they may take to parse.
    if parts.scheme in SCHEMES:
        from nightkeep.storage.objects.store import open_objects  # noqa: PLC0415 -- clients of buckets

        return open_objects(location, properties)
    if parts.scheme == HDFS:
        from nightkeep.storage.hdfs.store import open_hdfs  # noqa: PLC0415 -- the client of HDFS

        return open_hdfs(location)
    if parts.scheme not in ("", "file"):
        names = ", ".join((*SCHEMES, HDFS))
        raise AddressError(f"{location}: expected a local path, file:// URI or one of {names}, found {parts.scheme!r}")
    path = unquote(parts.path) if parts.scheme else location
    if not os.path.isdir(path):
        raise AddressError(f"{location}: expected the folder of a table, found none{_beside(path)}")
    return LocalStorage(os.path.abspath(path))


_LOOKED_AT: Final = 10_000
"""How many entries of a folder are looked at for a name that is near."""


def _beside(path: str) -> str:
    """The folder beside it that may be meant. Other stores look for it as they are opened (`near_folder`)."""
    folder, name = os.path.split(path.rstrip("/"))
    try:
        with os.scandir(folder or ".") as entries:
            there = [entry.name for entry in itertools.islice(entries, _LOOKED_AT) if entry.is_dir()]
    except OSError:
        return ""
    return did_you_mean(name, there)


def within(storage: Storage, *folders: str, more: bool = False) -> Storage:
    """The store, limited so that nothing outside of `folders` is created, moved or deleted.

    With `more`, `folders` are added to the store's earlier bounds. A store without support for bounds is returned as it
    is.
    """
    from nightkeep.storage.hdfs.store import HdfsStorage  # noqa: PLC0415 -- the client of HDFS
    from nightkeep.storage.objects.store import ObjectStorage  # noqa: PLC0415 -- clients of buckets

    if not isinstance(storage, LocalStorage | ObjectStorage | HdfsStorage):
        return storage
    bounds: Bounds = (*storage.bounds, *folders) if more else folders
    return replace(storage, bounds=tuple(dict.fromkeys(bounds)))
