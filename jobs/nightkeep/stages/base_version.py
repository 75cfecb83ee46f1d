"""A version that work is based on -> whether the table still has it, or why not.

Numbers come again: after a rollback, in a table that was created anew, in a log that was cut. Identities do not.
"""

from __future__ import annotations

from typing import Any

from nightkeep.model import VersionIdentity
from nightkeep.protocol import Reads

_SHOWN = 12
"""Digits of a digest that a sentence shows."""


def replaced(table: Reads[Any], planned: VersionIdentity) -> str | None:
    """Why the version that was planned on is none of the table's any more; None while it is. One small read."""
    found = table.digest(planned.version)
    if found == planned.commit:
        return None
    if found is None:
        return f"version {planned.version}, which was planned on, is gone: expired, rolled back or dropped"
    return _another(planned.version, planned.commit, found)


def another(planned: VersionIdentity, found: VersionIdentity) -> str | None:
    """Why `found`, a version that was read just now, is not what was planned on; None where it is."""
    if found == planned:
        return None
    if found.commit != planned.commit:
        return _another(planned.version, planned.commit, found.commit)
    return _another(planned.version, planned.content, found.content)


def _another(version: int, planned: str, found: str) -> str:
    return (
        f"version {version} is not the one that was planned on, {planned[:_SHOWN] or 'of no commit'}: "
        f"another one has its number now, {found[:_SHOWN] or 'of no commit'}"
    )
