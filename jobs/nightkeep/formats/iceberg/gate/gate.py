"""The scan and the audits of Iceberg tables, as the gate calls them."""

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
    """Data files with the position deletes that hold for them, and the number that equality deletes go by.

    Not the equality deletes: which of them a commit can remove depends on what others committed before it.
    """
    held = positional_of(unit)
    return frozenset((file.identity, file.bytes, file.sequence_number, held[file.path]) for file in unit.files)
