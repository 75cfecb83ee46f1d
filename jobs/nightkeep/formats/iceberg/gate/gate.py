"""Storage -> the scan and the audits that the gate calls for Iceberg tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from nightkeep.formats.iceberg.gate import audit, scan
from nightkeep.formats.iceberg.gate.header_audit import list_header_faults
from nightkeep.formats.iceberg.gate.proof_parts import pieces
from nightkeep.formats.iceberg.gate.snapshot_audit import snapshot_faults
from nightkeep.formats.iceberg.metadata.positional_deletes import positional_of
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.model import UnitKey
from nightkeep.protocol import Bound, Gate
from nightkeep.storage import Storage


def gate_of(storage: Storage) -> Gate[IcebergSnapshot, IcebergUnit]:
    return Gate(
        survivors=Bound(scan.survivors, storage),
        rows=Bound(scan.rows, storage),
        pieces=pieces,
        unit_faults=Bound(audit.unit_faults, storage),
        faults=Bound(faults, storage),
        shown=shown,
    )


def faults(
    storage: Storage, parent: IcebergSnapshot, candidate: IcebergSnapshot, touched: Sequence[UnitKey]
) -> tuple[str, ...]:
    """Faults of the version's files and manifests, and of what its snapshot and the header of its list state."""
    return (
        *audit.version_faults(storage, parent, candidate, touched),
        *snapshot_faults(storage, parent, candidate),
        *list_header_faults(storage, candidate),
    )


def shown(unit: IcebergUnit) -> frozenset[Hashable]:
    """Data files, each with its sequence number and the positional deletes that apply to it.

    Equality deletes are left out: which of them a commit removes depends on other commits.
    """
    held = positional_of(unit)
    return frozenset((file.identity, file.bytes, file.sequence_number, held[file.path]) for file in unit.files)
