"""Locations of folders of HDFS, and names that its files can have."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nightkeep.errors import AddressError
from nightkeep.storage.names import is_name

SCHEME: Final = "hdfs"


@lru_cache(maxsize=64)
def split_hdfs(location: str) -> tuple[str, str]:
    """Authority and path of `hdfs://authority/path`, the path without a slash at its end. Nothing is decoded.

    Raises AddressError for a location without a namenode, and for a path that no folder has.
    """
    authority, _, path = location.removeprefix(f"{SCHEME}://").partition("/")
    if not location.startswith(f"{SCHEME}://") or not authority or "@" in authority:
        raise AddressError(f"{location}: expected hdfs://HOST:PORT/PATH or hdfs://NAMESERVICE/PATH")
    path = path.rstrip("/")
    if path and (not is_hdfs_name(path) or {"", ".", ".."} & set(path.split("/"))):
        raise AddressError(f"{location}: expected a folder without empty, '.' or '..' parts and colons in its path")
    return authority, path


def is_hdfs_name(name: str) -> bool:
    """Whether a file of HDFS can have this name (DFSUtil.isValidName)."""
    return is_name(name) and ":" not in name
