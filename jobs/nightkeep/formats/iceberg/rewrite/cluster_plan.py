"""A partition's files -> the task that lays new ones, and cubes not worth keeping apart, along a curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nightkeep.clustering.picking import Route, UnitFiles, cluster_work
from nightkeep.clustering.wide_task import as_wide
from nightkeep.formats.iceberg.data.bounds import file_bounds
from nightkeep.formats.iceberg.metadata.schema import TableSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.cluster import ClusterTask, mark_of
from nightkeep.formats.iceberg.rewrite.cluster_columns import chosen_leaves, resolved
from nightkeep.formats.iceberg.rewrite.inputs import Inputs, PlacedFile, placed_files
from nightkeep.formats.iceberg.rewrite.layout_tags import cube_of
from nightkeep.formats.iceberg.rewrite.optimize import PackTask
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Clustering, Request
from nightkeep.protocol import Snapshot, Work


def cluster_files(snapshot: Snapshot[IcebergUnit], unit: IcebergUnit, request: Request) -> Work | None:
    """What `cluster_work` picks. Raises UsageError for columns that cannot be clustered by."""
    assert isinstance(snapshot, IcebergSnapshot)
    if request.clustering is None or unit.left_out:
        return None
    clustering, sizes = resolved(snapshot, request.clustering), sizes_of(snapshot, request)
    named = replace(request, clustering=clustering)

    def task(files: tuple[PlacedFile, ...], route: Route) -> object:
        inputs = Inputs.of(snapshot, unit, files, named)
        if route is Route.NONE:
            return PackTask(inputs, 0, sizes.target)
        found = ClusterTask(inputs, clustering, sizes.target, request.task_bytes)
        return as_wide(found, found.sorting) if route is Route.EXCHANGE else found

    return cluster_work(_unit_files(unit, clustering), sizes, request, task=task)


def _unit_files(unit: IcebergUnit, clustering: Clustering) -> UnitFiles[PlacedFile]:
    mark = mark_of(unit.schema, clustering)
    return UnitFiles(
        placed_files(unit),
        clustering,
        cube_of=lambda placed: cube_of(placed.file.path, mark),
        bounds_of=lambda files: _bounds(unit.schema, files, clustering),
    )


def _bounds(schema: TableSchema, files: Sequence[PlacedFile], clustering: Clustering) -> Mapping[str, FileBounds]:
    chosen = chosen_leaves(schema, clustering)
    found = file_bounds([placed.file for placed in files], chosen)
    return {name: found[leaf.path] for name, leaf in zip(clustering.columns, chosen, strict=True)}
