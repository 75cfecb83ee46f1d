"""A partition's files -> the task that lays new ones, and cubes not worth keeping apart, along a curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nightkeep.clustering.picking import Route, UnitFiles, cluster_work
from nightkeep.clustering.wide_task import as_wide
from nightkeep.formats.delta.metadata.schema import TableSchema
from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.cluster import ClusterTask
from nightkeep.formats.delta.rewrite.cluster_columns import columns_of
from nightkeep.formats.delta.rewrite.layout_metrics import file_bounds
from nightkeep.formats.delta.rewrite.layout_tags import cube_of
from nightkeep.formats.delta.rewrite.optimize import PackTask
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Clustering, Intent, Request
from nightkeep.protocol import Snapshot, Work


def cluster_files(snapshot: Snapshot[DeltaUnit], unit: DeltaUnit, request: Request) -> Work | None:
    """What `cluster_work` picks. Raises UsageError for columns that cannot be clustered by."""
    assert isinstance(snapshot, DeltaSnapshot)
    if request.clustering is None:
        return None
    clustering = columns_of(snapshot.schema).resolved(request.clustering)
    sizes, intent = sizes_of(snapshot, request), Intent.of(replace(request, clustering=clustering))

    def task(files: tuple[DataFile, ...], route: Route) -> object:
        chosen = replace(unit, files=files)
        if route is Route.NONE:
            return PackTask(chosen, 0, sizes.target, intent)
        found = ClusterTask(chosen, clustering, sizes.target, request.task_bytes, intent)
        return as_wide(found, found.sorting) if route is Route.EXCHANGE else found

    return cluster_work(_unit_files(unit, clustering), sizes, request, task=task)


def _unit_files(unit: DeltaUnit, clustering: Clustering) -> UnitFiles[DataFile]:
    return UnitFiles(
        unit.files,
        clustering,
        cube_of=lambda file: cube_of(file, clustering),
        bounds_of=lambda files: _bounds(unit.schema, files, clustering),
    )


def _bounds(schema: TableSchema, files: Sequence[DataFile], clustering: Clustering) -> Mapping[str, FileBounds]:
    paths = columns_of(schema).paths(clustering)
    found = file_bounds(schema, files, paths)
    return {name: found[path] for name, path in zip(clustering.columns, paths, strict=True)}
