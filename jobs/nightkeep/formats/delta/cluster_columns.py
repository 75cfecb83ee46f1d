"""Names that a request clusters by -> leaf columns of the table that clustering helps, in the table's spelling."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from nightkeep.errors import UsageError
from nightkeep.formats.delta.leaves import Leaf, indexed_leaves, leaves
from nightkeep.formats.delta.metadata import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.schema import TableSchema
from nightkeep.kernels.arrow_buffers import Array, ChunkedArray
from nightkeep.model import Clustering, Request
from nightkeep.protocol import Snapshot


def require_columns(snapshot: Snapshot[DeltaUnit], request: Request) -> None:
    """Raises UsageError for a column that cannot be clustered by, saying what would work."""
    assert isinstance(snapshot, DeltaSnapshot)
    if request.clustering is not None:
        resolved(snapshot.schema, request.clustering)


def resolved(schema: TableSchema, clustering: Clustering) -> Clustering:
    """The same by the table's own names: a name is a column's in any case, or the path a.b of a leaf in a struct.

    Raises UsageError unless each is a column of the data with an order and with statistics, and named once.
    """
    found = tuple(".".join(leaf_of(schema, name).path) for name in clustering.columns)
    if len(set(found)) != len(found):
        raise UsageError(f"cluster by {', '.join(clustering.columns)}: expected different columns, one is there twice")
    return replace(clustering, columns=found)


def leaf_of(schema: TableSchema, name: str) -> Leaf:
    """The leaf that `name` means. Raises UsageError as `resolved` does."""
    _require_no_partition(schema, name)
    every = leaves(schema)
    found = [leaf for leaf in every if _same(".".join(leaf.path), name)]
    if not found:
        raise UsageError(f"cluster by {name}: {_missing(schema, every, name)}")
    leaf = found[0]
    if isinstance(leaf.type, pa.ListType | pa.MapType) or pa.types.is_null(leaf.type):
        raise UsageError(f"cluster by {name}: its type {leaf.type} has no order; {_usable(schema)} would work")
    if leaf not in indexed_leaves(schema):
        advice = f"name it in delta.dataSkippingStatsColumns and recompute them; {_usable(schema)} would work"
        raise UsageError(f"cluster by {name}: it has no statistics, so that no reader could skip files by it; {advice}")
    return leaf


def leaf_values(rows: pa.Table, path: tuple[str, ...]) -> ChunkedArray:
    """The column at `path` of logical names; null where a struct on the way is."""
    column: ChunkedArray = rows.column(path[0])
    for name in path[1:]:
        place = column.type.get_field_index(name)
        chunks: list[Array] = [struct.flatten()[place] for struct in column.chunks]  # type: ignore[attr-defined]
        column = pa.chunked_array(chunks, column.type.field(place).type)
    return column


def _require_no_partition(schema: TableSchema, name: str) -> None:
    if any(_same(column, name) for column in schema.partition_columns):
        raise UsageError(
            f"cluster by {name}: it is a partition column, one value in every file; {_usable(schema)} would work"
        )


def _missing(schema: TableSchema, every: tuple[Leaf, ...], name: str) -> str:
    inside = [".".join(leaf.path) for leaf in every if _same(leaf.path[0], name.split(".")[0])]
    if inside:
        return f"expected a leaf of a struct, one of {', '.join(inside)}"
    return f"the table has no such column; {_usable(schema)} would work"


def _usable(schema: TableSchema) -> str:
    names = [".".join(leaf.path) for leaf in indexed_leaves(schema) if leaf.ordered]
    return ", ".join(names) or "none of its columns"


def _same(left: str, right: str) -> bool:
    # Delta allows no two columns whose names differ in case alone.
    return left.lower() == right.lower()
