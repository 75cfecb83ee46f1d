"""What is asked for: one batch of changes, which either becomes one snapshot or leaves the table as it was."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BATCH_PROPERTY = "nightkeep.batch-id"
"""The key of a snapshot's summary that names the batch it holds: a replayed batch finds itself."""


class ChangeMode(StrEnum):
    """What a change does to older rows of its key (Flink's sink, `write.upsert.enabled`)."""

    APPEND = "append"
    """Every row is new; there are no keys."""
    CHANGES = "changes"
    """Each change says what it is: inserts only add, a delete or an update's before-image hides the old row."""
    UPSERT = "upsert"
    """An insert or an update's after-image replaces the row of its key; before-images are ignored."""


class Distribution(StrEnum):
    """Which writer a change goes to. Two writers must never have changes of one key."""

    NONE = "none"
    """A file's changes stay together, and files are dealt out to the writers."""
    HASH = "hash"
    """By the hash of the key."""


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """`files` are change files in their order, Parquet or JSON Lines by their endings; `batch_id` names the batch.

    Without `keys` they are the table's identifier fields.
    """

    batch_id: str
    files: tuple[str, ...]
    mode: ChangeMode
    distribution: Distribution = Distribution.NONE
    keys: tuple[str, ...] = ()
    writers: int = 1

    def __post_init__(self) -> None:
        if not self.batch_id or not self.files or self.writers < 1:
            found = f"id {self.batch_id!r}, {len(self.files)} files, {self.writers} writers"
            raise ValueError(f"batch: expected an id, change files and a writer, found {found}")


@dataclass(frozen=True, slots=True)
class RowChange:
    """A change's name, as Iceberg's changelog and as Flink's RowKind spell it."""

    name: str
    short: str
    writes: bool


INSERT = RowChange("INSERT", "+I", writes=True)
UPDATE_BEFORE = RowChange("UPDATE_BEFORE", "-U", writes=False)
UPDATE_AFTER = RowChange("UPDATE_AFTER", "+U", writes=True)
DELETE = RowChange("DELETE", "-D", writes=False)
CHANGES = (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE)
