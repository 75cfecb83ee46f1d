"""A batch of changes and its options. A batch becomes one snapshot, or leaves the table unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BATCH_PROPERTY = "nightkeep.batch-id"
"""The key of a snapshot's summary that names its batch, by which a repeated batch is detected."""


class ChangeMode(StrEnum):
    """The effect of a change on older rows of its key (Flink's sink, `write.upsert.enabled`)."""

    APPEND = "append"
    """Every row is new; there are no keys."""
    CHANGES = "changes"
    """Each change has a kind: an insert only adds its row; a delete or an update's before-image deletes the old row."""
    UPSERT = "upsert"
    """An insert or an update's after-image replaces the row of its key; before-images are ignored."""


class Distribution(StrEnum):
    """Which writer a change goes to. Two writers must never have changes of one key."""

    NONE = "none"
    """All changes of a file go to one writer; files are distributed over the writers."""
    HASH = "hash"
    """The hash of the key selects the writer."""


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """`files` are change files in their order, Parquet or JSON Lines by suffix. `batch_id` identifies the batch.

    Without `keys` the table's identifier fields are the keys.
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
