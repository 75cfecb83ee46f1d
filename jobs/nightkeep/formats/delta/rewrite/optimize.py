"""A Delta table's part of packing and clustering: its columns, bounds, marks and readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pyroaring import BitMap64

from nightkeep.clustering.columns import ClusterColumns, Paths
from nightkeep.clustering.format_layout import FormatLayout, units_of
from nightkeep.clustering.layout import Bounds
from nightkeep.clustering.layout_metrics import touched_files
from nightkeep.clustering.packing import is_settled
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.data.write import WrittenDeltaFile
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.features import refuse_features
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves, leaves
from nightkeep.formats.delta.metadata.live_files import DeltaFiles
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.file_bounds import file_bounds
from nightkeep.formats.delta.rewrite.inputs import DeltaInputs
from nightkeep.formats.delta.rewrite.layout_tags import PACKED, cube_of, run_of
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Clustering, Intent, Request
from nightkeep.storage import Storage

ADVICE: Final = "name it in delta.dataSkippingStatsColumns and recompute them"


def refuse_unhandled(snapshot: DeltaSnapshot, request: Request) -> None:
    """Raises RefusedTable for a feature of the table with which the operation cannot be done."""
    refuse_features(
        snapshot.table.name, snapshot.raw_protocol, snapshot.raw_metadata, request.operation, domains=snapshot.domains
    )


def _files(unit: DeltaUnit) -> Sequence[DeltaDataFile]:
    return unit.files


def _same(files: Sequence[DeltaDataFile]) -> Sequence[DeltaDataFile]:
    return files


def _columns(snapshot: DeltaSnapshot) -> ClusterColumns:
    schema = snapshot.schema
    return ClusterColumns(leaves(schema), indexed_leaves(schema), schema.partition_columns, ADVICE)


def _indexed(snapshot: DeltaSnapshot) -> Paths:
    return tuple(leaf.path for leaf in indexed_leaves(snapshot.schema) if leaf.ordered)


def _bounds(snapshot: DeltaSnapshot, paths: Paths) -> Callable[[Sequence[DeltaDataFile]], Bounds]:
    return lambda files: file_bounds(snapshot.schema, files, paths)


def _cube_of(snapshot: DeltaSnapshot, clustering: Clustering) -> Callable[[DeltaDataFile], str | None]:
    return lambda file: cube_of(file, clustering)


def _is_settled(files: Sequence[DeltaDataFile], target_bytes: int) -> bool:
    if isinstance(files, DeltaFiles) and not files.tagged(PACKED):
        return False
    return is_settled(files, lambda file: run_of(file, target_bytes), _modified)


def _modified(file: DeltaDataFile) -> int:
    modified_ms = file.raw.get("modificationTime")
    return modified_ms if isinstance(modified_ms, int) else 0


def _inputs(snapshot: DeltaSnapshot, unit: DeltaUnit, files: Sequence[DeltaDataFile], request: Request) -> DeltaInputs:
    return DeltaInputs(replace(unit, files=files), Intent.of(request))


def _opened(
    storage: Storage, unit: DeltaUnit, files: Sequence[DeltaDataFile]
) -> Iterator[tuple[DeltaFileReader, BitMap64]]:
    for file in files:
        gone = read_vector(storage, file)
        yield DeltaFileReader(storage, unit, file), gone


def _top_columns(unit: DeltaUnit) -> Sequence[str]:
    return [field.name for field in unit.schema.fields]


LAYOUT: Final[FormatLayout[DeltaSnapshot, DeltaUnit, DeltaDataFile, DeltaDataFile, WrittenDeltaFile, DeltaEdit]] = (
    FormatLayout(
        units=units_of,
        listed=_files,
        touched=touched_files,
        files=_files,
        listed_of=_same,
        sizes=sizes_of,
        columns=_columns,
        indexed=_indexed,
        measured=_indexed,
        bounds=_bounds,
        cube_of=_cube_of,
        is_settled=_is_settled,
        inputs=_inputs,
        opened=_opened,
        top_columns=_top_columns,
    )
)
