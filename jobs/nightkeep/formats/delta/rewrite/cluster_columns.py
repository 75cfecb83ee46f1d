"""A schema -> the columns that its rows may be clustered by."""

from __future__ import annotations

from nightkeep.clustering.columns import ClusterColumns
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves, leaves
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.model import Request

ADVICE = "name it in delta.dataSkippingStatsColumns and recompute them"


def columns_of(schema: DeltaSchema) -> ClusterColumns:
    return ClusterColumns(leaves(schema), indexed_leaves(schema), schema.partition_columns, ADVICE)


def require_columns(snapshot: DeltaSnapshot, request: Request) -> None:
    """Raises UsageError for a column that the table cannot be clustered by, with the columns that would work."""
    if request.clustering is not None:
        columns_of(snapshot.schema).resolved(request.clustering)
