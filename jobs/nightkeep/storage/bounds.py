"""The folders of one table in a store. Nothing outside of them is created, moved or deleted."""

from __future__ import annotations

from typing import TypeAlias

from nightkeep.errors import CorruptMetadata, RefusedTable

Bounds: TypeAlias = tuple[str, ...]
"""Names of folders in a store; the empty one is its root."""


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
