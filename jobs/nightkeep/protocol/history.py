"""What a format finds when it looks back: commits of other writers that undo what the version before them hides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """A version that was looked at: its number, and a digest of its bytes, as numbers are used again.

    The digest is not that of VersionIdentity: looks that are stored hold this one."""

    version: int
    identity: str


@dataclass(frozen=True, slots=True)
class Undone:
    """A commit of another writer that shows rows which the version directly before it hides."""

    commit: Seen
    author: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Watch:
    """What was found in the history up to `head`, oldest first."""

    head: Seen
    undone: tuple[Undone, ...]
