"""A partition's small and worn files -> tasks that write one file each, or only remove files without rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nightkeep.clustering.packing import is_settled, packing, packing_work
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.features import refuse_features
from nightkeep.formats.delta.metadata.live_files import DeltaFiles
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.inputs import DeltaInputs, DeltaPack
from nightkeep.formats.delta.rewrite.layout_tags import PACKED, run_of
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Intent, Request
from nightkeep.protocol import Work


def refuse_unhandled(snapshot: DeltaSnapshot, request: Request) -> None:
    """Raises RefusedTable for a feature of the table with which the operation cannot be done."""
    refuse_features(
        snapshot.table.name,
        snapshot.raw_protocol,
        snapshot.raw_metadata,
        request.operation,
        domains=snapshot.domains,
    )


def pack_files(snapshot: DeltaSnapshot, unit: DeltaUnit, request: Request) -> Work[DeltaPack] | None:
    """The work that `packing` picks; none for a clustered table."""
    if request.clustering is not None:
        return None
    sizes, intent = sizes_of(snapshot, request), Intent.of(request)

    def settled(files: Sequence[DeltaDataFile]) -> bool:
        if isinstance(files, DeltaFiles) and not files.tagged(PACKED):
            return False
        return is_settled(files, lambda file: run_of(file, sizes.target), _modified)

    picked = packing(unit.files, sizes, full=request.full, is_settled=settled)
    return (
        None if picked is None else packing_work(picked, lambda files: DeltaInputs(replace(unit, files=files), intent))
    )


def _modified(file: DeltaDataFile) -> int:
    modified_ms = file.raw.get("modificationTime")
    return modified_ms if isinstance(modified_ms, int) else 0
