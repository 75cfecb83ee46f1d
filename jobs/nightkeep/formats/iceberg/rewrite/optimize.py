"""An Iceberg table's part of packing and clustering: its columns, bounds, marks and readers, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from pyroaring import BitMap64

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.columns import ClusterColumns, ClusterLeaf, Paths
from nightkeep.clustering.even_files import CountingStorage
from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.clustering.layout import Bounds
from nightkeep.clustering.layout_names import cube_of, layout_mark, packed_mark, run_of
from nightkeep.clustering.live_rows import Hidden, LiveRows, OpenFile
from nightkeep.clustering.packing import is_settled
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.shredding import shredding_of
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.partition_values import require_partition_values
from nightkeep.formats.iceberg.data.write import IcebergFileWriter, WrittenIcebergFile
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.leaf_columns import indexed_leaves, leaves
from nightkeep.formats.iceberg.metadata.manifest_merge import worth_merging
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.sort_orders import UNSORTED
from nightkeep.formats.iceberg.metadata.types import arrow_schema
from nightkeep.formats.iceberg.metadata.variants import variants
from nightkeep.formats.iceberg.rewrite.delete_matching import probes
from nightkeep.formats.iceberg.rewrite.file_bounds import file_bounds
from nightkeep.formats.iceberg.rewrite.hidden_rows import INDEX_BYTES, hidden
from nightkeep.formats.iceberg.rewrite.persist_plan import refuse_persisting
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile, placed_files
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Clustering, Intent, Request, Run, UnitKey
from nightkeep.model.variant_type import Shredding
from nightkeep.storage import Storage

SHREDS: Final = "write.parquet.shred-variants"
ADVICE: Final = "set write.metadata.metrics.column.NAME to truncate(16) or full"


def refuse_unhandled(snapshot: IcebergSnapshot, request: Request) -> None:
    """Raises RefusedTable for equality delete keys that readers compare differently, and for files we cannot write."""
    refuse_persisting(snapshot, request)
    if snapshot.unread is None:
        nowhere, naming = cast(Storage, CountingStorage("")), IcebergNaming(Run("", "", "", 0))
        IcebergFileWriter(nowhere, snapshot.schema, naming, spec_id=snapshot.schema.default_spec_id, values=())


def shredding_note(snapshot: IcebergSnapshot) -> str | None:
    """A note where writers shred variants, which rewritten files may have as plain ones."""
    schema = snapshot.schema
    if schema.properties.get(SHREDS, "").lower() != "true" or not any(variants(schema.current.fields)):
        return None
    return (
        f"{SHREDS} is true: files that are not shredded alike become files of plain variants, which readers read whole"
    )


def layout_metrics(before: IcebergSnapshot, after: IcebergSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """The figures of the layout; and counts of deletes by kind.

    `delete_files` counts live files of the whole table: equality deletes, position deletes, vectors.
    """
    deletes = {"before": _deletes(before), "after": _deletes(after)}
    return {**LAYOUT.layout_metrics(before, after, touched), "delete_files": deletes}


def _deletes(snapshot: IcebergSnapshot) -> Mapping[str, int]:
    positional = {file.identity: file for unit in snapshot.units for file in unit.positional}.values()
    equality = {file.identity for unit in snapshot.units for file in unit.equality}
    vectors = sum(file.is_vector for file in positional)
    return {"equality": len(equality), "position": len(positional) - vectors, "vectors": vectors}


@dataclass(frozen=True, slots=True)
class IcebergInputs:
    """The `files` that a task replaces. `unit` has only what is needed to read them.

    New files get the data sequence number `planned_sequence`: deletes newer than the plan then apply to them, as they
    do to the old files. The index of deleted keys is built in parts of `index_bytes`.
    """

    unit: IcebergUnit
    files: tuple[PlacedFile, ...]
    planned_sequence: int
    index_bytes: int
    intent: Intent
    rewrites_manifests: bool

    @classmethod
    def of(
        cls, snapshot: IcebergSnapshot, unit: IcebergUnit, files: Sequence[PlacedFile], request: Request
    ) -> IcebergInputs:
        return cls(
            unit=_reading(unit, files),
            files=tuple(files),
            planned_sequence=snapshot.sequence_number,
            index_bytes=min(INDEX_BYTES, max(1, request.task_bytes // 8)),
            intent=Intent.of(request),
            rewrites_manifests=worth_merging(snapshot) is not None,
        )

    @property
    def key(self) -> UnitKey:
        return self.unit.key

    def rows(self, storage: Storage) -> LiveRows[PlacedFile]:
        kept = live_rows(storage, self.unit, index_bytes=self.index_bytes, shredding=Shredding.KEPT)
        shredding = shredding_of(self.files, arrow_schema(self.unit.schema.current), kept.opened)
        return live_rows(storage, self.unit, index_bytes=self.index_bytes, shredding=shredding)

    def writer(self, storage: Storage, run: Run, layout: FileLayout) -> IcebergFileWriter:
        """A writer of files of the partition, in its spec, and with the rows' lineage."""
        unit, sequence = self.unit, self.planned_sequence
        is_by_order = layout.clustering is not None and layout.clustering.order is not None
        naming = IcebergNaming(run, unit.key, mark=mark_of(unit.schema, layout))
        return IcebergFileWriter(
            storage,
            unit.schema,
            naming,
            spec_id=unit.spec_id,
            values=unit.values,
            sequence_number=sequence,
            sort_order_id=unit.schema.sort_orders.default_id if is_by_order else UNSORTED,
            group_bytes=layout.group_bytes,
        )

    def edit(self, written: Sequence[WrittenIcebergFile], *, removed: Sequence[PlacedFile]) -> IcebergEdit:
        """The edit: removes files with the deletes of these files only. The commit decides on other deletes."""
        return IcebergEdit(
            planned_sequence=self.planned_sequence,
            intent=self.intent,
            removed=tuple(each for placed in removed for each in (placed.file, *placed.own)),
            added=tuple(each.file for each in written),
            rewrites_manifests=self.rewrites_manifests,
        )


IcebergPack = PackTask[PlacedFile, WrittenIcebergFile, IcebergEdit]
IcebergCluster = ClusterTask[PlacedFile, WrittenIcebergFile, IcebergEdit]


def _reading(unit: IcebergUnit, files: Sequence[PlacedFile]) -> IcebergUnit:
    data = tuple(placed.file for placed in files)
    positional = {delete.identity: delete for placed in files for delete in placed.held}
    by_keys = [placed.file for placed in files if placed.by_keys]
    equality = {delete.identity: delete for probe in probes(unit, by_keys) for delete in probe.deletes}
    return replace(unit, files=data, positional=tuple(positional.values()), equality=tuple(equality.values()))


def live_rows(
    storage: Storage, unit: IcebergUnit, *, index_bytes: int = INDEX_BYTES, shredding: Shredding = Shredding.ASSEMBLED
) -> LiveRows[PlacedFile]:
    """Deleted positions are computed once for a file, with indexes of deleted keys of `index_bytes`."""
    found: dict[str, BitMap64 | None] = {}

    def opened(placed: PlacedFile) -> IcebergFileReader:
        return IcebergFileReader(storage, unit.schema, placed.file, shredding=shredding)

    def positions(files: Sequence[PlacedFile]) -> Hidden[PlacedFile]:
        new = [placed.file for placed in files if placed.deletes and placed.file.path not in found]
        if new:
            rows = hidden(storage, unit, new, index_bytes=index_bytes)
            found.update((file.path, rows.get(file.path)) for file in new)
        return lambda placed: found.get(placed.file.path)

    def require(placed: PlacedFile, reader: OpenFile) -> None:
        require_partition_values(storage, unit.schema, [placed.file])
        if reader.rows != placed.rows:
            raise CorruptMetadata(placed.file.path, f"{placed.rows} rows, as its manifest counts", str(reader.rows))

    def deleted_rows(files: Sequence[PlacedFile]) -> int:
        of = positions(files)
        return sum(len(of(placed) or ()) for placed in files)

    return LiveRows(opened, positions, require, deleted_rows)


def mark_of(schema: IcebergSchema, layout: FileLayout) -> str:
    """The mark in names of files with this layout. A clustering has the table's own names."""
    order = schema.sort_orders.default
    if layout.clustering is not None and layout.clustering.order is not None and order is not None:
        return order.mark
    return layout_mark(layout, {".".join(leaf.path): leaf.field.field_id for leaf in reversed(leaves(schema))})


def _listed(unit: IcebergUnit) -> Sequence[ContentFile]:
    return () if unit.left_out else unit.files


def _placed(unit: IcebergUnit) -> Sequence[PlacedFile]:
    """Equality deletes alone make no file worn, as metadata cannot count their rows. Rewriting a file applies them."""
    return () if unit.left_out else placed_files(unit)


def _listed_of(files: Sequence[PlacedFile]) -> Sequence[ContentFile]:
    return [placed.file for placed in files]


def _columns(snapshot: IcebergSnapshot) -> ClusterColumns:
    schema = snapshot.schema
    return ClusterColumns(leaves(schema), indexed_leaves(schema), _constant(snapshot), ADVICE)


def _constant(snapshot: IcebergSnapshot) -> tuple[str, ...]:
    """Columns with one value per partition in every spec that still has files: clustering by them is useless."""
    schema = snapshot.schema
    specs = {unit.spec_id for unit in snapshot.units if unit.files} or {schema.default_spec_id}
    alike = [{f.source_id for f in schema.spec(spec_id).fields if str(f.transform) == "identity"} for spec_id in specs]
    names = (schema.current.find_column_name(number) for number in sorted(set.intersection(*alike)))
    return tuple(name for name in names if name is not None)


def _measured(columns: ClusterColumns) -> Sequence[ClusterLeaf]:
    return columns.leaves


def _bounds(snapshot: IcebergSnapshot, files: Sequence[ContentFile], paths: Paths) -> Bounds:
    by_path = {leaf.path: leaf for leaf in leaves(snapshot.schema)}
    return file_bounds(files, [by_path[path] for path in paths])


def _cube_of(snapshot: IcebergSnapshot, clustering: Clustering) -> Callable[[PlacedFile], str | None]:
    mark = mark_of(snapshot.schema, FileLayout(0, clustering))
    return lambda file: cube_of(file.name, mark)


def _is_settled(files: Sequence[PlacedFile], target_bytes: int) -> bool:
    mark = packed_mark(target_bytes)

    def run(placed: PlacedFile) -> str | None:
        return run_of(placed.name, mark)

    return is_settled(files, run, lambda placed: _seen(placed, is_ours=run(placed) is not None))


def _seen(placed: PlacedFile, *, is_ours: bool) -> int:
    """The data sequence number for files that we wrote (that of the plan), else the file sequence number."""
    return placed.file.sequence_number if is_ours else placed.file.file_sequence_number


LAYOUT: Final[FormatLayout[IcebergSnapshot, IcebergUnit, ContentFile, PlacedFile, WrittenIcebergFile, IcebergEdit]] = (
    FormatLayout(
        listed=_listed,
        files=_placed,
        listed_of=_listed_of,
        sizes=sizes_of,
        columns=_columns,
        bounds=_bounds,
        cube_of=_cube_of,
        is_settled=_is_settled,
        inputs=IcebergInputs.of,
        rows=live_rows,
        measured=_measured,
        deletes="delete",
    )
)
