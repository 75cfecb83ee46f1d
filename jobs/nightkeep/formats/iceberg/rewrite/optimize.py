"""An Iceberg table's part of packing and clustering: its columns, bounds, marks and readers, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pyroaring import BitMap64

from nightkeep.clustering.columns import ClusterColumns, Paths
from nightkeep.clustering.format_layout import FormatLayout, units_of
from nightkeep.clustering.layout import Bounds
from nightkeep.clustering.layout_metrics import touched_files
from nightkeep.clustering.layout_names import cube_of, packed_mark, run_of
from nightkeep.clustering.packing import is_settled
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.write import WrittenIcebergFile
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.leaf_columns import indexed_leaves, leaves
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.table_metadata import objects
from nightkeep.formats.iceberg.rewrite.file_bounds import file_bounds
from nightkeep.formats.iceberg.rewrite.hidden_rows import hidden
from nightkeep.formats.iceberg.rewrite.inputs import IcebergInputs, mark_of, measuring
from nightkeep.formats.iceberg.rewrite.persist_plan import refuse_persisting
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile, placed_files
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Clustering, Request, UnitKey
from nightkeep.storage import Storage

UNSORTED = 0
"""The id of the sort order without fields (spec, "Sorting")."""
ADVICE: Final = "set write.metadata.metrics.column.NAME to truncate(16) or full"


def refuse_unhandled(snapshot: IcebergSnapshot, request: Request) -> None:
    """Raises RefusedTable for equality delete keys that readers compare differently, and for files we cannot write."""
    refuse_persisting(snapshot, request)
    if snapshot.unread is None:
        measuring(snapshot.schema, snapshot.schema.default_spec_id, ())


def sort_order_note(snapshot: IcebergSnapshot) -> str | None:
    """A note if new files lose the table's sort order: we do not verify the order of their input files."""
    number = snapshot.metadata.get("default-sort-order-id", UNSORTED)
    orders = objects(snapshot.metadata, "sort-orders", subject=snapshot.table.name) if number != UNSORTED else []
    if not any(order.get("order-id") == number and order.get("fields") for order in orders):
        return None
    return f"the table has sort order {number}: rewritten files are not marked as sorted by it"


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


def _indexed(snapshot: IcebergSnapshot) -> Paths:
    return tuple(leaf.path for leaf in indexed_leaves(snapshot.schema))


def _ordered(snapshot: IcebergSnapshot) -> Paths:
    return tuple(leaf.path for leaf in leaves(snapshot.schema) if leaf.ordered)


def _bounds(snapshot: IcebergSnapshot, paths: Paths) -> Callable[[Sequence[ContentFile]], Bounds]:
    by_path = {leaf.path: leaf for leaf in leaves(snapshot.schema)}
    chosen = [by_path[path] for path in paths]
    return lambda files: file_bounds(files, chosen)


def _cube_of(snapshot: IcebergSnapshot, clustering: Clustering) -> Callable[[PlacedFile], str | None]:
    mark = mark_of(snapshot.schema, clustering)
    return lambda placed: cube_of(placed.file.path, mark)


def _is_settled(files: Sequence[PlacedFile], target_bytes: int) -> bool:
    mark = packed_mark(target_bytes)

    def run(placed: PlacedFile) -> str | None:
        return run_of(placed.file.path, mark)

    return is_settled(files, run, lambda placed: _seen(placed, is_ours=run(placed) is not None))


def _seen(placed: PlacedFile, *, is_ours: bool) -> int:
    """The data sequence number for files that we wrote (that of the plan), else the file sequence number."""
    return placed.file.sequence_number if is_ours else placed.file.file_sequence_number


def _opened(
    storage: Storage, unit: IcebergUnit, files: Sequence[PlacedFile]
) -> Iterator[tuple[IcebergFileReader, BitMap64]]:
    gone = hidden(storage, unit, _listed_of(files))
    for placed in files:
        yield IcebergFileReader(storage, unit.schema, placed.file), gone.get(placed.file.path, BitMap64())


def _top_columns(unit: IcebergUnit) -> Sequence[str]:
    return [field.name for field in unit.schema.current.fields]


LAYOUT: Final[FormatLayout[IcebergSnapshot, IcebergUnit, ContentFile, PlacedFile, WrittenIcebergFile, IcebergEdit]] = (
    FormatLayout(
        units=units_of,
        listed=_listed,
        touched=touched_files,
        files=_placed,
        listed_of=_listed_of,
        sizes=sizes_of,
        columns=_columns,
        indexed=_indexed,
        measured=_ordered,
        bounds=_bounds,
        cube_of=_cube_of,
        is_settled=_is_settled,
        inputs=IcebergInputs.of,
        opened=_opened,
        top_columns=_top_columns,
        deletes="delete",
    )
)
