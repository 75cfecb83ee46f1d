"""Locations in metadata <-> names in storage, whose root is this machine's: one spelling in, nothing decoded."""

from __future__ import annotations

import re
from typing import Final

from nightkeep.errors import CorruptMetadata, RefusedTable

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FILE: Final = "file:"


def storage_name(location: str) -> str:
    """What storage calls the file at a location that metadata names: its absolute path without the first slash.

    `/a b`, `file:/a b` and `file:///a b` are one file. Percent signs are characters like any other, as they are to
    Java's HadoopFileIO and to pyiceberg. Raises RefusedTable for another scheme or a host, CorruptMetadata for what
    is no absolute path of a file.
    """
    path = location.removeprefix(_FILE)
    scheme = _SCHEME.match(location)
    if scheme and path == location:
        feature = f"files with the scheme {scheme[1]} are not handled"
        raise RefusedTable(location, feature, "keep the table on a file system of this machine")
    if path.startswith("//"):
        if path != location and not path.startswith("///"):
            raise RefusedTable(location, "files of another host are not handled", "write file:/ or file:/// locations")
        path = "/" + path.lstrip("/")
    _require_path(location, path)
    return path[1:]


def _require_path(location: str, path: str) -> None:
    parts = path.split("/")
    if parts[0] or not parts[-1] or {".", ".."} & set(parts) or "\0" in path:
        raise CorruptMetadata("location in table metadata", "an absolute path or file: URI of a file", repr(location))
