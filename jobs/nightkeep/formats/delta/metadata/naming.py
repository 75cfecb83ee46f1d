"""Run -> names of the files it creates. Each name carries the run's token, so every leftover file can be traced."""

from __future__ import annotations

import uuid
from itertools import count

from nightkeep.model import Run, UnitKey
from nightkeep.model.run_names import MARK, file_stem

LOG = "_delta_log"
LAST_CHECKPOINT = f"{LOG}/_last_checkpoint"
ENGINE = "Nightkeep"
"""The name of the engine in our commits, before a slash and the version."""


class DeltaNaming:
    """Fresh names for one attempt at one unit; no two calls give the same name."""

    def __init__(self, run: Run, key: UnitKey | None = None) -> None:
        self._stem = file_stem(run, key)
        self._numbers = count()

    def data(self, codec: str) -> str:
        """A data file's name within its folder; it may not start with . or _, which Delta's readers hide."""
        return f"part-{next(self._numbers):05d}-{self._stem}.{codec}.parquet"


def commit_name(version: int) -> str:
    """The name of a version's commit (PROTOCOL.md, "Delta Log Entries")."""
    return f"{LOG}/{version:020d}.json"


def staged_name(run: Run, transaction: uuid.UUID) -> str:
    """The name of a staged commit, from the id of its transaction.

    It is not `<version>.json`, so readers do not take it for a commit. It sorts before every digit, so readers that
    list the log from a version on do not see it.
    """
    return f"{LOG}/.staged-{MARK}-{run.token}-{run.attempt}-{transaction}.json"


def transaction_of(name: str) -> str:
    """The transaction id in a staged name. It is also the txnId of the commit, published or not."""
    return name.removesuffix(".json")[-len(str(uuid.UUID(int=0))) :]


def vector_folder(run: Run) -> str:
    """The prefix of deletion vector files, whose own names are UUIDs (PROTOCOL.md allows a random prefix)."""
    return f"{MARK}-{run.token}-{run.attempt}"


def vector_name(prefix: str, unique: uuid.UUID) -> str:
    return f"{prefix}/deletion_vector_{unique}.bin"


def staged_checkpoint_name(run: Run, unique: uuid.UUID) -> str:
    """The name of a checkpoint that is still to be compared with the log. No reader looks for it, as for a commit's."""
    return f"{LOG}/.staged-{MARK}-{run.token}-{run.attempt}-{unique}.parquet"


def checkpoint_name(version: int, unique: uuid.UUID | None = None) -> str:
    """The name of a version's checkpoint: classic, or with a UUID (PROTOCOL.md, "Checkpoint Naming Scheme")."""
    return f"{LOG}/{version:020d}.checkpoint{'' if unique is None else f'.{unique}'}.parquet"


def sidecar_name(unique: uuid.UUID) -> str:
    return f"{LOG}/_sidecars/{unique}.parquet"
