"""A table with too many small manifests and nothing else to do -> a task that has them merged.

Manifests are no unit's: a commit merges them all. Where a unit is worked on anyway, its edit asks for that; else the
lightest unit's does, which changes nothing of it and costs one proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.formats.iceberg.metadata.manifest_merge import to_merge, worth_merging
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.cluster_plan import cluster_files
from nightkeep.formats.iceberg.rewrite.inputs import IcebergInputs
from nightkeep.formats.iceberg.rewrite.optimize import pack_files
from nightkeep.model import Estimate, Request
from nightkeep.protocol import Work


@dataclass(frozen=True, slots=True)
class ManifestTask:
    """No file of the unit is replaced."""

    inputs: IcebergInputs


def merge_manifests(snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request) -> Work[ManifestTask] | None:
    """Work for the lightest unit, where no unit has any other and no filter leaves some out."""
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
    return any(rule(snapshot, unit, request) is not None for rule in (cluster_files, pack_files))
