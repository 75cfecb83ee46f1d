"""Two versions -> figures of how well readers can skip files in each. Reads only statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightkeep.clustering.layout_metrics import layout_figures
from nightkeep.formats.paimon.metadata.snapshot import PaimonDataFile, PaimonSnapshot
from nightkeep.formats.paimon.rewrite.append.cluster_columns import indexed_fields
from nightkeep.formats.paimon.rewrite.append.file_bounds import file_bounds
from nightkeep.model import UnitKey


def layout_metrics(before: PaimonSnapshot, after: PaimonSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """The figures of the touched units, for every column with bounds."""
    columns = indexed_fields(after.schema)
    return layout_figures(*(file_bounds(side.schemas, _files(side, touched), columns) for side in (before, after)))


def _files(snapshot: PaimonSnapshot, touched: Sequence[UnitKey]) -> list[PaimonDataFile]:
    units = (snapshot.buckets.get(key) for key in touched)
    return [file for unit in units if unit is not None for file in unit.files]
