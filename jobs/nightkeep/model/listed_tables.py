"""What the listing of a warehouse, a folder or a catalog finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table: its database or namespace and its name, and its location as in an address.

    `format` is empty where all tables of the place have the same.
    """

    parts: tuple[str, ...]
    location: str
    format: str = ""


@dataclass(frozen=True, slots=True)
class OtherTable:
    """What is no table of ours: `kind` states what it is, such as `view` or `parquet`."""

    parts: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class UnlistedPlace:
    """A part of what should be listed that could not be: a database, a namespace or a folder, and why."""

    place: str
    why: str
