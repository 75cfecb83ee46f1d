"""What the listing of a warehouse, a folder or a catalog finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table: its database or namespace and its name, and its location as in an address."""

    parts: tuple[str, ...]
    location: str


@dataclass(frozen=True, slots=True)
class UnlistedPlace:
    """A part of what should be listed that could not be: a database, a namespace or a folder, and why."""

    place: str
    why: str
