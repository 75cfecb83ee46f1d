"""A name -> whether a file of a POSIX file system can have it."""

from __future__ import annotations

import os
from typing import Final

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
