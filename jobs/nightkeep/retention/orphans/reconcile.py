"""A quarantined file and its two names -> the one name that it keeps. Completes an interrupted move."""

from __future__ import annotations

from enum import Enum

from nightkeep.retention.orphans.quarantine_manifest import PlannedMove
from nightkeep.storage import Storage, same_bytes, spelled


class Where(Enum):
    """Where a file is: at its place, in quarantine, nowhere, or in quarantine while its place is taken."""

    HOME = "home"
    ASIDE = "aside"
    NOWHERE = "nowhere"
    IN_THE_WAY = "in the way"
    """In quarantine, and another file has taken its place."""


def reconcile(storage: Storage, file: PlannedMove) -> Where:
    """Where the file is. If both names exist with equal bytes, the copy in quarantine is deleted.

    The file at its place always wins: every other process that settles or restores the file decides the same. Raises
    OSError if the file at its place changed meanwhile.
    """
    if storage.stat(file.to) is None:
        return Where.NOWHERE if storage.stat(file.path) is None else Where.HOME
    home = storage.stat(file.path)
    if home is None:
        return Where.ASIDE
    with storage.open(file.path) as ours, storage.open(file.to) as theirs:
        is_same = same_bytes(ours, theirs)
    if not is_same:
        return Where.IN_THE_WAY
    # Reading both may take long, so the file may have changed.
    if storage.stat(file.path) != home:
        raise OSError(f"{spelled(storage, file.path)}: expected nobody else to change it, found that somebody did")
    storage.delete(file.to)
    return Where.HOME
