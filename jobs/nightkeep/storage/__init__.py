"""Bytes in and out of one table's folder; every other module reads and writes through here.

Names are relative to the store's root. Nothing but a hint is ever overwritten: a write creates a file or fails.
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from nightkeep.errors import AddressError
from nightkeep.storage.local import LocalStorage
from nightkeep.storage.verbs import Storage, Stored

__all__ = ["LocalStorage", "Storage", "Stored", "open_storage"]


def open_storage(location: str) -> Storage:
    """The store behind a table's location: a local path or a `file:` URI. Raises AddressError for the rest."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        raise AddressError(f"{location}: expected a local path or file:// URI, found scheme {parts.scheme!r}")
    path = unquote(parts.path) if parts.scheme else location
    if not os.path.isdir(path):
        raise AddressError(f"{location}: expected the folder of a table, found none")
    return LocalStorage(os.path.abspath(path))
