"""Storage -> the scan and the audits that the gate calls for Iceberg tables."""

from __future__ import annotations

from collections.abc import Hashable

from nightkeep.formats.iceberg.gate import audit, scan
from nightkeep.formats.iceberg.gate.proof_parts import pieces
from nightkeep.formats.iceberg.metadata.positional_deletes import positional_of
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.protocol import Bound, Gate
from nightkeep.storage import Storage


def gate_of(storage: Storage) -> Gate[IcebergSnapshot, IcebergUnit]:
    return Gate(
        survivors=Bound(scan.survivors, storage),
        rows=Bound(scan.rows, storage),
        pieces=pieces,
        unit_faults=Bound(audit.unit_faults, storage),
        faults=Bound(audit.version_faults, storage),
        shown=shown,
    )


def shown(unit: IcebergUnit) -> frozenset[Hashable]:
    """Data files, each with its sequence number and the positional deletes that apply to it.

    Equality deletes are left out: which of them a commit removes depends on other commits.
    """
    held = positional_of(unit)
    return frozenset((file.identity, file.bytes, file.sequence_number, held[file.path]) for file in unit.files)
