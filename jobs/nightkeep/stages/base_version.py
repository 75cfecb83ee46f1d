"""The identity of a base version -> None if the table still has that version, else the reason.

A version number can be used again: after a rollback, in a table that was created anew, in a log that was cut. An
identity is never used again.
"""

from __future__ import annotations

from nightkeep.model import VersionIdentity
from nightkeep.protocol import E, S, T, Table, U

_SHOWN = 12
"""How many digits of a digest a message shows."""


def replaced(table: Table[S, U, T, E], planned: VersionIdentity) -> str | None:
    """Why the table no longer has the planned version, or None if it still has it. One small read."""
    identity = table.digest(planned.version)
    if identity == planned.commit:
        return None
    if identity is None:
        return f"version {planned.version}, which was planned on, is gone: expired, rolled back or dropped"
    return _another(planned.version, planned.commit, identity)


def another(planned: VersionIdentity, identity: VersionIdentity) -> str | None:
    """Why `identity`, of a version that was just read, is not the planned one, or None if it is."""
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
