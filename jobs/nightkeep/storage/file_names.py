"""A name -> whether a file of a POSIX file system can have it."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
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
    if b"\0" in encoded or len(encoded) > MAX_NAME_BYTES or any(map(_is_long, encoded.split(b"/"))):
        return False
    relative = PurePosixPath(name)
    return not relative.is_absolute() and ".." not in relative.parts


def _is_long(part: bytes) -> bool:
    return len(part) > _MAX_PART_BYTES
