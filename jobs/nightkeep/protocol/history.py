"""The findings in a table's history: commits of other writers that show deleted rows again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """A version that was examined: its number, and a digest of its bytes, as numbers are used again.

    The digest is not that of VersionIdentity: stored marks contain this one, so it must not change."""

    version: int
    identity: str


@dataclass(frozen=True, slots=True)
class Undone:
    """A commit of another writer that shows rows which the version directly before it has deleted."""

    commit: Seen
    author: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Watch:
    """The findings in the history up to `head`, oldest first."""

    head: Seen
    undone: tuple[Undone, ...]
