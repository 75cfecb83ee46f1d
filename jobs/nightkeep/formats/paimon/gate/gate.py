"""Storage -> the scan and the audits of Paimon tables, as the gate calls them.

Tables with and without keys differ in all of it. A unit's schema decides which it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.formats.paimon.gate import append_audit, append_scan, audit, changes, expired_rows, scan
from nightkeep.formats.paimon.gate.audited_rows import AuditedRows
from nightkeep.formats.paimon.gate.file_origin import origin_faults
from nightkeep.formats.paimon.gate.manifest_audit import manifest_faults
from nightkeep.formats.paimon.gate.unordered import alike
from nightkeep.formats.paimon.metadata.schema import keeps_order, skips_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.model import UnitKey, View
from nightkeep.protocol import Bound, Gate, Positions, Show
from nightkeep.storage import Storage


def gate_of(storage: Storage) -> Gate[PaimonSnapshot, Bucket]:
    return Gate(
        survivors=Bound(survivors, storage),
        rows=Bound(rows, storage),
        merged=Bound(merged, storage),
        pieces=pieces,
        unit_faults=Bound(unit_faults, storage),
        faults=Bound(faults, storage),
        shown=shown,
        published=published,
        changes=Bound(changes.expected, storage),
        changelog=Bound(changes.reported, storage),
        within=within,
        clock=expired_rows.clock,
        unexpired=expired_rows.unexpired,
    )


def survivors(storage: Storage, bucket: Bucket, view: View) -> Positions:
    return scan.survivors(storage, bucket, view) if _has_keys(bucket) else append_scan.survivors(storage, bucket, view)


def rows(storage: Storage, bucket: Bucket, positions: Positions) -> Iterator[pa.RecordBatch]:
    """The rows at `positions`, with elements that have no order in ours. Texts and bytes may be views."""
    for batch in scan.rows(storage, bucket, positions, decoder=polars_batches):
        yield alike(batch, bucket.schemas.current)


def merged(storage: Storage, bucket: Bucket, view: View) -> Iterator[pa.RecordBatch]:
    """Rows that are merged of several, with elements that have no order in ours. None of a table without keys."""
    for batch in scan.merged(storage, bucket, view) if _has_keys(bucket) else ():
        yield alike(batch, bucket.schemas.current)


def pieces(base: Bucket, candidate: Bucket) -> Sequence[tuple[Bucket, Bucket]]:
    """One pair with keys, as merging needs every file of its bucket, and where rows are compared in their order."""
    whole = _has_keys(base) or keeps_order(base.schemas.current)
    return ((base, candidate),) if whole else append_scan.pieces(base, candidate)


def within(unit: Bucket, task_bytes: int) -> Bucket:
    return replace(unit, task_bytes=task_bytes)


def unit_faults(storage: Storage, base: Bucket, candidate: Bucket, positions: Positions, show: Show) -> tuple[str, ...]:
    shown = AuditedRows(positions, show)
    for batch in rows(storage, candidate, shown.of_kept({file.name for file in base.files})):
        show(batch)
    faults_of = audit.unit_faults if _has_keys(candidate) else append_audit.unit_faults
    return faults_of(storage, base, candidate, shown=shown)


def faults(
    storage: Storage, parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]
) -> tuple[str, ...]:
    keyless = () if candidate.schema.primary_keys else append_audit.vector_file_faults(parent, candidate, touched)
    return (
        *audit.version_faults(parent, candidate, touched),
        *manifest_faults(storage, parent, candidate),
        *origin_faults(parent, candidate, touched),
        *keyless,
    )


def published(unit: Bucket) -> View:
    """Readers of a table with vectors skip level 0 and merge nothing; of any other, they merge all levels."""
    return View.RAW if skips_level0(unit.schemas.current) else View.MERGED


def shown(unit: Bucket) -> frozenset[Hashable]:
    """With keys one piece: the files that readers see, and their vectors, which are in one file."""
    if not _has_keys(unit):
        return append_scan.shown(unit)
    merges = published(unit) is View.MERGED
    files = ((file.name, file.level, file.bytes) for file in unit.files if merges or file.level > 0)
    return frozenset([*files, (unit.index_files, unit.vectors)])


def _has_keys(bucket: Bucket) -> bool:
    return bool(bucket.schemas.current.primary_keys)
