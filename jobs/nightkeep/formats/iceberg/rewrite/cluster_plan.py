"""A partition's files -> a task that clusters new files, and cubes too small to keep separate, along a curve."""

from __future__ import annotations

from dataclasses import replace

from nightkeep.clustering.layout_names import cube_of
from nightkeep.clustering.picking import UnitFiles, cluster_work
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.cluster_columns import chosen_leaves, resolved
from nightkeep.formats.iceberg.rewrite.file_bounds import file_bounds
from nightkeep.formats.iceberg.rewrite.inputs import IcebergCluster, IcebergInputs, IcebergPack, mark_of
from nightkeep.formats.iceberg.rewrite.placed_files import placed_files
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import OpenWide, Work


def cluster_files(
    snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request
) -> Work[IcebergPack | IcebergCluster | OpenWide] | None:
    """The work that `cluster_work` picks. Raises UsageError for columns that cannot be clustered by."""
    if request.clustering is None or unit.left_out:
        return None
    clustering, sizes = resolved(snapshot, request.clustering), sizes_of(snapshot, request)
    named = replace(request, clustering=clustering)
    mark, chosen = mark_of(unit.schema, clustering), chosen_leaves(unit.schema, clustering)
    files = UnitFiles(
        placed_files(unit),
        clustering,
        tuple(leaf.path for leaf in chosen),
        cube_of=lambda placed: cube_of(placed.file.path, mark),
        bounds_of=lambda files: file_bounds([placed.file for placed in files], chosen),
    )
    return cluster_work(files, sizes, request, inputs_of=lambda files: IcebergInputs.of(snapshot, unit, files, named))
