"""Paths of the log <-> names in storage: one percent-decoding, and nothing outside the table's folder."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.storage.names import MAX_NAME_BYTES

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# A colon would make the first folder a scheme; all others a URI's path may hold as they are.
_AS_IT_IS = "/!*'(),;$&+=@~-._"


def is_absolute(path: str) -> bool:
    """Whether an action's path is a URI or a path of its own, not one relative to the table."""
    return path.startswith("/") or _SCHEME.match(path) is not None


def storage_name(path: str) -> str:
    """What storage calls the file of an action's `path`, a URI relative to the table (PROTOCOL.md, "Add File").

    Raises RefusedTable for an absolute path, CorruptMetadata for what is no path below the table's folder.
    """
    if is_absolute(path):
        feature = "a data file outside the table's folder (a shallow clone's) is not handled"
        raise RefusedTable(path, feature, "make a deep clone of the table")
    try:
        name = unquote(path, errors="strict")
        name.encode()
    except UnicodeError as failure:
        raise CorruptMetadata(f"path {path!r}", "UTF-8 once it is decoded", str(failure)) from failure
    long = len(name) > MAX_NAME_BYTES
    if long or {"", ".", ".."} & set(name.split("/")) or "\0" in name or "?" in path or "#" in path:
        raise CorruptMetadata("path of an action", "a URI of a file below the table's folder", repr(path))
    return name


def log_path(name: str) -> str:
    """How the log spells the name of a file in storage; `storage_name` reads it back."""
    return quote(name, safe=_AS_IT_IS)
