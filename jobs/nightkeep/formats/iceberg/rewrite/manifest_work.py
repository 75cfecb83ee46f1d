"""Snapshot with too many small manifests and no other work -> a task that makes the commit merge them.

Manifests belong to no unit: a commit merges them all. If any unit has work, its edit asks for the merge. Otherwise the
lightest unit gets a task that changes none of its files: it costs one proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.formats.iceberg.metadata.manifest_merge import to_merge, worth_merging
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT, IcebergInputs
from nightkeep.formats.iceberg.rewrite.own_order import cluster_files
from nightkeep.formats.iceberg.rewrite.respec import respec_files
from nightkeep.model import Estimate, Request
from nightkeep.protocol import Work


@dataclass(frozen=True, slots=True)
class ManifestTask:
    """A task that replaces no file. Its edit asks the commit to merge manifests."""

    inputs: IcebergInputs


def merge_manifests(snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request) -> Work[ManifestTask] | None:
    """Work for the lightest unit, if no unit has other work and no filter excludes units; else None."""
    if unit is not snapshot.lightest or request.where is not None:
        return None
    reason = worth_merging(snapshot)
    if reason is None or any(_has_work(snapshot, other, request) for other in snapshot.units):
        return None
    picked = to_merge(snapshot.manifests, snapshot.schema)
    size = sum(manifest.bytes for manifest in picked)
    task = ManifestTask(IcebergInputs.of(snapshot, unit, (), request))
    benefit = "readers open fewer manifests to plan a scan"
    return Work(
        reason=reason,
        input_files=tuple(manifest.name for manifest in picked),
        input_bytes=size,
        estimate=Estimate(size, size, len(unit.files), benefit),
        tasks=(task,),
    )


def _has_work(snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request) -> bool:
    return any(rule(snapshot, unit, request) is not None for rule in (respec_files, cluster_files, LAYOUT.pack_files))
