"""Storage -> the scan and the audits of Paimon tables, as the gate calls them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from nightkeep.formats.paimon.gate import audit, changes, scan
from nightkeep.formats.paimon.metadata.schema import has_vectors
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.model import View
from nightkeep.protocol import Bound, Gate
from nightkeep.storage import Storage


def gate_of(storage: Storage) -> Gate[PaimonSnapshot, Bucket]:
    return Gate(
        survivors=Bound(scan.survivors, storage),
        rows=Bound(scan.rows, storage),
        merged=Bound(scan.merged, storage),
        pieces=pieces,
        unit_faults=Bound(audit.unit_faults, storage),
        faults=audit.version_faults,
        shown=shown,
        published=published,
        changes=Bound(changes.expected, storage),
        changelog=Bound(changes.told, storage),
    )


def pieces(base: Bucket, candidate: Bucket) -> Sequence[tuple[Bucket, Bucket]]:
    """One pair: merging needs every file of its bucket."""
    return ((base, candidate),)


def published(unit: Bucket) -> View:
    """Readers of a table with vectors skip level 0 and merge nothing; of any other, they merge all levels."""
    return View.RAW if has_vectors(unit.schemas.current) else View.MERGED


def shown(unit: Bucket) -> frozenset[Hashable]:
    """The files that readers see, and their vectors, which are in one file."""
    merges = published(unit) is View.MERGED
    files = ((file.name, file.level, file.bytes) for file in unit.files if merges or file.level > 0)
    return frozenset([*files, (unit.index_file, unit.vectors)])
