"""Names of the files we create: each carries its run's token, so that every leftover tells whose it is."""

from __future__ import annotations

import hashlib
import uuid
from itertools import count
from typing import Final

from nightkeep.model import Run, UnitKey

MARK: Final = "nk"
RUN_PROPERTY: Final = "nightkeep.run"
"""The key of a snapshot's summary that names the run whose commit it is (commit_user)."""
OPERATION_PROPERTY: Final = "nightkeep.operation"
"""The key of a snapshot's summary that names the operation, in snapshots that show the rows of their parent."""


class Naming:
    """Fresh names for one attempt at one unit; no two calls give the same name."""

    def __init__(self, run: Run, key: UnitKey | None = None) -> None:
        unit = hashlib.sha256(str(key).encode()).hexdigest()[:8] if key else "table"
        # Tasks of one unit run side by side and know nothing of each other.
        self._stem = f"{MARK}-{run.token}-{unit}-{run.attempt}-{uuid.uuid4().hex[:8]}"
        self._numbers = count()

    def data(self) -> str:
        return f"{next(self._numbers):05d}-{self._stem}.parquet"

    def deletes(self) -> str:
        """A position delete file of format version 2."""
        return f"{next(self._numbers):05d}-{self._stem}-deletes.parquet"

    def vectors(self) -> str:
        return f"{next(self._numbers):05d}-{self._stem}-deletes.puffin"


def manifest_name(run: Run, snapshot_id: int, number: int) -> str:
    return f"{MARK}-{run.token}-{run.attempt}-{snapshot_id}-m{number}.avro"


def manifest_list_name(run: Run, snapshot_id: int) -> str:
    """As the engines call theirs, snapshot id first: tools look for it there."""
    return f"snap-{snapshot_id}-{MARK}-{run.token}-{run.attempt}.avro"


def staged_name(run: Run, snapshot_id: int) -> str:
    """The snapshot as the catalog will be asked to add it; not `.metadata.json`, so nobody takes it for a version."""
    return f"{MARK}-{run.token}-{run.attempt}-{snapshot_id}.snapshot.json"


def commit_user(token: str) -> str:
    """What a summary's RUN_PROPERTY calls the run with this token; the same for all its attempts, and no other."""
    return f"nightkeep-{token}"
