"""The name of a page or document -> its bytes, below the place of reports. Nothing else there is served."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.places import is_address, report_store

SERVED: Final = {".html": "text/html", ".json": "application/json"}
_KEPT_SECONDS: Final = 10
_KEPT_BYTES: Final = 64 << 20
_LONGEST_PART: Final = 255
"""Bytes of a name between two slashes that file systems permit."""
_LONGEST_KEY: Final = 1024
"""Bytes of a whole key that buckets permit."""


@dataclass
class StoredFiles:
    """The files of one place. What came from a bucket is served again for some seconds without a request."""

    place: str
    _kept: dict[str, tuple[float, bytes]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def read(self, name: str) -> bytes | None:
        """The page or document with that name; None if there is none, or if the name leads elsewhere."""
        if PurePosixPath(name).suffix not in SERVED or _is_too_long(self.place, name):
            return None
        return self._in_bucket(name) if is_address(self.place) else _in_folder(Path(self.place), name)

    def _in_bucket(self, name: str) -> bytes | None:
        now = time.monotonic()
        with self._lock:
            since, kept = self._kept.get(name, (0.0, b""))
        if kept and now - since < _KEPT_SECONDS:
            return kept
        try:
            found = report_store(self.place).read(name).data
        except (FileNotFoundError, ValueError, CorruptMetadata):
            return None
        self._keep(name, found, now)
        return found

    def _keep(self, name: str, found: bytes, now: float) -> None:
        with self._lock:
            fresh = {each: kept for each, kept in self._kept.items() if now - kept[0] < _KEPT_SECONDS}
            fresh.pop(name, None)
            if sum(len(data) for _, data in fresh.values()) + len(found) <= _KEPT_BYTES:
                fresh[name] = (now, found)
            self._kept = fresh


def _is_too_long(place: str, name: str) -> bool:
    """Whether no store can have a file of this name. A bucket would answer with an error instead of not found."""
    prefix = place.partition("://")[2].partition("/")[2] if is_address(place) else ""
    sizes = [len(part.encode("utf-8", "surrogatepass")) for part in (*prefix.split("/"), *name.split("/"))]
    return max(sizes) > _LONGEST_PART or sum(sizes) + len(sizes) - 1 > _LONGEST_KEY


def _in_folder(folder: Path, name: str) -> bytes | None:
    try:
        root = folder.resolve()
        path = (root / name).resolve()
        is_served = path.is_relative_to(root) and path.suffix in SERVED and path.is_file()
        return path.read_bytes() if is_served else None
    except (OSError, ValueError, RuntimeError):
        # A name that is too long, a folder that may not be read, a NUL, text that is no file name, links in a circle.
        return None
