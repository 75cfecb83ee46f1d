"""A partition's small and worn files -> tasks that write a file each, or remove files without rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nightkeep.clustering.packing import is_settled, packing, packing_work
from nightkeep.formats.delta.metadata.features import refuse_features
from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Intent, Request
from nightkeep.protocol import Snapshot, Work

PACKED = "nightkeep.packed"
"""Tag of a file that packing wrote: the run and the target. What a run left apart stays apart until it changes."""


@dataclass(frozen=True, slots=True)
class PackTask:
    """The unit's files, of which those without rows are only removed, become about `files` new ones."""

    unit: DeltaUnit
    files: int
    target_bytes: int
    intent: Intent


def refuse_unhandled(snapshot: Snapshot[DeltaUnit], request: Request) -> None:
    """Raises RefusedTable for a feature of the table with which the operation cannot be done."""
    assert isinstance(snapshot, DeltaSnapshot)
    refuse_features(snapshot.table.name, snapshot.raw_protocol, snapshot.raw_metadata, request.operation)


def pack_files(snapshot: Snapshot[DeltaUnit], unit: DeltaUnit, request: Request) -> Work | None:
    """What `packing` picks, unless the table is clustered."""
    assert isinstance(snapshot, DeltaSnapshot)
    if request.clustering is not None:
        return None
    sizes, intent = sizes_of(snapshot, request), Intent.of(request)

    def settled(files: Sequence[DataFile]) -> bool:
        return is_settled(files, lambda file: _packed(file, sizes.target), _modified)

    def task(files: tuple[DataFile, ...], count: int) -> PackTask:
        return PackTask(replace(unit, files=files), count, sizes.target, intent)

    picked = packing(unit.files, sizes, full=request.full, is_settled=settled)
    return None if picked is None else packing_work(picked, task)


def packed_tag(token: str, target_bytes: int) -> dict[str, str]:
    return {PACKED: f"{token}/{target_bytes}"}


def _packed(file: DataFile, target_bytes: int) -> str | None:
    """The run that packed the file to this target."""
    told = file.tags.get(PACKED, "")
    return told if told.endswith(f"/{target_bytes}") else None


def _modified(file: DataFile) -> int:
    told = file.raw.get("modificationTime")
    return told if isinstance(told, int) else 0
