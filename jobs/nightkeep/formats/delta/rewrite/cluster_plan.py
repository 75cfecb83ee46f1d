"""A partition's files -> the task that clusters new files, and small cubes again with them, along a curve."""

from __future__ import annotations

from dataclasses import replace

from nightkeep.clustering.picking import UnitFiles, cluster_work
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.cluster_columns import columns_of
from nightkeep.formats.delta.rewrite.file_bounds import file_bounds
from nightkeep.formats.delta.rewrite.inputs import DeltaCluster, DeltaInputs, DeltaPack
from nightkeep.formats.delta.rewrite.layout_tags import cube_of
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Intent, Request
from nightkeep.protocol import OpenWide, Work


def cluster_files(
    snapshot: DeltaSnapshot, unit: DeltaUnit, request: Request
) -> Work[DeltaPack | DeltaCluster | OpenWide] | None:
    """The work that `cluster_work` picks. Raises UsageError for columns that the table cannot be clustered by."""
    if request.clustering is None:
        return None
    clustering = columns_of(snapshot.schema).resolved(request.clustering)
    sizes, intent = sizes_of(snapshot, request), Intent.of(replace(request, clustering=clustering))
    paths = columns_of(unit.schema).paths(clustering)
    files = UnitFiles(
        unit.files,
        clustering,
        paths,
        cube_of=lambda file: cube_of(file, clustering),
        bounds_of=lambda files: file_bounds(unit.schema, files, paths),
    )
    return cluster_work(files, sizes, request, inputs_of=lambda files: DeltaInputs(replace(unit, files=files), intent))
