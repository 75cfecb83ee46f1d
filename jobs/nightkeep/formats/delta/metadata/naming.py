"""Names of the files we create: each carries its run's token, so that every leftover tells whose it is."""

from __future__ import annotations

import uuid
from itertools import count

from nightkeep.model import Run, UnitKey
from nightkeep.model.run_names import MARK, file_stem

LOG = "_delta_log"


class DeltaNaming:
    """Fresh names for one attempt at one unit; no two calls give the same name."""

    def __init__(self, run: Run, key: UnitKey | None = None) -> None:
        self._stem = file_stem(run, key)
        self._numbers = count()

    def data(self, codec: str) -> str:
        """A data file's name within its folder; it may not start with . or _, which Delta's readers hide."""
        return f"part-{next(self._numbers):05d}-{self._stem}.{codec}.parquet"


def commit_name(version: int) -> str:
    """Where readers look for a version (PROTOCOL.md, "Delta Log Entries")."""
    return f"{LOG}/{version:020d}.json"


def staged_name(run: Run, transaction: uuid.UUID) -> str:
    """A staged commit, by the id of its transaction.

    Not `<version>.json`, so no reader takes it for a commit; and sorted before every digit, so that readers who
    list the log from a version on do not even see it.
    """
    return f"{LOG}/.staged-{MARK}-{run.token}-{run.attempt}-{transaction}.json"


def transaction_of(name: str) -> str:
    """The id that staged_name was given: it is the txnId of the commit, whatever became of the file."""
    return name.removesuffix(".json")[-len(str(uuid.UUID(int=0))) :]


def vector_folder(run: Run) -> str:
    """The prefix of deletion vector files, whose own names are UUIDs (PROTOCOL.md allows a random prefix)."""
    return f"{MARK}-{run.token}-{run.attempt}"


def vector_name(prefix: str, unique: uuid.UUID) -> str:
    return f"{prefix}/deletion_vector_{unique}.bin"
