"""Storage -> the scan and the audits of Delta tables, as the gate calls them."""

from __future__ import annotations

from collections.abc import Hashable

from nightkeep.formats.delta.gate import audit, scan
from nightkeep.formats.delta.gate.proof_parts import pieces
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.protocol import Bound, Gate
from nightkeep.storage import Storage


def gate_of(storage: Storage) -> Gate[DeltaSnapshot, DeltaUnit]:
    return Gate(
        survivors=Bound(scan.survivors, storage),
        rows=Bound(scan.rows, storage),
        pieces=pieces,
        unit_faults=Bound(audit.unit_faults, storage),
        faults=audit.version_faults,
        shown=shown,
    )


def shown(unit: DeltaUnit) -> frozenset[Hashable]:
    """The unit's files with their vectors. A file with another vector is a different piece."""
    return frozenset((file.identity, file.bytes) for file in unit.files)
