"""A quarantined file and its two names -> the name under which it is kept. Mends an interrupted move."""

from __future__ import annotations

from enum import Enum
from typing import Final

from nightkeep.retention.orphans.quarantine_manifest import PlannedMove
from nightkeep.storage import Storage, spelled

_CHUNK: Final = 8 << 20


class Where(Enum):
    """Where a file is."""

    HOME = "home"
    ASIDE = "aside"
    NOWHERE = "nowhere"
    IN_THE_WAY = "in the way"
    """Aside, and at home is another file under its name."""


def reconcile(storage: Storage, file: PlannedMove) -> Where:
    """Where the file is; a copy beside what is at home is removed.

    Always in favour of home: what else may be settling or restoring it does the same. Raises OSError where the file at
    home changed meanwhile.
    """
    if storage.stat(file.to) is None:
        return Where.NOWHERE if storage.stat(file.path) is None else Where.HOME
    home = storage.stat(file.path)
    if home is None:
        return Where.ASIDE
    if not _same(storage, file.path, file.to):
        return Where.IN_THE_WAY
    # To read both may take long.
    if storage.stat(file.path) != home:
        raise OSError(f"{spelled(storage, file.path)}: expected nobody else to change it, found that somebody did")
    storage.delete(file.to)
    return Where.HOME


def _same(storage: Storage, name: str, other: str) -> bool:
    """Whether two files have equal bytes."""
    with storage.open(name) as ours, storage.open(other) as theirs:
        while True:
            chunk = ours.read(_CHUNK)
            if chunk != theirs.read(_CHUNK):
                return False
            if not chunk:
                return True
