"""Two versions -> figures of their layouts, from file statistics in manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightkeep.clustering.layout_metrics import layout_figures, touched_files
from nightkeep.formats.iceberg.metadata.leaf_columns import leaves
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.rewrite.file_bounds import file_bounds
from nightkeep.model import UnitKey


def layout_metrics(before: IcebergSnapshot, after: IcebergSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """Figures of the touched partitions for every column with bounds, by dotted path; and counts of deletes by kind.

    `delete_files` counts live files of the whole table: equality deletes, position deletes, vectors.
    """
    columns = [leaf for leaf in leaves(after.schema) if leaf.ordered]
    sides = [file_bounds(touched_files(side, touched), columns) for side in (before, after)]
    return {**layout_figures(*sides), "delete_files": {"before": _deletes(before), "after": _deletes(after)}}


def _deletes(snapshot: IcebergSnapshot) -> Mapping[str, int]:
    positional = {file.identity: file for unit in snapshot.units for file in unit.positional}.values()
    equality = {file.identity for unit in snapshot.units for file in unit.equality}
    vectors = sum(file.is_vector for file in positional)
    return {"equality": len(equality), "position": len(positional) - vectors, "vectors": vectors}
