"""Small, large and worn files of a partition -> tasks that write files near the target, or remove files without rows.

A worn file has many deleted rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.clustering.layout_names import packed_mark, run_of
from nightkeep.clustering.packing import is_settled, packing, packing_work
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.table_metadata import objects
from nightkeep.formats.iceberg.rewrite.inputs import IcebergInputs, IcebergPack, measuring
from nightkeep.formats.iceberg.rewrite.persist_plan import refuse_persisting
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile, placed_files
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import Work

UNSORTED = 0
"""The id of the sort order without fields (spec, "Sorting")."""


def refuse_unhandled(snapshot: IcebergSnapshot, request: Request) -> None:
    """Raises RefusedTable for equality delete keys that readers compare differently, and for files we cannot write."""
    refuse_persisting(snapshot, request)
    if snapshot.unread is None:
        measuring(snapshot.schema, snapshot.schema.default_spec_id, ())


def pack_files(snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request) -> Work[IcebergPack] | None:
    """The work that `packing` picks, unless the table is clustered.

    Equality deletes alone make no file worn, as metadata cannot count their rows. Rewriting a file applies them.
    """
    if request.clustering is not None or unit.left_out:
        return None
    sizes = sizes_of(snapshot, request)
    mark = packed_mark(sizes.target)

    def run(placed: PlacedFile) -> str | None:
        return run_of(placed.file.path, mark)

    def settled(files: Sequence[PlacedFile]) -> bool:
        return is_settled(files, run, lambda placed: _seen(placed, is_ours=run(placed) is not None))

    picked = packing(placed_files(unit), sizes, full=request.full, is_settled=settled)
    if picked is None:
        return None
    return packing_work(picked, lambda files: IcebergInputs.of(snapshot, unit, files, request), deletes="delete")


def sort_order_note(snapshot: IcebergSnapshot) -> str | None:
    """A note if new files lose the table's sort order: we do not verify the order of their input files."""
    number = snapshot.metadata.get("default-sort-order-id", UNSORTED)
    orders = objects(snapshot.metadata, "sort-orders", subject=snapshot.table.name) if number != UNSORTED else []
    if not any(order.get("order-id") == number and order.get("fields") for order in orders):
        return None
    return f"the table has sort order {number}: rewritten files are not marked as sorted by it"


def _seen(placed: PlacedFile, *, is_ours: bool) -> int:
    """The data sequence number for files that we wrote (that of the plan), else the file sequence number."""
    return placed.file.sequence_number if is_ours else placed.file.file_sequence_number
