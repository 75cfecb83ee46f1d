"""A bucket's files -> the task that clusters new files, and small cubes again with them, along a curve."""

from __future__ import annotations

from nightkeep.clustering.layout_names import cube_of
from nightkeep.clustering.picking import UnitFiles, cluster_work
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.rewrite.append.append_files import append_files
from nightkeep.formats.paimon.rewrite.append.cluster_columns import columns_of
from nightkeep.formats.paimon.rewrite.append.file_bounds import file_bounds
from nightkeep.formats.paimon.rewrite.append.inputs import AppendCluster, AppendInputs, AppendPack, mark_of
from nightkeep.formats.paimon.rewrite.append.prune import PruneTask, with_pruning
from nightkeep.formats.paimon.rewrite.append.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import OpenWide, Work


def cluster_files(
    snapshot: PaimonSnapshot, bucket: Bucket, request: Request
) -> Work[AppendPack | AppendCluster | OpenWide | PruneTask] | None:
    """The work that `cluster_work` picks. Raises UsageError for columns that the table cannot be clustered by."""
    if request.clustering is None:
        return None
    schema, columns = snapshot.schema, columns_of(snapshot.schema)
    clustering = columns.resolved(request.clustering)
    mark, fields = mark_of(schema, clustering), schema.select(clustering.columns)
    files = UnitFiles(
        append_files(bucket),
        clustering,
        columns.paths(clustering),
        cube_of=lambda file: cube_of(file.name, mark),
        bounds_of=lambda files: file_bounds(snapshot.schemas, [file.file for file in files], fields),
    )
    sizes = sizes_of(schema, request)
    return with_pruning(cluster_work(files, sizes, request, inputs_of=lambda f: AppendInputs(bucket, f)), bucket)
