"""Snapshot -> the health of a Paimon table."""

from __future__ import annotations

from typing import Any

from nightkeep.formats.paimon.metadata.schema import hides_level0
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import numbered
from nightkeep.formats.paimon.rewrite.append.sizing import sizes_of
from nightkeep.formats.paimon.rewrite.lag import lag
from nightkeep.formats.paimon.rewrite.levels import CompactionRules, sorted_runs
from nightkeep.formats.paimon.rewrite.writer_clock import find_clock_shift
from nightkeep.model import Request
from nightkeep.model.health import Health
from nightkeep.storage import Storage


def health(storage: Storage, snapshot: PaimonSnapshot, request: Request) -> Health:
    """`level0_*` only where batch readers do not see level 0; `sorted_runs` only of tables with keys. `deleted_rows`
    are those of vectors; None if a vector's writer did not count them."""
    keyed = bool(snapshot.schema.primary_keys)
    small = _small_bytes(snapshot, request) if keyed else sizes_of(snapshot, request).small
    files = [file for bucket in snapshot.units for file in bucket.files]
    vectors = [vector for bucket in snapshot.units for vector in bucket.vectors]
    counts = [vector.cardinality for vector in vectors]
    return Health(
        files=len(files),
        bytes=sum(file.bytes for file in files),
        small_files=sum(file.bytes < small for file in files),
        rows=sum(file.rows for file in files),
        deleted_rows=None if None in counts else sum(count for count in counts if count is not None),
        delete_files=sum(len(bucket.index_files) for bucket in snapshot.units),
        sorted_runs=max((len(sorted_runs(bucket.files)) for bucket in snapshot.units), default=0) if keyed else None,
        manifests=len(snapshot.base_manifests) + len(snapshot.delta_manifests),
        versions=sum(numbered(stored.name, "snapshot-") is not None for stored in storage.list("snapshot")),
        **_waiting(storage, snapshot, request.now_ms),
    )


def _small_bytes(snapshot: PaimonSnapshot, request: Request) -> int:
    """The size below which a compaction takes a file of a sorted run that it could leave."""
    rules = CompactionRules.of(snapshot.schema, now_ms=request.now_ms, target_bytes=request.target_bytes)
    return rules.small_file_bytes if request.min_bytes is None else request.min_bytes


def _waiting(storage: Storage, snapshot: PaimonSnapshot, now_ms: int) -> dict[str, Any]:
    if not snapshot.schema.primary_keys or not hides_level0(snapshot.schema):
        return {}
    size = sum(file.bytes for bucket in snapshot.units for file in bucket.files if file.level == 0)
    shift = find_clock_shift(storage, snapshot)
    return {**lag(snapshot.units, now_ms, shift_ms=shift), "level0_bytes": size}
