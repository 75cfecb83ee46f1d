"""Two versions -> figures of how well readers can skip files in each. Reads only statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightkeep.clustering.layout_metrics import layout_figures, touched_files
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.file_bounds import file_bounds
from nightkeep.model import UnitKey


def layout_metrics(before: DeltaSnapshot, after: DeltaSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """The figures of the touched partitions, for every column with bounds, by its dotted path."""
    paths = [leaf.path for leaf in indexed_leaves(after.schema) if leaf.ordered]
    sides = [file_bounds(side.schema, touched_files(side, touched), paths) for side in (before, after)]
    return layout_figures(*sides)
