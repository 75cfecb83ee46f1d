"""A commit of ours -> a checkpoint of its version, where the table's interval asks for one."""

from __future__ import annotations

from nightkeep.formats.delta.metadata.head import head
from nightkeep.formats.delta.metadata.log_segment import segment
from nightkeep.formats.delta.upkeep.checkpointing import is_due, write_checkpoint
from nightkeep.model import Address, Run
from nightkeep.model.counted import counted
from nightkeep.storage import Storage


def checkpoint_if_due(table: Address, storage: Storage, version: int, run: Run) -> str | None:
    """A sentence about the checkpoint; None if none is due. Raises as `write_checkpoint`.

    Due: as many commits after the last checkpoint as the table's interval. delta-spark checkpoints every version that
    is a multiple of the interval; a log with several writers may skip those for ever.
    """
    newest = head(storage, table=table.name, version=version)
    if not is_due(segment(storage, version), newest.metadata):
        return None
    written = write_checkpoint(table, storage, newest, run)
    if written is None:
        return f"another writer wrote the checkpoint of version {version}"
    kept = f", {counted(written.sidecars, 'sidecar')}" if written.sidecars else ""
    return (
        f"wrote a checkpoint of version {version}: {counted(written.actions, 'action')}, {written.bytes:,} bytes{kept}"
    )
