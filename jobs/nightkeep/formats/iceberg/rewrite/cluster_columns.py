"""Schema -> the columns that rows can be clustered by."""

from __future__ import annotations

from nightkeep.clustering.columns import ClusterColumns
from nightkeep.formats.iceberg.metadata.leaf_columns import IcebergLeaf, indexed_leaves, leaves
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.model import Clustering, Request

ADVICE = "set write.metadata.metrics.column.NAME to truncate(16) or full"


def columns_of(schema: IcebergSchema, constant: tuple[str, ...] = ()) -> ClusterColumns:
    return ClusterColumns(leaves(schema), indexed_leaves(schema), constant, ADVICE)


def resolved(snapshot: IcebergSnapshot, clustering: Clustering) -> Clustering:
    """The clustering with the table's own column names. Raises UsageError for a column that cannot be clustered by."""
    return columns_of(snapshot.schema, _constant(snapshot)).resolved(clustering)


def chosen_leaves(schema: IcebergSchema, clustering: Clustering) -> tuple[IcebergLeaf, ...]:
    """The leaves of a clustering's columns, in its order. `clustering` has the table's own names."""
    by_path = {leaf.path: leaf for leaf in leaves(schema)}
    return tuple(by_path[path] for path in columns_of(schema).paths(clustering))


def require_columns(snapshot: IcebergSnapshot, request: Request) -> None:
    """Raises UsageError for a column that cannot be clustered by; the message says what works."""
    if request.clustering is not None:
        resolved(snapshot, request.clustering)


def _constant(snapshot: IcebergSnapshot) -> tuple[str, ...]:
    """Columns with one value per partition in every spec that still has files: clustering by them is useless."""
    schema = snapshot.schema
    specs = {unit.spec_id for unit in snapshot.units if unit.files} or {schema.default_spec_id}
    alike = [{f.source_id for f in schema.spec(spec_id).fields if str(f.transform) == "identity"} for spec_id in specs]
    names = (schema.current.find_column_name(number) for number in sorted(set.intersection(*alike)))
    return tuple(name for name in names if name is not None)
