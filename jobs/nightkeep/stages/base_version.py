"""A version that work is based on -> whether the table still has it, or why not.

Numbers come again: after a rollback, in a table that was created anew, in a log that was cut. Identities do not.
"""

from __future__ import annotations

from nightkeep.model import VersionIdentity
from nightkeep.protocol import Reads, S, T, U

_SHOWN = 12
"""Digits of a digest that a sentence shows."""


def replaced(table: Reads[S, U, T], planned: VersionIdentity) -> str | None:
    """Why the version that was planned on is none of the table's any more; None while it is. One small read."""
    identity = table.digest(planned.version)
    if identity == planned.commit:
        return None
    if identity is None:
        return f"version {planned.version}, which was planned on, is gone: expired, rolled back or dropped"
    return _another(planned.version, planned.commit, identity)


def another(planned: VersionIdentity, identity: VersionIdentity) -> str | None:
    """Why `found`, a version that was read just now, is not what was planned on; None where it is."""
    if identity == planned:
        return None
    if identity.commit != planned.commit:
        return _another(planned.version, planned.commit, identity.commit)
    return _another(planned.version, planned.content, identity.content)


def _another(version: int, planned: str, found: str) -> str:
    return (
        f"version {version} is not the one that was planned on, {planned[:_SHOWN] or 'of no commit'}: "
        f"another one has its number now, {found[:_SHOWN] or 'of no commit'}"
    )
