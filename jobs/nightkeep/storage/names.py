"""A name -> whether a file can have it, and whether it is in the folders of one table.

Nothing outside of these folders is created, moved or deleted.
"""

from __future__ import annotations

import os
from typing import Final, TypeAlias

from nightkeep.errors import CorruptMetadata, RefusedTable

Bounds: TypeAlias = tuple[str, ...]
"""Names of folders in a store; the empty one is its root."""

MAX_NAME_BYTES: Final = 4096
_MAX_PART_BYTES: Final = 255
"""PATH_MAX and NAME_MAX of Linux; keys of object stores have at most 1,024 bytes."""


def is_name(name: str) -> bool:
    """Whether a file can have this name below a folder."""
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        return False
    parts = encoded.split(b"/")
    is_long = len(encoded) > MAX_NAME_BYTES or max(map(len, parts)) > _MAX_PART_BYTES
    return not (is_long or b"\0" in encoded or encoded.startswith(b"/") or b".." in parts)


def parts_of(name: str) -> list[str]:
    """The folders of a name and its last part, as `PurePosixPath` has them: for millions of names."""
    return [part for part in name.split("/") if part not in ("", ".")]


def bound_of(bounds: Bounds, name: str) -> str | None:
    """The deepest of the folders that contain the name or are equal to it; None if there is none."""
    return max((bound for bound in bounds if is_within(bound, name)), key=len, default=None)


def require_bound(bounds: Bounds, name: str, *, subject: str) -> str:
    """The deepest of the folders that contain the file. Raises RefusedTable if there is none."""
    if name in ("", "."):
        raise CorruptMetadata(subject, "the name of a file", "that of a folder")
    outer = bound_of(tuple(bound for bound in bounds if bound != name), name)
    if outer is None:
        feature = "a file outside of its table's folders is not created, moved or deleted"
        raise RefusedTable(subject, feature, "keep the table's files below its own location")
    return outer


def is_within(folder: str, name: str) -> bool:
    """Whether `name` is the folder or below it."""
    return not folder or name == folder or name.startswith(f"{folder}/")
