"""A Delta table's part of packing and clustering: its columns, bounds, tags, readers and edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.columns import ClusterColumns, Paths
from nightkeep.clustering.cubes import cube_mark, marked_cube
from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.clustering.layout import Bounds
from nightkeep.clustering.live_rows import LiveRows
from nightkeep.clustering.packing import is_settled
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.shredding import shredding_of
from nightkeep.formats.delta.data.bounds import ColumnBounds, every_bounds
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.data.write import DeltaFileWriter, WrittenDeltaFile
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.clustering import PROVIDER, provider_of
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.features import refuse_features
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves, leaves
from nightkeep.formats.delta.metadata.live_files import DeltaFiles
from nightkeep.formats.delta.metadata.naming import DeltaNaming
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Clustering, Intent, Request, Run, UnitKey
from nightkeep.model.variant_type import Shredding
from nightkeep.storage import Storage

ADVICE: Final = "name it in delta.dataSkippingStatsColumns and recompute them"
PACKED: Final = "nightkeep.packed"
"""Tag of a file that packing wrote: run and target. Such files are not packed again together until one of them changes.
"""
CLUSTERED: Final = "nightkeep.clustering"
"""Tag of a file that clustering wrote. Readers may ignore tags, and other writers drop it when they rewrite the file.
"""


def refuse_unhandled(snapshot: DeltaSnapshot, request: Request) -> None:
    """Raises RefusedTable for a feature of the table that we do not handle, whatever the request is."""
    refuse_features(snapshot.table.name, snapshot.raw_protocol, snapshot.raw_metadata, domains=snapshot.domains)


@dataclass(frozen=True, slots=True)
class DeltaInputs:
    """The input of one task. `unit` has only the files that are replaced."""

    unit: DeltaUnit
    intent: Intent

    @property
    def key(self) -> UnitKey:
        return self.unit.key

    @property
    def files(self) -> Sequence[DeltaDataFile]:
        return self.unit.files

    def rows(self, storage: Storage) -> LiveRows[DeltaDataFile]:
        return live_rows(storage, self.unit, unit_shredding(storage, self.unit))

    def writer(self, storage: Storage, run: Run, layout: FileLayout) -> DeltaFileWriter:
        schema, naming = self.unit.schema, DeltaNaming(run, self.key)
        provider = None
        if layout.clustering is not None and schema.clustering:
            layout, provider = replace(layout, clustering=_as_marked(schema, layout.clustering)), PROVIDER
        return DeltaFileWriter(
            storage,
            schema,
            naming,
            self.unit.stored_partition,
            now_ms=run.now_ms,
            tags=layout_tags(layout, run.token, self.key),
            provider=provider,
            group_bytes=layout.group_bytes,
        )

    def edit(self, written: Sequence[WrittenDeltaFile], *, removed: Sequence[DeltaDataFile]) -> DeltaEdit:
        return DeltaEdit(tuple(removed), tuple(file.add for file in written), self.intent)


DeltaPack = PackTask[DeltaDataFile, WrittenDeltaFile, DeltaEdit]
DeltaCluster = ClusterTask[DeltaDataFile, WrittenDeltaFile, DeltaEdit]


def unit_shredding(storage: Storage, unit: DeltaUnit) -> Shredding:
    """What becomes of the shredded variants of the files of a unit that are replaced together."""
    schema = pa.schema([(field.name, field.type) for field in unit.schema.data_fields])
    return shredding_of(unit.files, schema, live_rows(storage, unit, Shredding.KEPT).opened)


def live_rows(storage: Storage, unit: DeltaUnit, shredding: Shredding = Shredding.ASSEMBLED) -> LiveRows[DeltaDataFile]:
    def opened(file: DeltaDataFile) -> DeltaFileReader:
        return DeltaFileReader(storage, unit, file, shredding=shredding)

    def hidden(file: DeltaDataFile) -> BitMap64:
        return read_vector(storage, file)

    return LiveRows(opened, lambda _: hidden)


def layout_tags(layout: FileLayout, token: str, key: UnitKey) -> Mapping[str, str]:
    """The tags of files that one run writes in one partition."""
    if layout.clustering is None:
        return {PACKED: f"{token}/{layout.target_bytes}"}
    return {CLUSTERED: cube_mark(layout.clustering, token, key)}


def run_of(file: DeltaDataFile, target_bytes: int) -> str | None:
    """The tag's value if the file was packed to this target, else None. It identifies the run."""
    tag = file.tags.get(PACKED, "")
    return tag if tag.endswith(f"/{target_bytes}") else None


def cube_of(file: DeltaDataFile, clustering: Clustering) -> str | None:
    """The cube that a file is part of; None unless it was clustered by these columns along this curve."""
    return marked_cube(file.tags.get(CLUSTERED, ""), clustering)


def _files(unit: DeltaUnit) -> Sequence[DeltaDataFile]:
    return unit.files


def _same(files: Sequence[DeltaDataFile]) -> Sequence[DeltaDataFile]:
    return files


def _columns(snapshot: DeltaSnapshot) -> ClusterColumns:
    schema = snapshot.schema
    return ClusterColumns(leaves(schema), indexed_leaves(schema), schema.partition_columns, ADVICE)


def file_bounds(snapshot: DeltaSnapshot, files: Sequence[DeltaDataFile], paths: Paths) -> Bounds:
    """A file without statistics has unknown bounds, and counts as having a row, so that readers open it."""
    return {path: _file_bounds(column) for path, column in every_bounds(snapshot.schema, files, paths).items()}


def _file_bounds(column: ColumnBounds) -> FileBounds:
    rows, nulls = (np.asarray(counts.fill_null(some)) for counts, some in ((column.rows, 1), (column.nulls, 0)))
    return FileBounds(column.lows, column.highs, rows - nulls)


def _cube_of(snapshot: DeltaSnapshot, clustering: Clustering) -> Callable[[DeltaDataFile], str | None]:
    if not snapshot.schema.clustering:
        return lambda file: cube_of(file, clustering)
    marked = _as_marked(snapshot.schema, clustering)
    return lambda file: cube_of(file, marked) if provider_of(file) == PROVIDER else None


def _as_marked(schema: DeltaSchema, clustering: Clustering) -> Clustering:
    """The clustering of a table with clustering columns, as the tags of its files name it: by physical names, so that a
    renamed column is the same one."""
    paths = (".".join(f"`{name}`" if "." in name else name for name in path) for path in schema.clustering)
    return replace(clustering, columns=tuple(paths))


def _is_settled(files: Sequence[DeltaDataFile], target_bytes: int) -> bool:
    if isinstance(files, DeltaFiles) and not files.tagged(PACKED):
        return False
    return is_settled(files, lambda file: run_of(file, target_bytes), _modified)


def _modified(file: DeltaDataFile) -> int:
    modified_ms = file.raw.get("modificationTime")
    return modified_ms if isinstance(modified_ms, int) else 0


def _inputs(snapshot: DeltaSnapshot, unit: DeltaUnit, files: Sequence[DeltaDataFile], request: Request) -> DeltaInputs:
    return DeltaInputs(replace(unit, files=files), Intent.of(request))


LAYOUT: Final[FormatLayout[DeltaSnapshot, DeltaUnit, DeltaDataFile, DeltaDataFile, WrittenDeltaFile, DeltaEdit]] = (
    FormatLayout(
        listed=_files,
        files=_files,
        listed_of=_same,
        sizes=sizes_of,
        columns=_columns,
        bounds=file_bounds,
        cube_of=_cube_of,
        is_settled=_is_settled,
        inputs=_inputs,
        rows=live_rows,
    )
)
